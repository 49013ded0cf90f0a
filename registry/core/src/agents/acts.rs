//! Acts on agents: suspend by curators; deprecate, undeprecate and retire by owners too.

use a2a_registry_api::{Act, Agent, Deprecate, Deprecation};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::role::Permission;
use serde_json::json;
use uuid::Uuid;

use crate::agents::owner::agent_to_change;
use crate::agents::views::{agent_show, agent_visible};
use crate::commit::approver::check_reason;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_act;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::visibility::caller::{Account, Caller};

pub async fn agent_suspend(
    context: &Context,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    curators_act(context, caller, agent, act, |ledger, state, account| {
        ledger.hold(state, Hold::Operator, &account.name, &act.reason);
        Ok(())
    })
    .await
}

/// It stays listed, with the reason, sunset and replacement.
pub async fn agent_deprecate(
    context: &Context,
    caller: &Caller,
    agent: &str,
    what: &Deprecate,
) -> Result<Agent> {
    let replacement = match what.replacement.as_deref() {
        Some(named) => Some(replacement(context, caller, agent, named).await?),
        None => None,
    };
    let now = context.now();
    if what.sunset.is_some_and(|sunset| sunset < now) {
        return Err(AppError::invalid("/sunset", "this time has passed"));
    }
    let deprecation = Deprecation {
        message: what.reason.clone(),
        since: now,
        replacement,
        sunset: what.sunset,
    };
    owners_act(
        context,
        caller,
        agent,
        &what.reason,
        |ledger, state, account| {
            expect(state, Lifecycle::Approved, "deprecated")?;
            state.agent.lifecycle = Lifecycle::Deprecated.into();
            let data = json!({
                "reason": deprecation.message,
                "replacement": deprecation.replacement,
                "sunset": deprecation.sunset,
            });
            let kept = serde_json::to_string(&deprecation).map_err(|error| {
                AppError::internal(format!("a deprecation cannot be written as JSON: {error}"))
            })?;
            state.agent.deprecation = Some(kept);
            ledger.touch(state);
            ledger.agent_event(
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
    context: &Context,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    owners_act(
        context,
        caller,
        agent,
        &act.reason,
        |ledger, state, account| {
            expect(state, Lifecycle::Deprecated, "taken back")?;
            state.agent.lifecycle = Lifecycle::Approved.into();
            state.agent.deprecation = None;
            ledger.touch(state);
            let data = json!({"reason": act.reason});
            ledger.agent_event(
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

async fn replacement(context: &Context, caller: &Caller, agent: &str, named: &str) -> Result<Uuid> {
    let row = match agent_visible(context, caller, named).await {
        Ok(row) => row,
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Err(AppError::invalid(
                "/replacement",
                "this agent is not registered",
            ));
        }
        Err(error) => return Err(error),
    };
    if row.id.to_string() == agent || row.urn.as_deref() == Some(agent) {
        let detail = "an agent cannot be its own replacement";
        return Err(AppError::invalid("/replacement", detail));
    }
    if row.retired_at.is_some() {
        return Err(AppError::invalid("/replacement", "it has been retired"));
    }
    Ok(row.id)
}

/// Retires an agent for good; its id is never used again.
pub async fn agent_retire(
    context: &Context,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    owners_act(
        context,
        caller,
        agent,
        &act.reason,
        |ledger, state, account| {
            ledger.retire(state, &account.name, &act.reason);
            Ok(())
        },
    )
    .await
}

async fn curators_act(
    context: &Context,
    caller: &Caller,
    agent: &str,
    act: &Act,
    change: impl FnOnce(&mut Ledger<'_>, &mut AgentState, &Account) -> Result<()>,
) -> Result<Agent> {
    let account = caller.demand(Permission::Curate)?;
    let id = agent_visible(context, caller, agent).await?.id;
    change_agent(context, caller, account, id, &act.reason, change).await
}

async fn owners_act(
    context: &Context,
    caller: &Caller,
    agent: &str,
    reason: &str,
    change: impl FnOnce(&mut Ledger<'_>, &mut AgentState, &Account) -> Result<()>,
) -> Result<Agent> {
    caller.demand(Permission::Register)?;
    let (row, account) = agent_to_change(context, caller, agent).await?;
    change_agent(context, caller, account, row.id, reason, change).await
}

async fn change_agent(
    context: &Context,
    caller: &Caller,
    account: &Account,
    id: Uuid,
    reason: &str,
    change: impl FnOnce(&mut Ledger<'_>, &mut AgentState, &Account) -> Result<()>,
) -> Result<Agent> {
    check_reason(reason)?;
    let write = context.store.write().await?;
    let mut state = state_of(&write, id).await?;
    if state.agent.retired_at.is_some() {
        return Err(AppError::conflict("The agent has been retired for good."));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    change(&mut ledger, &mut state, account)?;
    commit_act(context, write, ledger).await?;
    agent_show(context, caller, &id.to_string()).await
}

/// Refuses an act on an agent that is not in the lifecycle state it needs.
fn expect(state: &AgentState, wanted: Lifecycle, done: &str) -> Result<()> {
    let now = state.agent.lifecycle()?;
    if now == wanted {
        return Ok(());
    }
    Err(AppError::conflict(format!(
        "Only an agent that is {wanted} can be {done}; this one is {now}."
    )))
}
