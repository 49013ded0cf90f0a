//! The URNs of agents, given for good once their domain is proved (docs/model.md#lasting-names).

use std::collections::HashSet;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::urn::{minted, published_by};
use a2a_registry_store::entity::domain;
use a2a_registry_store::{Write, agents};
use serde_json::json;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::error::Result;

/// Gives an agent its URN: its identifier in the domain's own catalog, else one derived from its name. It keeps the URN
/// forever, and no other agent ever gets it. Nothing happens if it has one, if its domain is not proved, or if the
/// proof does not cover the card. The caller has locked the domain's row.
pub async fn assign<'i>(
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    row: &domain::Model,
    identifiers: impl Iterator<Item = &'i str>,
    name: &str,
    standing: CoverageLevel,
) -> Result<()> {
    if state.agent.urn.is_some() || !row.is_proved() || standing != CoverageLevel::Covered {
        return Ok(());
    }
    let taken: HashSet<String> = agents::urns_of(write, &row.name)
        .await?
        .into_iter()
        .collect();
    let own = identifiers.filter_map(|identifier| published_by(&row.name, identifier));
    let free = |urn: &String| !taken.contains(urn) && !ledger.has_urn(urn);
    let urn = own.chain(minted(&row.name, name)).find(free);
    let data = json!({"urn": urn});
    state.agent.urn = urn;
    ledger.put_agent(&state.agent);
    ledger.agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM, data);
    Ok(())
}
