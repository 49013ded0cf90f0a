//! The differences between two contents of an agent's card, and their importance (docs/model.md#changes-and-reviews).

use a2a_registry_api::{Change, Diff};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, version};
use a2a_registry_store::versions;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::admission::change::{change_class, difference, states};
use crate::agents::views::{agent_visible, key_binding, owns, version_visible};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::signatures::KeyBinding;
use crate::visibility::caller::Caller;

/// Which two versions of a card are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct DiffQuery {
    /// Digest of the older version; by default the served one, or if that is `to` the version before it, as far as
    /// the caller may see it.
    pub from: Option<String>,
    /// Digest of the newer version; by default the newest one that the caller may see.
    pub to: Option<String>,
}

/// The changes between two versions of an agent's card, member by member. The first version is compared with itself.
pub async fn agent_diff(
    context: &Context,
    caller: &Caller,
    agent: &str,
    query: &DiffQuery,
) -> Result<Diff> {
    let row = agent_visible(context, caller, agent).await?;
    let all = caller.may(Permission::SeeAll) || owns(context, caller, &row).await?;
    let named = async |digest: &str| version_visible(context, caller, &row, digest).await;
    let newest_before = async |before| {
        let page = versions::version_page(&context.store, row.id, all, before, 1).await?;
        Ok::<_, AppError>(page.into_iter().next())
    };
    let to = match &query.to {
        Some(digest) => named(digest).await?,
        None => newest_before(None)
            .await?
            .ok_or_else(|| AppError::not_found(format!("Agent {} has no version.", row.id)))?,
    };
    let from = match (&query.from, row.approved_version) {
        (Some(digest), _) => Some(named(digest).await?),
        (None, Some(served)) if served != to.id => {
            let served = versions::versions_by_ids(&context.store, &[served]).await?;
            served.into_iter().next()
        }
        (None, _) => newest_before(Some(to.id)).await?,
    };
    let binding = key_binding(context, row.domain_id).await?;
    let from = from.as_ref().unwrap_or(&to);
    let before = versions::body_by_digest(&context.store, &from.digest).await?;
    let after = versions::body_by_digest(&context.store, &to.digest).await?;
    let (Some(before), Some(after)) = (before, after) else {
        return Err(AppError::not_found(
            "One of the two versions is no longer stored.",
        ));
    };
    let (from, to) = ((from, &*before), (&to, &*after));
    Ok(diff_of(context, &row, from, to, &binding))
}

/// Compares two versions by their bytes, with today's verdicts on their signatures.
pub fn diff_of(
    context: &Context,
    agent: &agent::Model,
    (from, before): (&version::Model, &[u8]),
    (to, after): (&version::Model, &[u8]),
    binding: &KeyBinding,
) -> Diff {
    let states = states(agent, binding, from.into(), to.into());
    let difference = difference(context, before, after, states);
    Diff {
        from: from.digest.clone(),
        to: to.digest.clone(),
        change_class: change_class(difference.as_ref(), states).into(),
        changes: difference
            .iter()
            .flat_map(|difference| &difference.changes)
            .map(Change::from)
            .collect(),
        cut: difference.is_some_and(|difference| difference.cut),
    }
}
