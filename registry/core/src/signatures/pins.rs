//! Pinned keys: the keys that sign an agent's card are pinned on first use, and a card signed only by other keys puts
//! the agent on hold (docs/publish/sign.md#change-a-key).

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_store::entity::agent;
use a2a_registry_store::{WriteTransaction, versions};
use serde_json::json;

use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{CRAWLER_ACTOR, SYSTEM_ACTOR};
use crate::error::Result;

const MAX_PINS: usize = 16;

/// Checks the keys that verify a card against the pinned keys; returns whether none of them is pinned. The first keys
/// are pinned, and so are keys that sign together with a pinned key, which vouches for them.
pub fn check_and_pin_keys(agent: &mut agent::Model, thumbprints: &str) -> bool {
    if thumbprints.is_empty() {
        // A missing signature is a change with its own class. Keys that could not be fetched decide nothing.
        return false;
    }
    let mut pins: Vec<&str> = agent.pins.split_whitespace().collect();
    let vouched = pins.is_empty()
        || thumbprints
            .split_whitespace()
            .any(|key| pins.contains(&key));
    if !vouched {
        return true;
    }
    for key in thumbprints.split_whitespace() {
        if pins.len() < MAX_PINS && !pins.contains(&key) {
            pins.push(key);
        }
    }
    agent.pins = pins.join(" ");
    false
}

/// Puts an agent on hold because its card is signed by keys that are not pinned, until a curator accepts them or a
/// later check finds the domain's record again.
pub async fn hold_for_changed_key(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
) -> Result<()> {
    if state.holds.contains(&Hold::KeyChanged) {
        return Ok(());
    }
    change_set.place_hold(
        state,
        Hold::KeyChanged,
        CRAWLER_ACTOR,
        "the card is signed by a key that is not pinned for this agent",
    );
    let now = change_set.now().0;
    Ok(write
        .bring_check_forward(state.agent.domain_id, now)
        .await?)
}

/// Pins the keys that sign an agent's newest card, and lifts the hold that they caused.
pub async fn pin_newest_keys(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
) -> Result<()> {
    if !state.holds.contains(&Hold::KeyChanged) {
        return Ok(());
    }
    let newest: Vec<uuid::Uuid> = state.agent.newest_version.into_iter().collect();
    let Some(newest) = versions::version_summaries(write, &newest).await?.pop() else {
        return Ok(());
    };
    // The domain's record vouches only for cards that it covers.
    if change_set.version_coverage_level(&newest) != CoverageLevel::Covered {
        return Ok(());
    }
    state.pin_keys(&newest.thumbprints);
    let reason = "the domain's record was found after the key had changed";
    change_set.lift_hold(state, Hold::KeyChanged, SYSTEM_ACTOR, reason);
    let data = json!({"pins": state.agent.pins});
    change_set.add_agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM_ACTOR, data);
    Ok(())
}
