//! Checks of a new policy set: it must permit something, and a set that hides every agent must have been previewed.

use std::collections::HashMap;

use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_policy::{Action, PolicySet, PolicyText};
use a2a_registry_store::agents;
use serde::{Deserialize, Serialize};
use tokio::sync::SemaphorePermit;

use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::policies::preview_inputs::{ComparedAgent, load_compared_agents, load_compared_callers};
use crate::policy_sets::with_current_collections;
use crate::visibility::caller::Caller;

/// Number of agents that are read first; most sets leave one of them visible.
const FIRST_BATCH: u64 = 20;
/// Number of agents that are read at once after that.
const BATCH: u64 = 500;
/// The purpose for which preview tokens are signed.
const PREVIEW_TOKEN_PURPOSE: &str = "policies:preview";
/// How long a preview is valid: the agents change.
pub(super) const PREVIEW_LIFETIME: i64 = HOUR;

/// The content of a preview token: the previewed set.
#[derive(Debug, Serialize, Deserialize)]
struct PreviewTokenContent {
    /// The number of the set that the preview was compared with.
    number: u64,
    /// The digest of the previewed policies.
    digest: String,
    made_at: i64,
}

/// Acquires the only permit for work that reads every agent.
pub(super) fn acquire_preview_permit(context: &AppContext) -> Result<SemaphorePermit<'_>> {
    context
        .policy_sets
        .preview_permit
        .try_acquire()
        .map_err(|_| {
            AppError::unavailable(
                "Another preview is in progress. Try again when it is done.",
                5,
            )
        })
}

/// Checks that a set may be made: it permits finding agents or `allow_no_permit` is given, and it leaves an agent
/// visible or was previewed. Returns the number of the set that the preview was compared with, if there was a preview.
/// Fails as unavailable while another preview is in progress and it is not known what the set hides.
pub(super) async fn check_new_policy_set(
    context: &AppContext,
    caller: &Caller,
    set: &PolicySet,
    texts: &[PolicyText],
    (allow_no_permit, preview_token): (bool, Option<&str>),
) -> Result<Option<u64>> {
    if !allow_no_permit && !set.may_permit(Action::Discover) {
        return Err(AppError::new(
            ErrorKind::NoPermit,
            "No policy of this set permits `discover`, so only owners, curators, auditors and admins would find \
             agents. Nothing was changed. Keep a permit in the set, or set `allow_no_permit`.",
        ));
    }
    if let Some(token) = preview_token {
        return verify_preview_token(context, caller, texts, token).map(Some);
    }
    if context.config().governance.preview_policies {
        return Err(AppError::new(
            ErrorKind::PreviewNeeded,
            "This registry accepts no set without its preview (`governance.preview_policies`). Nothing was changed. \
             Read the preview of exactly these policies, and send its token as `preview`.",
        ));
    }
    match hides_every_agent(context, set).await? {
        false => Ok(None),
        true => Err(AppError::new(
            ErrorKind::PreviewNeeded,
            "This set hides every agent from everyone but owners, curators, auditors and admins. Nothing was \
             changed. Read its preview, and send the preview's token as `preview`.",
        )),
    }
}

/// Signs a token as proof that the caller has seen the preview of the policies with this digest, compared with the set
/// of this number.
pub(super) fn sign_preview_token(
    context: &AppContext,
    caller: &Caller,
    number: u64,
    digest: String,
    made_at: Timestamp,
) -> Result<String> {
    let content = PreviewTokenContent {
        number,
        digest,
        made_at: made_at.0,
    };
    let token = context
        .page_token_signer
        .sign_position(PREVIEW_TOKEN_PURPOSE, caller, &content);
    token.ok_or_else(|| AppError::internal("a preview has no token"))
}

/// Returns the number of the set that the preview of these policies was compared with. Refuses an expired token and
/// one for another set or account.
fn verify_preview_token(
    context: &AppContext,
    caller: &Caller,
    texts: &[PolicyText],
    token: &str,
) -> Result<u64> {
    let token_error = |why: &str| {
        let text = format!("{why}. Nothing was changed. Preview exactly these policies first.");
        AppError::new(ErrorKind::PreviewNeeded, text)
    };
    let content: PreviewTokenContent = context
        .page_token_signer
        .try_decode_position(PREVIEW_TOKEN_PURPOSE, caller, token)
        .ok_or_else(|| {
            token_error("`preview` is not a token of a preview that this account requested")
        })?;
    if content.digest != policies_digest(texts)? {
        return Err(token_error("`preview` is a token for other policies"));
    }
    if Timestamp(content.made_at + PREVIEW_LIFETIME) < context.now() {
        return Err(token_error("The preview is older than an hour"));
    }
    Ok(content.number)
}

/// The digest of policies, by which a token names them.
pub(super) fn policies_digest(texts: &[PolicyText]) -> Result<String> {
    let json = serde_json::to_vec(texts);
    let json = json.map_err(|error| AppError::internal(error.to_string()))?;
    Ok(a2a_card::bytes_digest(&json))
}

/// Whether a set hides every listed agent from every kind of caller. Stops at the first agent that a caller can find.
async fn hides_every_agent(context: &AppContext, set: &PolicySet) -> Result<bool> {
    if set.always_allows_action(Action::Discover) {
        return Ok(false);
    }
    let _permit = acquire_preview_permit(context)?;
    let set = with_current_collections(&context.store, set.clone()).await?;
    let callers = std::sync::Arc::new(load_compared_callers(context, &[&set]).await?);
    let mut registrants = HashMap::new();
    let (mut any_listed, mut cursor, mut batch_size) = (false, None, FIRST_BATCH);
    loop {
        let rows = agents::agents_page_by_id(&context.store, cursor, batch_size).await?;
        let Some(last) = rows.last() else {
            return Ok(any_listed);
        };
        (cursor, batch_size) = (Some(last.id), BATCH);
        let mut compared = load_compared_agents(context, rows, &set, &mut registrants).await?;
        compared.retain(|agent| agent.is_listed);
        any_listed |= !compared.is_empty();
        if any_listed && !set.may_permit(Action::Discover) {
            return Ok(true);
        }
        let (set, callers) = (set.clone(), std::sync::Arc::clone(&callers));
        let is_found = move |agent: &ComparedAgent| {
            let matches = set.match_agent(Action::Discover, &agent.attributes);
            agent.is_found_by_any(&set, &matches, &agent.waived_forbids, &callers)
        };
        let found = tokio::task::spawn_blocking(move || compared.iter().any(is_found)).await;
        if found.map_err(|error| AppError::internal(format!("a check was aborted: {error}")))? {
            return Ok(false);
        }
    }
}
