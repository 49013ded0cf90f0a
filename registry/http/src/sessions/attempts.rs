//! Attempts to sign in with an identity provider. Each is sealed in a cookie of the browser that began it, so that no
//! client can displace another's attempts, and is valid for one session, whichever process receives its answer.

use std::sync::Arc;

use a2a_registry_core::accounts::authentication::{hash, session_secret};
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, RefusalReason, Result};
use a2a_registry_core::providers::{Attempt, CodeAnswer, Holder, Provider, redirect_uri};
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::used_attempt;
use a2a_registry_store::{Write, identities};
use actix_web::HttpRequest;
use actix_web::http::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::requests::cookies;

/// How long an attempt waits for its answer.
pub const LONGEST: i64 = 10 * MINUTE;
/// Pending attempts of one browser; the oldest makes way for a new one.
pub const PER_BROWSER: usize = 5;
/// Recorded attempts, that is, sign-ins with providers within ten minutes. Beyond that nobody signs in, because an
/// attempt without a record could be used again.
pub const MAX_USED: u64 = 20_000;
/// Bytes of the path to return to that are kept with an attempt, so that the cookies of all attempts fit into one
/// header.
pub const MAX_NEXT: usize = 512;
/// Characters of a state that name the cookie of its attempt.
const NAME: usize = 10;
/// What a cookie with an attempt is sealed for.
pub const PURPOSE: &str = "a2a-registry sign-in attempt";

#[derive(Debug, Serialize, Deserialize)]
pub struct SignInAttempt {
    /// What the provider hands back.
    pub state: String,
    /// The input for the nonce and the code verifier.
    pub secret: String,
    pub issuer: String,
    pub next: String,
    /// Microseconds since 1970-01-01, in UTC.
    pub begun_at: i64,
}

impl SignInAttempt {
    const fn has_expired(&self, now: i64) -> bool {
        now.saturating_sub(self.begun_at) >= LONGEST
    }

    fn shared(&self) -> Attempt<'_> {
        Attempt {
            secret: &self.secret,
            state: &self.state,
        }
    }
}

pub struct NewAttempt {
    pub url: Url,
    pub cookies: Vec<HeaderValue>,
}

/// Proof that someone has signed in by an attempt. It is valid for one session.
#[derive(Debug, Clone)]
pub struct AnsweredAttempt {
    /// SHA-256 of the state, lower hex.
    pub state: String,
    pub issuer: String,
}

pub struct ProviderSignIn {
    pub holder: Holder,
    pub attempt: AnsweredAttempt,
    pub next: String,
}

pub fn cookie_name(state: &str) -> Option<String> {
    Some(format!("{}{}", cookies::ATTEMPT, state.get(..NAME)?))
}

/// The attempt in a cookie, if the registry has sealed it.
fn open_attempt(context: &Context, sealed: &str) -> Option<SignInAttempt> {
    let text = context.sealer.open(PURPOSE, sealed)?;
    serde_json::from_slice(&text).ok()
}

pub async fn attempt_begin(
    context: &Context,
    provider: &Provider,
    request: &HttpRequest,
    next: &str,
) -> Result<NewAttempt> {
    let now = context.now().0;
    let attempt = SignInAttempt {
        state: session_secret(context),
        secret: session_secret(context),
        issuer: provider.issuer().to_owned(),
        next: match next.len() <= MAX_NEXT {
            true => next.to_owned(),
            false => String::new(),
        },
        begun_at: now,
    };
    let back = redirect_uri(&context.config().public_url(), provider);
    let url = provider.authorization_url(&attempt.shared(), &back).await?;
    let sealed = serde_json::to_vec(&attempt)
        .ok()
        .and_then(|text| {
            let entropy = context.entropy.as_ref();
            context.sealer.seal(PURPOSE, &text, entropy)
        })
        .ok_or_else(|| AppError::internal("an attempt to sign in could not be sealed"))?;
    let seconds = u64::try_from(LONGEST / 1_000_000).unwrap_or_default();
    let set = cookie_name(&attempt.state)
        .and_then(|name| cookies::set_for(&name, &sealed, seconds))
        .into_iter();
    let cleared = attempts_to_clear(context, request, now);
    let cleared = cleared.iter().filter_map(|name| cookies::clear(name));
    Ok(NewAttempt {
        url,
        cookies: set.chain(cleared).collect(),
    })
}

