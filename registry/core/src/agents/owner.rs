//! Changes of an agent by its owner, and the check of ownership.

use std::collections::BTreeMap;

use a2a_registry_api::limits::{MAX_LABEL, MAX_LABELS};
use a2a_registry_api::{Agent, AgentPatch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, agent, domain};
use a2a_registry_store::{Write, accounts, domains};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::origin_of;
use crate::admission::policies::follow_policies;
use crate::agents::shown_collections::{check_collections, set_collections};
use crate::agents::views::{agent_show, agent_visible};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_act;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::ownership::authorization::require_owner_or_curator;
use crate::ownership::dispute::refusal_by_dispute;
use crate::ownership::is_disputed;
use crate::visibility::audience::{check_groups, groups_in, groups_named, kept};
use crate::visibility::caller::{Account, Caller};

/// Sets an agent's visibility with its groups, which its owner may only narrow, its labels and the acceptance of
/// derived queries, which only curators set, and its sponsor.
pub async fn agent_patch(
    context: &Context,
    caller: &Caller,
    agent: &str,
    patch: &AgentPatch,
) -> Result<Agent> {
    let names = patch.groups.as_deref().unwrap_or_default();
    check_groups(&context.config.identity, "/groups", names)?;
    check_collections(patch.collections.as_deref().unwrap_or_default())?;
    let (seen, account) = agent_to_change(context, caller, agent).await?;
    let write = context.store.write().await?;
    if patch.collections.is_some() {
        // Locked before the agent, as a change of a collection does.
        write.collections_lock().await?;
    }
    let mut state = state_of(&write, seen.id).await?;
    if patch.visibility.is_some() || patch.groups.is_some() || patch.collections.is_some() {
        set_visibility(&write, caller, &mut state.agent, patch).await?;
    }
    if let Some(labels) = &patch.labels {
        caller.demand(Permission::Curate)?;
        check_labels(labels)?;
        state.agent.labels = serde_json::to_string(labels).unwrap_or_else(|_| "{}".into());
    }
    if let Some(accepted) = patch.derived_queries {
        caller.demand(Permission::Curate)?;
        state.agent.derived_queries = accepted;
    }
    if let Some(sponsor) = &patch.sponsor {
        state.agent.sponsor_id = sponsor_named(&write, sponsor).await?;
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    ledger.touch(&mut state);
    follow_policies(context, &write, &mut ledger, &mut state).await?;
    let data = event_data(patch);
    ledger.agent_event(EventKind::AgentUpdated, seen.id, &account.name, data);
    commit_act(context, write, ledger).await?;
    agent_show(context, caller, &seen.id.to_string()).await
}

/// The data of the event: the members that the change sets, and always visibility and labels.
fn event_data(patch: &AgentPatch) -> serde_json::Value {
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
    data
}

/// Sets who finds an agent: its visibility, and the groups that see it while it is restricted. An owner can only narrow
/// both.
async fn set_visibility(
    write: &Write,
    caller: &Caller,
    agent: &mut agent::Model,
    patch: &AgentPatch,
) -> Result<()> {
    let curates = caller.may(Permission::Curate);
    let now = agent.visibility()?;
    let visibility = patch.visibility.unwrap_or(now);
    if !curates && visibility < now {
        return Err(only_narrower(&format!("visibility, which is {now}")));
    }
    let present = match now {
        Visibility::Restricted => groups_in(agent.audience.as_deref()),
        _ => Vec::new(),
    };
    let audience = match (visibility, &patch.groups) {
        (Visibility::Restricted, Some(names)) => {
            let groups = groups_named(write, caller, names, &present).await?;
            let widens = groups.iter().any(|group| !present.contains(group));
            if !curates && now == Visibility::Restricted && widens {
                return Err(only_narrower("groups"));
            }
            Some(kept(&groups))
        }
        (Visibility::Restricted, None) if !present.is_empty() => Some(kept(&present)),
        (_, Some(names)) if !names.is_empty() => {
            let detail = "only a restricted agent is shown to groups; set its visibility too";
            return Err(AppError::invalid("/groups", detail));
        }
        _ => None,
    };
    match (visibility, &patch.collections) {
        (Visibility::Restricted, Some(names)) => {
            let is_wider = set_collections(write, caller, agent, names).await?;
            if !curates && now == Visibility::Restricted && is_wider {
                return Err(only_narrower("collections"));
            }
        }
        (Visibility::Restricted, None) => {}
        (_, Some(names)) if !names.is_empty() => {
            let detail = "only a restricted agent is shown to audiences; set its visibility too";
            return Err(AppError::invalid("/collections", detail));
        }
        _ => (agent.collections, agent.collection_audience) = (None, None),
    }
    agent.visibility = visibility.into();
    agent.audience = audience;
    Ok(())
}

fn only_narrower(what: &str) -> AppError {
    AppError::forbidden(format!(
        "An owner may only narrow an agent's {what}; ask a curator to widen it."
    ))
}

/// The account with this name, which must be enabled; `None` for an empty name.
async fn sponsor_named(write: &Write, name: &str) -> Result<Option<Uuid>> {
    if name.is_empty() {
        return Ok(None);
    }
    let account = accounts::account_by_name(write, name).await?;
    match account.filter(account::Model::may_be_used) {
        Some(account) => Ok(Some(account.id)),
        None => Err(AppError::conflict(
            "The sponsor is no account that may be used; make it first.",
        )),
    }
}

pub async fn agent_to_change<'a>(
    context: &Context,
    caller: &'a Caller,
    agent: &str,
) -> Result<(agent::Model, &'a Account)> {
    let row = match agent_visible(context, caller, agent).await {
        Ok(row) => row,
        // An agent on hold for the dispute is hidden from a party that has not registered it.
        Err(error) => {
            return Err(refusal_by_dispute(context, caller, agent)
                .await?
                .unwrap_or(error));
        }
    };
    let account = require_agent_owner_or_curator(context, caller, &row).await?;
    Ok((row, account))
}

