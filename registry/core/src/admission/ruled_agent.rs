//! What changed admission rules mean for one agent: it is put on hold or released, and its approval stays or is
//! revoked.

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_store::{Write, decisions};
use uuid::Uuid;

use crate::admission::decision::{decide_waiting, revoke_approval};
use crate::admission::policies::follow_policies;
use crate::commit::approver::POLICY;
use crate::commit::ledger::Ledger;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{ErrorKind, Result};

/// Decides by the rules on one agent that they may concern: it is put on the hold `denied` or released, its approval by
/// `--approve-all` is revoked, policies put it on hold or release it, and its pending version is decided.
pub async fn decide_on_agent(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    id: Uuid,
) -> Result<()> {
    let mut state = match state_of(write, id).await {
        Ok(state) => state,
        // Deleted in the meantime.
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if state.agent.retired_at.is_some() {
        ledger.end_hold(&mut state, Hold::RulesChanged);
        return Ok(());
    }
    let mut has_event = false;
    if context.rules.denies(&state.agent.domain) {
        has_event |= !state.holds.contains(&Hold::Denied);
        let reason = "the domain is on deny_domains";
        ledger.hold(&mut state, Hold::Denied, POLICY, reason);
    } else {
        let reason = "the domain is no longer on deny_domains";
        if ledger.lift(&mut state, Hold::Denied, POLICY, reason) {
            has_event = true;
            // Versions that were fetched while the domain was denied have no decision yet.
            decide_waiting(context, write, ledger, &mut state, POLICY).await?;
        }
    }
    // An agent in a state that only a later build knows is shown to no one, and left to that build.
    if state.agent.lifecycle.known().is_some()
        && is_approved_by_option(context, write, &state).await?
    {
        has_event = true;
        revoke_approval(context, write, ledger, &mut state, POLICY).await?;
        // For a denied domain nothing is decided, which writes no row.
        ledger.touch(&mut state);
    }
    follow_policies(context, write, ledger, &mut state).await?;
    match has_event {
        true => {
            ledger.end_hold(&mut state, Hold::RulesChanged);
        }
        false => {
            let reason = "it is decided by the present rules";
            ledger.lift(&mut state, Hold::RulesChanged, POLICY, reason);
        }
    }
    Ok(())
}

/// Whether an agent's served version has its latest approval from `--approve-all`, which is no longer set.
async fn is_approved_by_option(
    context: &Context,
    write: &Write,
    state: &AgentState,
) -> Result<bool> {
    let Some(approved) = state
        .agent
        .approved_version
        .filter(|_| !context.rules.approve_all)
    else {
        return Ok(false);
    };
    let made = decisions::decisions_on(write, &[state.agent.id]).await?;
    let mut latest = made.iter().rev();
    let latest = latest
        .find(|row| row.version_id == approved && row.approved && row.rule != Rule::BreakGlass);
    Ok(latest.is_some_and(|row| row.rule == Rule::ApproveAll))
}
