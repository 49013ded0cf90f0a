//! Changes of an agent by its owner, and the ownership check.

use std::collections::BTreeMap;

use a2a_registry_api::AgentPatch;
use a2a_registry_api::limits::{MAX_LABEL_CHARS, MAX_LABELS};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, agent, domain};
use a2a_registry_store::{WriteTransaction, accounts, domains};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::url_origin;
use crate::admission::policies::update_policy_hold;
use crate::agents::audience_collections::{check_collection_names, set_audience_collections};
use crate::agents::views::{agent_show, require_visible_agent};
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::entity_tag::RenderedJson;
use crate::error::{AppError, Result};
use crate::ownership::authorization::require_owner_or_curator;
use crate::ownership::dispute::agent_dispute_error;
use crate::ownership::is_disputed_domain;
use crate::precondition::IfMatch;
use crate::visibility::audience::{
    check_audience_groups, decode_audience, encode_audience, resolve_groups,
};
use crate::visibility::caller::{Caller, CallerAccount};

/// The members of an agent that people edit, which the precondition of a change compares.
pub(super) fn editable_agent_fields(row: &agent::Model) -> impl serde::Serialize + use<> {
    (
        row.visibility.as_str().to_owned(),
        row.audience.clone(),
        row.collections.clone(),
        row.labels.clone(),
        row.derived_queries,
        row.sponsor_id,
    )
}

/// Changes an agent's visibility and groups, which its owner may only narrow, its labels and the acceptance of derived
/// queries, which only curators may set, and its sponsor.
pub async fn agent_patch(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    patch: &AgentPatch,
    precondition: &IfMatch,
) -> Result<RenderedJson> {
    let names = patch.groups.as_deref().unwrap_or_default();
    check_audience_groups(&context.config().identity, "/groups", names)?;
    check_collection_names(patch.collections.as_deref().unwrap_or_default())?;
    patch.reason.as_deref().map(check_reason).transpose()?;
    let (row, account) = require_changeable_agent(context, caller, agent).await?;
    let write = context.store.begin_write().await?;
    if patch.collections.is_some() {
        // Collections are locked before the agent, as a change of a collection does.
        write.lock_collections().await?;
    }
    let mut state = load_agent_state(&write, row.id).await?;
    precondition.check_part(&editable_agent_fields(&state.agent))?;
    if patch.visibility.is_some() || patch.groups.is_some() || patch.collections.is_some() {
        set_visibility_and_groups(&write, caller, &mut state.agent, patch).await?;
    }
    if let Some(labels) = &patch.labels {
        caller.require_permission(Permission::Curate)?;
        check_agent_labels(labels)?;
        state.agent.labels = serde_json::to_string(labels).unwrap_or_else(|_| "{}".into());
    }
    if let Some(accepted) = patch.derived_queries {
        caller.require_permission(Permission::Curate)?;
        state.agent.derived_queries = accepted;
    }
    if let Some(sponsor) = &patch.sponsor {
        state.agent.sponsor_id = find_sponsor(&write, sponsor).await?;
    }
    let editable = editable_agent_fields(&state.agent);
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    change_set.mark_agent_changed(&mut state);
    update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    let data = agent_patch_event_data(patch);
    change_set.add_agent_event(EventKind::AgentUpdated, row.id, &account.name, data);
    commit_and_await_index(context, write, change_set).await?;
    let view = agent_show(context, caller, &row.id.to_string()).await?;
    RenderedJson::with_part(&view, &editable)
}

/// The event data: the changed members, and always visibility and labels.
fn agent_patch_event_data(patch: &AgentPatch) -> serde_json::Value {
    let mut data = json!({"visibility": patch.visibility, "labels": patch.labels});
    if let Some(groups) = &patch.groups {
        data["groups"] = json!(groups);
    }
    if let Some(collections) = &patch.collections {
        data["collections"] = json!(collections);
    }
    if let Some(sponsor) = &patch.sponsor {
        data["sponsor"] = json!(sponsor);
    }
    if let Some(accepted) = patch.derived_queries {
        data["derived_queries"] = json!(accepted);
    }
    if let Some(reason) = &patch.reason {
        data["reason"] = json!(reason);
    }
    data
}

