//! Applies changed admission rules to one agent: places or lifts its hold, and keeps or revokes its approval.

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_store::{WriteTransaction, decisions};
use uuid::Uuid;

use crate::admission::decision::{redecide_pending_version, revoke_approval};
use crate::admission::policies::update_policy_hold;
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::context::AppContext;
use crate::error::{ErrorKind, Result};

/// Applies the rules to one agent that they may affect: places or lifts the hold `denied`, revokes an approval by
/// `--approve-all`, lets policies place or lift their hold, and decides the pending version.
pub async fn apply_rules_to_agent(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    id: Uuid,
) -> Result<()> {
    let mut state = match load_agent_state(write, id).await {
        Ok(state) => state,
        // The agent was deleted in the meantime.
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if state.agent.retired_at.is_some() {
        change_set.remove_hold(&mut state, Hold::RulesChanged);
        return Ok(());
    }
    let mut has_event = false;
    if context.rules().denies(&state.agent.domain) {
        has_event |= !state.holds.contains(&Hold::Denied);
        let reason = "the domain is on deny_domains";
        change_set.place_hold(&mut state, Hold::Denied, POLICY_ACTOR, reason);
    } else {
        let reason = "the domain is no longer on deny_domains";
        if change_set.lift_hold(&mut state, Hold::Denied, POLICY_ACTOR, reason) {
            has_event = true;
            // Versions that were fetched while the domain was denied have no decision yet.
            redecide_pending_version(context, write, change_set, &mut state, POLICY_ACTOR).await?;
        }
    }
    // An agent in a state of a later build is hidden from everyone, and left to that build.
    if state.agent.lifecycle.known_value().is_some()
        && is_approved_by_approve_all(context, write, &state).await?
    {
        has_event = true;
        revoke_approval(context, write, change_set, &mut state, POLICY_ACTOR).await?;
        // Nothing is decided for a denied domain, so no row would be written otherwise.
        change_set.mark_agent_changed(&mut state);
    }
    update_policy_hold(context, write, change_set, &mut state).await?;
    match has_event {
        true => {
            change_set.remove_hold(&mut state, Hold::RulesChanged);
        }
        false => {
            let reason = "decided by the current rules";
            change_set.lift_hold(&mut state, Hold::RulesChanged, POLICY_ACTOR, reason);
        }
    }
    Ok(())
}

/// Whether the latest approval of an agent's served version is by `--approve-all`, which is no longer set.
async fn is_approved_by_approve_all(
    context: &AppContext,
    write: &WriteTransaction,
    state: &AgentChangeState,
) -> Result<bool> {
    let Some(approved) = state
        .agent
        .approved_version
        .filter(|_| !context.rules().approve_all)
    else {
        return Ok(false);
    };
    let agent_decisions = decisions::decisions_by_agent(write, &[state.agent.id]).await?;
    let mut latest = agent_decisions.iter().rev();
    let latest = latest
        .find(|row| row.version_id == approved && row.approved && row.rule != Rule::BreakGlass);
    Ok(latest.is_some_and(|row| row.rule == Rule::ApproveAll))
}
