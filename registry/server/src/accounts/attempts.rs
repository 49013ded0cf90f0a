//! Attempts to sign in with an identity provider: begun here, and good for one answer in the browser that began them, in
//! whichever process it comes to.

use std::sync::Arc;

use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::sign_in_attempt;
use a2a_registry_store::identities;
use url::Url;

use crate::authentication::{hash, session_secret};
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::providers::{Attempt, CodeAnswer, Holder, Provider, redirect_uri};

/// How long an attempt waits for its answer.
const LONGEST: i64 = 10 * MINUTE;
/// Attempts that wait for their answers. The oldest makes way for another one, so that many of one party keep nobody else out.
pub(crate) const MAX_ATTEMPTS: u64 = 10_000;

/// Begins an attempt of the browser with this secret; returns the address to send it to.
///
/// # Errors
/// `Unavailable` where the provider does not respond as it should.
pub(super) async fn attempt_begin(
    context: &Context,
    provider: &Provider,
    browser: &str,
    next: &str,
) -> Result<Url, AppError> {
    let state = session_secret(context);
    let attempt = Attempt {
        browser,
        state: &state,
    };
    let back = redirect_uri(&context.config().public_url(), provider);
    let url = provider.authorization_url(&attempt, &back).await?;
    let row = sign_in_attempt::Model {
        state: hash(&state),
        browser: hash(browser),
        issuer: provider.issuer().to_owned(),
        next: next.to_owned(),
        expires_at: context.now().plus(LONGEST).0,
    };
    attempt_keep(context, row).await?;
    Ok(url)
}

/// Keeps an attempt, in place of the oldest one where there are as many as there may be.
pub(crate) async fn attempt_keep(
    context: &Context,
    row: sign_in_attempt::Model,
) -> Result<(), AppError> {
    let write = context.store.write().await?;
    write.attempts_forget(context.now().0).await?;
    write.attempts_keep(MAX_ATTEMPTS - 1).await?;
    write.attempt_insert(row).await?;
    Ok(write.commit().await?)
}

/// Who has signed in by an answer to an attempt of the browser with this secret, and the path to go to.
///
/// # Errors
/// `Unauthenticated` where there is no such attempt, and as [`Provider::signed_in`].
pub(super) async fn attempt_finish(
    context: &Context,
    provider: &Arc<Provider>,
    browser: &str,
    answer: &CodeAnswer,
) -> Result<(Holder, String), AppError> {
    let (now, state) = (context.now().0, hash(&answer.state));
    let taken = match identities::attempt_by_state(&context.store, &state).await? {
        Some(_) => {
            let write = context.store.write().await?;
            let taken = write
                .attempt_take(&state, &hash(browser), provider.issuer(), now)
                .await?;
            write.commit().await?;
            taken
        }
        None => None,
    };
    let Some(taken) = taken else {
        return Err(no_attempt());
    };
    let attempt = Attempt {
        browser,
        state: &answer.state,
    };
    let back = redirect_uri(&context.config().public_url(), provider);
    let holder = provider.signed_in(&attempt, answer, &back).await?;
    Ok((holder, taken.next))
}

/// That an answer belongs to no attempt.
pub(super) fn no_attempt() -> AppError {
    AppError::new(
        ErrorKind::Unauthenticated,
        "This sign-in was begun in another browser, took longer than ten minutes, or was finished already. Sign in again.",
    )
}
