//! The keys that an agent's card is known to be signed with: pinned on first use, and another one is never
//! passed over in silence (docs/ownership.md#keys).

use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_store::entity::agent;
use a2a_registry_store::{Write, versions};
use serde_json::json;

use crate::commit::ledger::{AgentState, CRAWLER, Ledger, SYSTEM};
use crate::error::AppError;

/// Keys that one agent's card is known by at once.
const MAX_PINS: usize = 16;

/// Looks at the keys a card verifies with; says whether the card was known by others. The first keys are pinned,
/// and so are those that come together with a known one, which vouches for them.
pub(crate) fn look(agent: &mut agent::Model, thumbprints: &str) -> bool {
    if thumbprints.is_empty() {
        // A signature that went missing is a change of its own class; keys that are away say nothing.
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

/// A card came signed by keys that it was not known by: it is withheld until somebody accepts them, or the
/// domain's record proves once more, from now on, that the domain is its owner's.
pub(crate) async fn key_changed(
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    if state.holds.contains(&Hold::KeyChanged) {
        return Ok(());
    }
    ledger.hold(
        state,
        Hold::KeyChanged,
        CRAWLER,
        "the card is signed by a key that it was not known by",
    );
    let now = ledger.now().0;
    Ok(write.domain_check_soon(state.agent.domain_id, now).await?)
}

/// Accepts the keys that an agent's newest card is signed with, and lifts the hold they caused.
pub(crate) async fn accept_keys(
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    if !state.holds.contains(&Hold::KeyChanged) {
        return Ok(());
    }
    let newest: Vec<uuid::Uuid> = state.agent.newest_version.into_iter().collect();
    let Some(newest) = versions::version_keys(write, &newest).await?.pop() else {
        return Ok(());
    };
    // The record speaks for what it covers.
    if ledger.standing_of(&newest) != Standing::Covered {
        return Ok(());
    }
    accept(&mut state.agent, &newest.thumbprints);
    let reason = "the domain's record was found after the key had changed";
    ledger.lift(state, Hold::KeyChanged, SYSTEM, reason);
    let data = json!({"pins": state.agent.pins});
    ledger.agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM, data);
    Ok(())
}

/// Lets an agent's card be known by these keys from now on.
pub(crate) fn accept(agent: &mut agent::Model, thumbprints: &str) {
    if !thumbprints.is_empty() {
        thumbprints.clone_into(&mut agent.pins);
    }
}
