//! Holds of agents: placed, lifted, and removed without an event.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_store::entity::hold;
use serde_json::json;

use super::ChangeSet;
use crate::commit::agent_state::AgentChangeState;

impl ChangeSet<'_> {
    /// Puts an agent on hold; does nothing if it already has this hold.
    pub fn place_hold(
        &mut self,
        state: &mut AgentChangeState,
        hold: Hold,
        actor: &str,
        reason: &str,
    ) {
        if state.holds.contains(&hold) {
            return;
        }
        state.holds.push(hold);
        self.holds.push(hold::Model {
            agent_id: state.agent.id,
            hold: hold.into(),
            reason: reason.into(),
            actor: actor.into(),
            since: self.now.0,
        });
        self.mark_agent_changed(state);
        let data = json!({"hold": hold, "reason": reason});
        self.add_agent_event(EventKind::AgentHeld, state.agent.id, actor, data);
    }

    /// Puts an agent on hold for a caller who may repeat what another process has done: this process stops showing the
    /// agent even if nothing changes.
    pub fn ensure_hold(
        &mut self,
        state: &mut AgentChangeState,
        hold: Hold,
        actor: &str,
        reason: &str,
    ) {
        self.confirmed_agents.push(state.agent.id);
        self.place_hold(state, hold, actor, reason);
    }

    /// Lifts a hold; returns whether the agent had it.
    pub fn lift_hold(
        &mut self,
        state: &mut AgentChangeState,
        hold: Hold,
        actor: &str,
        reason: &str,
    ) -> bool {
        let was_held = self.remove_hold(state, hold);
        if was_held {
            let data = json!({"hold": hold, "reason": reason});
            self.add_agent_event(EventKind::AgentReleased, state.agent.id, actor, data);
        }
        was_held
    }

    /// Removes a hold without an event, for a change of the agent that has an event; returns whether the agent had it.
    pub fn remove_hold(&mut self, state: &mut AgentChangeState, hold: Hold) -> bool {
        let Some(index) = state.holds.iter().position(|current| *current == hold) else {
            return false;
        };
        state.holds.remove(index);
        self.lifted_holds.push((state.agent.id, hold));
        self.mark_agent_changed(state);
        true
    }
}
