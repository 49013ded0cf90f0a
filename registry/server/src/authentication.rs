//! Authentication of callers by the secret of a token.

use a2a_registry_store::accounts;
use ring::digest::{SHA256, digest};

use crate::caller::{Account, Caller};
use crate::context::Context;
use crate::error::{AppError, ErrorKind};

/// Authenticates a caller by the secret of a token.
///
/// # Errors
/// `Unauthenticated` for a token that is unknown, revoked or expired.
pub async fn authenticate(context: &Context, secret: &str) -> Result<Caller, AppError> {
    let refused = || {
        AppError::new(
            ErrorKind::Unauthenticated,
            "This token is unknown or has ended; ask an admin for another one.",
        )
    };
    let (token, account) = accounts::token_by_hash(&context.store, &hash(secret))
        .await?
        .ok_or_else(refused)?;
    if token.expires_at.is_some_and(|end| end <= context.now().0) {
        return Err(refused());
    }
    let role = account.role()?;
    Ok(Caller {
        network: None,
        account: Some(Account {
            id: account.id,
            name: account.name,
            role,
        }),
    })
}

/// The prefix of every token, by which secret scanners recognise a leaked one.
pub const TOKEN_PREFIX: &str = "a2ar_";

pub(crate) fn hash(secret: &str) -> String {
    digest(&SHA256, secret.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
