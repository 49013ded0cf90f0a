//! Attempts to sign in with an identity provider. Each attempt is sealed in a cookie of the browser that started it,
//! so that clients cannot displace each other's attempts, and is valid for one session, on any process.

use std::sync::Arc;

use a2a_registry_core::accounts::authentication::{random_secret, sha256_hex};
use a2a_registry_core::accounts::one_time_codes::{CODE_LIFETIME, record_single_use};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, CredentialRefusal, Result};
use a2a_registry_core::providers::{
    AuthorizationResponse, IdentityProvider, SignInAttemptSecrets, TokenSubject, redirect_uri,
};
use a2a_registry_store::{WriteTransaction, identities};
use actix_web::HttpRequest;
use actix_web::http::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::requests::cookies;

/// Maximum time between the start of an attempt and its response.
pub const ATTEMPT_LIFETIME: i64 = CODE_LIFETIME;
/// Maximum number of pending attempts per browser. A new attempt replaces the oldest.
pub const MAX_ATTEMPTS_PER_BROWSER: usize = 5;
/// Maximum number of bytes of the return path in an attempt, so that the cookies of all attempts fit into one header.
pub const MAX_NEXT_BYTES: usize = 512;
/// Number of characters of the state in the name of the attempt's cookie.
const COOKIE_NAME_CHARS: usize = 10;
/// Purpose with which attempt cookies are sealed.
pub const SEAL_PURPOSE: &str = "a2a-registry sign-in attempt";

#[derive(Debug, Serialize, Deserialize)]
pub struct SignInAttempt {
    /// State that the provider returns.
    pub state: String,
    /// Input for the nonce and the code verifier.
    pub secret: String,
    pub issuer: String,
    pub next: String,
    /// Microseconds since 1970-01-01 in UTC.
    pub begun_at: i64,
}

impl SignInAttempt {
    const fn has_expired(&self, now: i64) -> bool {
        now.saturating_sub(self.begun_at) >= ATTEMPT_LIFETIME
    }

    fn secrets(&self) -> SignInAttemptSecrets<'_> {
        SignInAttemptSecrets {
            secret: &self.secret,
            state: &self.state,
        }
    }
}

pub struct ProviderRedirect {
    pub url: Url,
    pub cookies: Vec<HeaderValue>,
}

/// Proof of a completed sign-in, valid for one session.
#[derive(Debug, Clone)]
pub struct CompletedSignIn {
    /// SHA-256 of the state in lower-case hexadecimal.
    pub state_hash: String,
    pub issuer: String,
}

pub struct ProviderSignIn {
    pub token_subject: TokenSubject,
    pub attempt: CompletedSignIn,
    pub next: String,
}

pub fn sign_in_cookie_name(state: &str) -> Option<String> {
    Some(format!(
        "{}{}",
        cookies::ATTEMPT_COOKIE_PREFIX,
        state.get(..COOKIE_NAME_CHARS)?
    ))
}

/// Unseals the attempt in a cookie; `None` if this registry has not sealed it.
fn unseal_sign_in_attempt(context: &AppContext, sealed: &str) -> Option<SignInAttempt> {
    let text = context.sealer.open(SEAL_PURPOSE, sealed)?;
    serde_json::from_slice(&text).ok()
}

pub async fn create_sign_in_attempt(
    context: &AppContext,
    provider: &IdentityProvider,
    request: &HttpRequest,
    next: &str,
) -> Result<ProviderRedirect> {
    let now = context.now().0;
    let attempt = SignInAttempt {
        state: random_secret(context),
        secret: random_secret(context),
        issuer: provider.issuer().to_owned(),
        next: match next.len() <= MAX_NEXT_BYTES {
            true => next.to_owned(),
            false => String::new(),
        },
        begun_at: now,
    };
    let redirect_url = redirect_uri(&context.config().public_url(), provider);
    let url = provider
        .authorization_url(&attempt.secrets(), &redirect_url)
        .await?;
    let sealed = serde_json::to_vec(&attempt)
        .ok()
        .and_then(|text| {
            let entropy = context.entropy.as_ref();
            context.sealer.seal(SEAL_PURPOSE, &text, entropy)
        })
        .ok_or_else(|| AppError::internal("a sign-in attempt could not be sealed"))?;
    let seconds = u64::try_from(ATTEMPT_LIFETIME / 1_000_000).unwrap_or_default();
    let set = sign_in_cookie_name(&attempt.state)
        .and_then(|name| cookies::cookie_header_with_expiry(&name, &sealed, seconds))
        .into_iter();
    let cleared = sign_in_cookies_to_clear(context, request, now);
    let cleared = cleared
        .iter()
        .filter_map(|name| cookies::clear_cookie_header(name));
    Ok(ProviderRedirect {
        url,
        cookies: set.chain(cleared).collect(),
    })
}

