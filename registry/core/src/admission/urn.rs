//! URNs of agents, which are permanent once their domain is verified (docs/model.md#lasting-names).

use std::collections::HashSet;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::urn::{candidate_urns, urn_from_identifier};
use a2a_registry_store::entity::domain;
use a2a_registry_store::{WriteTransaction, agents};
use serde_json::json;

use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::error::Result;

/// Gives an agent its URN: its identifier in the domain's own catalog, else one derived from its name. The agent keeps
/// the URN forever, and no other agent ever gets it. Nothing happens if it has one, if its domain is not verified, or
/// if the verification does not cover the card. The caller has locked the domain's row.
pub async fn assign_urn<'i>(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    row: &domain::Model,
    identifiers: impl Iterator<Item = &'i str>,
    name: &str,
    coverage_level: CoverageLevel,
) -> Result<()> {
    if state.agent.urn.is_some()
        || !row.is_domain_proved()
        || coverage_level != CoverageLevel::Covered
    {
        return Ok(());
    }
    let taken: HashSet<String> = agents::agent_urns_by_domain(write, &row.name)
        .await?
        .into_iter()
        .collect();
    let own = identifiers.filter_map(|identifier| urn_from_identifier(&row.name, identifier));
    let free = |urn: &String| !taken.contains(urn) && !change_set.has_agent_with_urn(urn);
    let urn = own.chain(candidate_urns(&row.name, name)).find(free);
    let data = json!({"urn": urn});
    state.agent.urn = urn;
    change_set.put_agent(&state.agent);
    change_set.add_agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM_ACTOR, data);
    Ok(())
}
