//! Lifecycle actions on agents: curators suspend; owners may also deprecate, undeprecate and retire.

use a2a_registry_api::{Act, Agent, Deprecate, Deprecation};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::role::Permission;
use serde_json::json;
use uuid::Uuid;

use crate::agents::owner_updates::require_changeable_agent;
use crate::agents::views::{agent_show, require_visible_agent};
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::visibility::caller::{Caller, CallerAccount};

pub async fn agent_suspend(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    change_agent_as_curator(context, caller, agent, act, |change_set, state, account| {
        change_set.ensure_hold(state, Hold::Operator, &account.name, &act.reason);
        Ok(())
    })
    .await
}

/// Deprecates an agent. It stays listed, with the reason, sunset and replacement.
pub async fn agent_deprecate(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    request: &Deprecate,
) -> Result<Agent> {
    let replacement = match request.replacement.as_deref() {
        Some(named) => Some(resolve_replacement_agent(context, caller, agent, named).await?),
        None => None,
    };
    let now = context.now();
    if request.sunset.is_some_and(|sunset| sunset < now) {
        return Err(AppError::invalid("/sunset", "the time is in the past"));
    }
    let deprecation = Deprecation {
        message: request.reason.clone(),
        since: now,
        replacement,
        sunset: request.sunset,
    };
    change_agent_as_owner(
        context,
        caller,
        agent,
        &request.reason,
        |change_set, state, account| {
            require_lifecycle(state, Lifecycle::Approved, "deprecated")?;
            state.agent.lifecycle = Lifecycle::Deprecated.into();
            let data = json!({
                "reason": deprecation.message,
                "replacement": deprecation.replacement,
                "sunset": deprecation.sunset,
            });
            let deprecation_json = serde_json::to_string(&deprecation).map_err(|error| {
                AppError::internal(format!(
                    "a deprecation cannot be serialized to JSON: {error}"
                ))
            })?;
            state.agent.deprecation = Some(deprecation_json);
            change_set.mark_agent_changed(state);
            change_set.add_agent_event(
                EventKind::AgentDeprecated,
                state.agent.id,
                &account.name,
                data,
            );
            Ok(())
        },
    )
    .await
}

/// Ends the deprecation of an agent; it is approved as before.
pub async fn agent_undeprecate(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    change_agent_as_owner(
        context,
        caller,
        agent,
        &act.reason,
        |change_set, state, account| {
            require_lifecycle(state, Lifecycle::Deprecated, "undeprecated")?;
            state.agent.lifecycle = Lifecycle::Approved.into();
            state.agent.deprecation = None;
            change_set.mark_agent_changed(state);
            let data = json!({"reason": act.reason});
            change_set.add_agent_event(
                EventKind::AgentUndeprecated,
                state.agent.id,
                &account.name,
                data,
            );
            Ok(())
        },
    )
    .await
}

async fn resolve_replacement_agent(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    replacement: &str,
) -> Result<Uuid> {
    let row = match require_visible_agent(context, caller, replacement).await {
        Ok(row) => row,
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Err(AppError::invalid(
                "/replacement",
                "the agent is not registered",
            ));
        }
        Err(error) => return Err(error),
    };
    if row.id.to_string() == agent || row.has_urn(agent) {
        let detail = "an agent cannot be its own replacement";
        return Err(AppError::invalid("/replacement", detail));
    }
    if row.retired_at.is_some() {
        return Err(AppError::invalid(
            "/replacement",
            "the replacement has been retired",
        ));
    }
    Ok(row.id)
}

/// Retires an agent permanently; its id is never used again.
pub async fn agent_retire(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    change_agent_as_owner(
        context,
        caller,
        agent,
        &act.reason,
        |change_set, state, account| {
            change_set.retire_agent(state, &account.name, &act.reason);
            Ok(())
        },
    )
    .await
}

async fn change_agent_as_curator(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    act: &Act,
    change: impl FnOnce(&mut ChangeSet<'_>, &mut AgentChangeState, &CallerAccount) -> Result<()>,
) -> Result<Agent> {
    let account = caller.require_permission(Permission::Curate)?;
    let id = require_visible_agent(context, caller, agent).await?.id;
    change_agent(context, caller, account, id, &act.reason, change).await
}

async fn change_agent_as_owner(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    reason: &str,
    change: impl FnOnce(&mut ChangeSet<'_>, &mut AgentChangeState, &CallerAccount) -> Result<()>,
) -> Result<Agent> {
    caller.require_permission(Permission::Register)?;
    let (row, account) = require_changeable_agent(context, caller, agent).await?;
    change_agent(context, caller, account, row.id, reason, change).await
}

async fn change_agent(
    context: &AppContext,
    caller: &Caller,
    account: &CallerAccount,
    id: Uuid,
    reason: &str,
    change: impl FnOnce(&mut ChangeSet<'_>, &mut AgentChangeState, &CallerAccount) -> Result<()>,
) -> Result<Agent> {
    check_reason(reason)?;
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, id).await?;
    if state.agent.retired_at.is_some() {
        return Err(AppError::conflict(
            "The agent has been retired permanently.",
        ));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    change(&mut change_set, &mut state, account)?;
    commit_and_await_index(context, write, change_set).await?;
    agent_show(context, caller, &id.to_string()).await
}

/// Rejects an action on an agent that is not in the required lifecycle state.
fn require_lifecycle(state: &AgentChangeState, required: Lifecycle, action: &str) -> Result<()> {
    let now = state.agent.lifecycle()?;
    if now == required {
        return Ok(());
    }
    Err(AppError::conflict(format!(
        "Only an agent that is {required} can be {action}; this one is {now}."
    )))
}