/// Names of the cookies to clear for a new attempt: the oldest beyond the limit, and all invalid ones.
pub fn sign_in_cookies_to_clear(
    context: &AppContext,
    request: &HttpRequest,
    now: i64,
) -> Vec<String> {
    let mut pending = Vec::new();
    let mut names = Vec::new();
    for (name, sealed) in cookies::sign_in_attempt_cookies(request) {
        match unseal_sign_in_attempt(context, &sealed) {
            Some(attempt) if !attempt.has_expired(now) => pending.push((attempt.begun_at, name)),
            _ => names.push(name),
        }
    }
    pending.sort_unstable();
    let surplus = (pending.len() + 1).saturating_sub(MAX_ATTEMPTS_PER_BROWSER);
    names.extend(pending.into_iter().take(surplus).map(|(_, name)| name));
    names
}

pub fn clear_sign_in_cookie_header(state: &str) -> Option<HeaderValue> {
    cookies::clear_cookie_header(&sign_in_cookie_name(state)?)
}

/// An attempt that belongs to this browser.
pub struct VerifiedSignInAttempt(SignInAttempt);

/// Finds the attempt of this browser that a provider response belongs to.
pub async fn find_sign_in_attempt(
    context: &AppContext,
    provider: &IdentityProvider,
    request: &HttpRequest,
    response: &AuthorizationResponse,
) -> Result<VerifiedSignInAttempt> {
    let name = sign_in_cookie_name(&response.state).ok_or_else(invalid_sign_in_error)?;
    let mut attempt_cookies = cookies::sign_in_attempt_cookies(request).into_iter();
    let sealed = attempt_cookies.find(|(own, _)| *own == name);
    let attempt = sealed.and_then(|(_, sealed)| unseal_sign_in_attempt(context, &sealed));
    let attempt = attempt.filter(|own| {
        own.state == response.state
            && own.issuer == provider.issuer()
            && !own.has_expired(context.now().0)
    });
    let attempt = attempt.ok_or_else(invalid_sign_in_error)?;
    // The provider would treat a repeated code as stolen. The authoritative check is in `record_used_attempt`.
    if identities::is_sign_in_attempt_used(&context.store, &sha256_hex(&attempt.state)).await? {
        return Err(invalid_sign_in_error());
    }
    Ok(VerifiedSignInAttempt(attempt))
}

pub async fn finish_sign_in_attempt(
    context: &AppContext,
    provider: &Arc<IdentityProvider>,
    attempt: VerifiedSignInAttempt,
    response: &AuthorizationResponse,
) -> Result<ProviderSignIn> {
    let VerifiedSignInAttempt(attempt) = attempt;
    let redirect_url = redirect_uri(&context.config().public_url(), provider);
    let token_subject = provider
        .complete_sign_in(&attempt.secrets(), response, &redirect_url)
        .await
        .map_err(|error| error.with_provider_refusal(CredentialRefusal::ProviderAnswer))?;
    Ok(ProviderSignIn {
        token_subject,
        attempt: CompletedSignIn {
            state_hash: sha256_hex(&attempt.state),
            issuer: attempt.issuer,
        },
        next: attempt.next,
    })
}

/// Records that an attempt is used, in the transaction that creates its session. The caller must have locked the
/// accounts.
pub(super) async fn record_used_sign_in(
    write: &WriteTransaction,
    attempt: &CompletedSignIn,
    now: i64,
) -> Result<()> {
    match record_single_use(write, &attempt.state_hash, now).await? {
        true => Ok(()),
        false => Err(invalid_sign_in_error()),
    }
}

pub(super) fn invalid_sign_in_error() -> AppError {
    AppError::unauthenticated(
        "This sign-in was started in another browser, took longer than ten minutes, or is already complete. Sign in \
         again.",
    )
    .with_refusal(CredentialRefusal::Attempt)
}