/// The caller's account, if it owns the agent or its domain, or curates.
pub async fn require_agent_owner_or_curator<'a>(
    context: &Context,
    caller: &'a Caller,
    agent: &agent::Model,
) -> Result<&'a Account> {
    let row = domains::domains_by_ids(&context.store, &[agent.domain_id]).await?;
    let row = row.first().ok_or_else(|| AppError::no_agent(agent.id))?;
    let now = context.now();
    match &caller.account {
        // While its domain has no owner and no dispute, the account that the card itself names owns the agent.
        Some(account)
            if row.owner_at(now).is_none()
                && !is_disputed(row)?
                && agent.claimed_by == Some(account.id) =>
        {
            Ok(account)
        }
        _ => {
            let account = require_owner_or_curator(&context.store, caller, row, now).await?;
            if !caller.may(Permission::Curate) {
                refuse_other_origin(context, row, agent, now).await?;
            }
            Ok(account)
        }
    }
}

/// Refuses an owner that an admin vouches for if all cards of the agent come from another origin than the vouched one:
/// a host that was registered by plain http also has what is served there over TLS.
async fn refuse_other_origin(
    context: &Context,
    row: &domain::Model,
    agent: &agent::Model,
    now: Timestamp,
) -> Result<()> {
    if row.vouched_owner_at(now).is_none() {
        return Ok(());
    }
    let origin = row.origin();
    let sources = domains::sources_of(&context.store, &[row.id]).await?;
    let mut feeding = sources
        .iter()
        .filter(|source| source.agent_id == Some(agent.id))
        .peekable();
    if feeding.peek().is_none() || feeding.any(|source| origin_of(&source.url) == origin) {
        return Ok(());
    }
    Err(AppError::forbidden(format!(
        "An admin vouches for the owner of {origin}, and this agent is served elsewhere."
    )))
}

pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    let word = |text: &str| {
        !text.is_empty()
            && text.len() <= MAX_LABEL
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    };
    if labels.len() > MAX_LABELS || !labels.iter().all(|(key, value)| word(key) && word(value)) {
        return Err(AppError::invalid(
            "/labels",
            format!(
                "An agent has at most {MAX_LABELS} labels; keys and values are 1 to {MAX_LABEL} letters, digits, - _ . and /."
            ),
        ));
    }
    Ok(())
}