/// Sets who may see an agent: its visibility, and the groups that see it while it is restricted. An owner may only
/// narrow both.
async fn set_visibility_and_groups(
    write: &WriteTransaction,
    caller: &Caller,
    agent: &mut agent::Model,
    patch: &AgentPatch,
) -> Result<()> {
    let is_curator = caller.has_permission(Permission::Curate);
    let current = agent.visibility()?;
    let visibility = patch.visibility.unwrap_or(current);
    if !is_curator && visibility < current {
        return Err(owner_widening_error(&format!(
            "visibility, which is {current}"
        )));
    }
    let current_groups = match current {
        Visibility::Restricted => decode_audience(agent.audience.as_deref()),
        _ => Vec::new(),
    };
    let audience = match (visibility, &patch.groups) {
        (Visibility::Restricted, Some(names)) => {
            let groups = resolve_groups(write, caller, names, &current_groups).await?;
            let widens = groups.iter().any(|group| !current_groups.contains(group));
            if !is_curator && current == Visibility::Restricted && widens {
                return Err(owner_widening_error("groups"));
            }
            Some(encode_audience(&groups))
        }
        (Visibility::Restricted, None) if !current_groups.is_empty() => {
            Some(encode_audience(&current_groups))
        }
        (_, Some(names)) if !names.is_empty() => {
            let detail =
                "only a restricted agent can have groups; set its visibility to restricted too";
            return Err(AppError::invalid("/groups", detail));
        }
        _ => None,
    };
    match (visibility, &patch.collections) {
        (Visibility::Restricted, Some(names)) => {
            let is_wider = set_audience_collections(write, caller, agent, names).await?;
            if !is_curator && current == Visibility::Restricted && is_wider {
                return Err(owner_widening_error("collections"));
            }
        }
        (Visibility::Restricted, None) => {}
        (_, Some(names)) if !names.is_empty() => {
            let detail = "only a restricted agent can have collections; set its visibility to restricted too";
            return Err(AppError::invalid("/collections", detail));
        }
        _ => (agent.collections, agent.collection_audience) = (None, None),
    }
    agent.visibility = visibility.into();
    agent.audience = audience;
    Ok(())
}

fn owner_widening_error(subject: &str) -> AppError {
    AppError::forbidden(format!(
        "An owner may only narrow an agent's {subject}; ask a curator to widen it."
    ))
}

/// Finds the account with this name, which must be enabled; `None` for an empty name.
async fn find_sponsor(write: &WriteTransaction, name: &str) -> Result<Option<Uuid>> {
    if name.is_empty() {
        return Ok(None);
    }
    let account = accounts::account_by_name(write, name).await?;
    match account.filter(account::Model::is_account_active) {
        Some(account) => Ok(Some(account.id)),
        None => Err(AppError::conflict(
            "The sponsor is not an enabled account. Create the account first.",
        )),
    }
}

pub async fn require_changeable_agent<'a>(
    context: &AppContext,
    caller: &'a Caller,
    agent: &str,
) -> Result<(agent::Model, &'a CallerAccount)> {
    let row = match require_visible_agent(context, caller, agent).await {
        Ok(row) => row,
        // An agent on hold for a dispute is hidden from a party that has not registered it.
        Err(error) => {
            return Err(agent_dispute_error(context, caller, agent)
                .await?
                .unwrap_or(error));
        }
    };
    let account = require_agent_owner_or_curator(context, caller, &row).await?;
    Ok((row, account))
}

/// The caller's account, if it owns the agent or its domain, or is a curator.
pub async fn require_agent_owner_or_curator<'a>(
    context: &AppContext,
    caller: &'a Caller,
    agent: &agent::Model,
) -> Result<&'a CallerAccount> {
    let domain_rows = domains::domains_by_ids(&context.store, &[agent.domain_id]).await?;
    let domain = domain_rows
        .first()
        .ok_or_else(|| AppError::no_agent(agent.id))?;
    let now = context.now();
    match &caller.account {
        // While its domain has no owner and no dispute, the account that the card names as owner owns the agent.
        Some(account)
            if domain.domain_owner_at(now).is_none()
                && !is_disputed_domain(domain)?
                && agent.claimed_by == Some(account.id) =>
        {
            Ok(account)
        }
        _ => {
            let account = require_owner_or_curator(&context.store, caller, domain, now).await?;
            if !caller.has_permission(Permission::Curate) {
                require_vouched_origin(context, domain, agent, now).await?;
            }
            Ok(account)
        }
    }
}

/// Rejects a vouched owner if all cards of the agent come from another origin than the vouched one: registering a host
/// by plain http also registers what it serves over TLS.
async fn require_vouched_origin(
    context: &AppContext,
    domain: &domain::Model,
    agent: &agent::Model,
    now: Timestamp,
) -> Result<()> {
    if domain.vouched_owner_at(now).is_none() {
        return Ok(());
    }
    let origin = domain.domain_origin();
    let sources = domains::live_sources_by_domain(&context.store, &[domain.id]).await?;
    let mut agent_sources = sources
        .iter()
        .filter(|source| source.agent_id == Some(agent.id))
        .peekable();
    if agent_sources.peek().is_none()
        || agent_sources.any(|source| url_origin(&source.url) == origin)
    {
        return Ok(());
    }
    Err(AppError::forbidden(format!(
        "An admin vouches for the owner of {origin} only, and this agent is served from another origin."
    )))
}

pub fn check_agent_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    let is_label_text = |text: &str| {
        !text.is_empty()
            && text.len() <= MAX_LABEL_CHARS
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    };
    if labels.len() > MAX_LABELS
        || !labels
            .iter()
            .all(|(key, value)| is_label_text(key) && is_label_text(value))
    {
        return Err(AppError::invalid(
            "/labels",
            format!(
                "An agent has at most {MAX_LABELS} labels; keys and values are 1 to {MAX_LABEL_CHARS} letters, digits, - _ . and /."
            ),
        ));
    }
    Ok(())
}
