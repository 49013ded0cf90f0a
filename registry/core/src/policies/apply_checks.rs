//! Checks of a policy set before it is made: that it permits something, and that a set that hides every agent was
//! previewed.

use std::collections::HashMap;

use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_policy::{Action, PolicySet, PolicyText};
use a2a_registry_store::agents;
use serde::{Deserialize, Serialize};
use tokio::sync::SemaphorePermit;

use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::policies::preview_inputs::{Previewed, callers, previewed};
use crate::policy_sets::asking_about_present_collections;
use crate::visibility::caller::Caller;

/// Agents that are read first; most sets leave one of them visible.
const FIRST_PAGE: u64 = 20;
/// Agents that are read at once after that.
const PAGE: u64 = 500;
/// The purpose of the signature of a preview's token.
const PREVIEW: &str = "policies:preview";
/// How long the preview of a set counts: agents come and go.
const PREVIEW_LIFETIME: i64 = HOUR;

/// The set that a preview was about.
#[derive(Debug, Serialize, Deserialize)]
struct PreviewedSet {
    /// The number of the set that it was compared with.
    number: u64,
    /// The digest of its policies.
    digest: String,
    made_at: i64,
}

/// The one permit for work that reads every agent.
pub(super) fn preview_permit(context: &Context) -> Result<SemaphorePermit<'_>> {
    context.policies.previewing.try_acquire().map_err(|_| {
        AppError::unavailable(
            "Another preview is under way; try again when it is done.",
            5,
        )
    })
}

/// Whether a set may be made: it permits finding agents, or need not; and it leaves an agent visible, or its preview
/// was shown. Returns the number of the set that the preview was compared with, if there is one. It is unavailable
/// while a preview is in progress and what the set hides is not known.
pub(super) async fn check_set(
    context: &Context,
    caller: &Caller,
    set: &PolicySet,
    texts: &[PolicyText],
    (allow_no_permit, preview): (bool, Option<&str>),
) -> Result<Option<u64>> {
    if !allow_no_permit && !set.permits(Action::Discover) {
        return Err(AppError::new(
            ErrorKind::NoPermit,
            "No policy of this set permits `discover`, so nobody but owners, curators, auditors and admins would find any agent. \
             Nothing was changed; keep a permit in the set, or say `allow_no_permit`.",
        ));
    }
    if let Some(token) = preview {
        return read_preview_token(context, caller, texts, token).map(Some);
    }
    match hides_every_agent(context, set).await? {
        false => Ok(None),
        true => Err(AppError::new(
            ErrorKind::PreviewNeeded,
            "This set hides every agent from everybody but owners, curators, auditors and admins. Nothing was changed; look at \
             its preview, and send the token of that as `preview`.",
        )),
    }
}

/// Proof that someone has seen the preview of these policies, compared with the set of that number.
pub(super) fn preview_token(
    context: &Context,
    caller: &Caller,
    number: u64,
    texts: &[PolicyText],
) -> Result<String> {
    let shown = PreviewedSet {
        number,
        digest: digest_of(texts)?,
        made_at: context.now().0,
    };
    let token = context.signer.token(PREVIEW, caller, &shown);
    token.ok_or_else(|| AppError::internal("a preview has no token"))
}

/// The number of the set that the preview of these policies was compared with. Refuses a token of another set, account
/// or time.
fn read_preview_token(
    context: &Context,
    caller: &Caller,
    texts: &[PolicyText],
    token: &str,
) -> Result<u64> {
    let refused = |why: &str| {
        let text =
            format!("{why}. Nothing was changed; look at the preview of exactly these policies.");
        AppError::new(ErrorKind::PreviewNeeded, text)
    };
    let shown: PreviewedSet = context.signer.read(PREVIEW, caller, token).ok_or_else(|| {
        refused("`preview` is not a token of a preview that this account has asked for")
    })?;
    if shown.digest != digest_of(texts)? {
        return Err(refused("`preview` is the token of other policies"));
    }
    if Timestamp(shown.made_at + PREVIEW_LIFETIME) < context.now() {
        return Err(refused("The preview is older than an hour"));
    }
    Ok(shown.number)
}

fn digest_of(texts: &[PolicyText]) -> Result<String> {
    let written = serde_json::to_vec(texts);
    let written = written.map_err(|error| AppError::internal(error.to_string()))?;
    Ok(a2a_card::digest(&written))
}

/// Whether a set hides every listed agent from every kind of caller. It stops at the first agent that a caller finds.
async fn hides_every_agent(context: &Context, set: &PolicySet) -> Result<bool> {
    if set.allows_all(Action::Discover) {
        return Ok(false);
    }
    let _alone = preview_permit(context)?;
    let set = asking_about_present_collections(&context.store, set.clone()).await?;
    let callers = std::sync::Arc::new(callers(context, &[&set]).await?);
    let mut registrants = HashMap::new();
    let (mut any_listed, mut cursor, mut size) = (false, None, FIRST_PAGE);
    loop {
        let rows = agents::agents_walk(&context.store, cursor, size).await?;
        let Some(last) = rows.last() else {
            return Ok(any_listed);
        };
        (cursor, size) = (Some(last.id), PAGE);
        let mut some = previewed(context, rows, &set, &mut registrants).await?;
        some.retain(|agent| agent.is_listed);
        any_listed |= !some.is_empty();
        if any_listed && !set.permits(Action::Discover) {
            return Ok(true);
        }
        let (set, callers) = (set.clone(), std::sync::Arc::clone(&callers));
        let finds = move |agent: &Previewed| {
            let matches = set.matches(Action::Discover, &agent.facts);
            agent.is_found(&set, &matches, &agent.waived, &callers)
        };
        let found = tokio::task::spawn_blocking(move || some.iter().any(finds)).await;
        if found.map_err(|error| AppError::internal(format!("a check was aborted: {error}")))? {
            return Ok(false);
        }
    }
}
