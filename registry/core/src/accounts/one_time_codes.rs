//! One-time codes: sealed texts that stand for a sign-in or for a token that was asked for. Each is valid for ten
//! minutes and one use, on every process. Only the use of a code is stored, so codes that nobody uses leave nothing.

use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::used_sign_in_attempt;
use a2a_registry_store::{WriteTransaction, identities};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::accounts::authentication::{random_secret, sha256_hex};
use crate::context::AppContext;
use crate::error::{AppError, Result};

/// How long a code is valid; microseconds.
pub const CODE_LIFETIME: i64 = 10 * MINUTE;
/// Maximum number of recorded uses, of codes and of sign-ins with identity providers within ten minutes. Further ones
/// are rejected, because a code without a record could be used again.
pub const MAX_RECORDED_USES: u64 = 20_000;
/// Maximum number of characters of a code.
const MAX_CODE_CHARS: usize = 2_000;

/// An opened code that has not expired; it may have been used.
#[derive(Debug, Serialize, Deserialize)]
pub struct OneTimeCode<T> {
    pub content: T,
    /// Distinguishes codes with the same content.
    id: String,
    /// Microseconds since 1970-01-01 in UTC.
    issued_at: i64,
}

/// Seals content as a code for one purpose.
pub fn issue_code<T: Serialize>(context: &AppContext, purpose: &str, content: T) -> Result<String> {
    let code = OneTimeCode {
        content,
        id: random_secret(context),
        issued_at: context.now().0,
    };
    serde_json::to_vec(&code)
        .ok()
        .and_then(|text| {
            let entropy = context.entropy.as_ref();
            context.sealer.seal(purpose, &text, entropy)
        })
        .ok_or_else(|| AppError::internal("a one-time code could not be sealed"))
}

/// Opens a code; `None` if this registry has not issued it for the purpose, or it has expired.
pub fn open_code<T: DeserializeOwned>(
    context: &AppContext,
    purpose: &str,
    code: &str,
) -> Option<OneTimeCode<T>> {
    if code.len() > MAX_CODE_CHARS {
        return None;
    }
    let text = context.sealer.open(purpose, code)?;
    let code: OneTimeCode<T> = serde_json::from_slice(&text).ok()?;
    let age = context.now().0.saturating_sub(code.issued_at);
    (age < CODE_LIFETIME).then_some(code)
}

/// Records the use of a code; `false` if it was used before. The caller must have locked the accounts.
pub async fn use_code<T>(
    write: &WriteTransaction,
    code: &OneTimeCode<T>,
    now: i64,
) -> Result<bool> {
    record_single_use(write, &sha256_hex(&code.id), now).await
}

/// Records the use of what has this hash; `false` if it was used before. The caller must have locked the accounts.
pub async fn record_single_use(write: &WriteTransaction, hash: &str, now: i64) -> Result<bool> {
    write.delete_expired_sign_in_attempts(now).await?;
    if identities::used_sign_in_attempt_count(write).await? >= MAX_RECORDED_USES {
        return Err(AppError::unavailable(
            "Too many sign-ins within ten minutes. Try again in a few minutes.",
            60,
        ));
    }
    let row = used_sign_in_attempt::Model {
        state: hash.to_owned(),
        expires_at: now.saturating_add(CODE_LIFETIME),
    };
    Ok(write.mark_sign_in_attempt_used(row).await?)
}