/// The names of the cookies to clear for a new attempt: the oldest beyond the limit, and all invalid ones.
pub fn attempts_to_clear(context: &Context, request: &HttpRequest, now: i64) -> Vec<String> {
    let mut waiting = Vec::new();
    let mut names = Vec::new();
    for (name, sealed) in cookies::attempts(request) {
        match open_attempt(context, &sealed) {
            Some(attempt) if !attempt.has_expired(now) => waiting.push((attempt.begun_at, name)),
            _ => names.push(name),
        }
    }
    waiting.sort_unstable();
    let surplus = (waiting.len() + 1).saturating_sub(PER_BROWSER);
    names.extend(waiting.into_iter().take(surplus).map(|(_, name)| name));
    names
}

pub fn clear_attempt(state: &str) -> Option<HeaderValue> {
    cookies::clear(&cookie_name(state)?)
}

/// An attempt that belongs to this browser.
pub struct OwnAttempt(SignInAttempt);

/// The attempt of this browser that an answer is for.
pub async fn attempt_of(
    context: &Context,
    provider: &Provider,
    request: &HttpRequest,
    answer: &CodeAnswer,
) -> Result<OwnAttempt> {
    let name = cookie_name(&answer.state).ok_or_else(no_attempt)?;
    let mut known = cookies::attempts(request).into_iter();
    let sealed = known.find(|(own, _)| *own == name);
    let attempt = sealed.and_then(|(_, sealed)| open_attempt(context, &sealed));
    let attempt = attempt.filter(|own| {
        own.state == answer.state
            && own.issuer == provider.issuer()
            && !own.has_expired(context.now().0)
    });
    let attempt = attempt.ok_or_else(no_attempt)?;
    // The provider would treat a repeated code as stolen. The record in `use_attempt` is what decides.
    if identities::attempt_is_used(&context.store, &hash(&attempt.state)).await? {
        return Err(no_attempt());
    }
    Ok(OwnAttempt(attempt))
}

pub async fn attempt_finish(
    context: &Context,
    provider: &Arc<Provider>,
    attempt: OwnAttempt,
    answer: &CodeAnswer,
) -> Result<ProviderSignIn> {
    let OwnAttempt(attempt) = attempt;
    let back = redirect_uri(&context.config().public_url(), provider);
    let holder = provider
        .signed_in(&attempt.shared(), answer, &back)
        .await
        .map_err(|error| error.refused_by_provider(RefusalReason::ProviderAnswer))?;
    Ok(ProviderSignIn {
        holder,
        attempt: AnsweredAttempt {
            state: hash(&attempt.state),
            issuer: attempt.issuer,
        },
        next: attempt.next,
    })
}

/// Records that an attempt is used, in the transaction that begins its session. The caller has locked the accounts.
pub(super) async fn use_attempt(write: &Write, attempt: &AnsweredAttempt, now: i64) -> Result<()> {
    write.used_attempts_forget(now).await?;
    if identities::used_attempt_count(write).await? >= MAX_USED {
        return Err(AppError::unavailable(
            "Too many people have signed in within ten minutes. Sign in again in a few minutes.",
            60,
        ));
    }
    let row = used_attempt::Model {
        state: attempt.state.clone(),
        expires_at: now.saturating_add(LONGEST),
    };
    match write.used_attempt_insert(row).await? {
        true => Ok(()),
        false => Err(no_attempt()),
    }
}

pub(super) fn no_attempt() -> AppError {
    AppError::unauthenticated(
        "This sign-in was begun in another browser, took longer than ten minutes, or was finished already. Sign in again.",
    )
    .refused(RefusalReason::Attempt)
}
