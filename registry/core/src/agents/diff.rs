//! Differences between two versions of an agent's card, and their importance
//! (docs/develop/model.md#changes-and-reviews).

use a2a_registry_api::{Change, Diff};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, version};
use a2a_registry_store::versions;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::admission::change_class::{classify_diff, diff_cards, signature_state_change};
use crate::agents::views::{
    caller_owns_agent, load_domain_key_binding, require_visible_agent, require_visible_version,
};
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::signatures::DomainKeyBinding;
use crate::visibility::caller::Caller;

/// The two versions of a card to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct VersionDiffQuery {
    /// Digest of the older version; by default the served one, or if that is `to` the version before it, as far as
    /// the caller may see it.
    pub from: Option<String>,
    /// Digest of the newer version; by default the newest one that the caller may see.
    pub to: Option<String>,
}

/// The changes between two versions of an agent's card, member by member. The first version is compared with itself.
pub async fn agent_diff(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    query: &VersionDiffQuery,
) -> Result<Diff> {
    let row = require_visible_agent(context, caller, agent).await?;
    let sees_all_versions = caller.has_permission(Permission::SeeAll)
        || caller_owns_agent(context, caller, &row).await?;
    let visible_version =
        async |digest: &str| require_visible_version(context, caller, &row, digest).await;
    let newest_before = async |before| {
        let page =
            versions::version_page(&context.store, row.id, sees_all_versions, before, 1).await?;
        Ok::<_, AppError>(page.into_iter().next())
    };
    let to = match &query.to {
        Some(digest) => visible_version(digest).await?,
        None => newest_before(None)
            .await?
            .ok_or_else(|| AppError::not_found(format!("Agent {} has no version.", row.id)))?,
    };
    let from = match (&query.from, row.approved_version) {
        (Some(digest), _) => Some(visible_version(digest).await?),
        (None, Some(served)) if served != to.id => {
            let served = versions::versions_by_ids(&context.store, &[served]).await?;
            served.into_iter().next()
        }
        (None, _) => newest_before(Some(to.id)).await?,
    };
    let key_binding = load_domain_key_binding(context, row.domain_id).await?;
    let from = from.as_ref().unwrap_or(&to);
    let old_body = versions::body_by_digest(&context.store, &from.digest).await?;
    let new_body = versions::body_by_digest(&context.store, &to.digest).await?;
    let (Some(old_body), Some(new_body)) = (old_body, new_body) else {
        return Err(AppError::not_found(
            "One of the two versions is no longer stored.",
        ));
    };
    let (from, to) = ((from, &*old_body), (&to, &*new_body));
    Ok(diff_versions(context, &row, from, to, &key_binding))
}

/// Compares two versions by their bytes, with the current results for their signatures.
pub fn diff_versions(
    context: &AppContext,
    agent: &agent::Model,
    (from, old_body): (&version::Model, &[u8]),
    (to, new_body): (&version::Model, &[u8]),
    key_binding: &DomainKeyBinding,
) -> Diff {
    let states = signature_state_change(agent, key_binding, from.into(), to.into());
    let difference = diff_cards(context, old_body, new_body, states);
    Diff {
        from: from.digest.clone(),
        to: to.digest.clone(),
        change_class: classify_diff(difference.as_ref(), states).into(),
        changes: difference
            .iter()
            .flat_map(|difference| &difference.changes)
            .map(Change::from)
            .collect(),
        cut: difference.is_some_and(|difference| difference.cut),
    }
}
