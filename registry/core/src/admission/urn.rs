//! URNs of agents, which are permanent once their domain is verified (docs/publish/prove.md#lasting-names).

use std::collections::HashSet;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::urn::{authority_candidate_urns, candidate_urns, urn_from_identifier};
use a2a_registry_store::entity::{agent, domain};
use a2a_registry_store::{WriteTransaction, agents};
use serde_json::json;

use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::config::ArdConfig;
use crate::context::AppContext;
use crate::error::Result;

/// Gives an agent the URNs that it may have by the name of its card and its coverage. It keeps them forever, and no
/// other agent ever gets them. The caller has locked the domain's row.
///
/// If the domain is verified, and the verification covers the card, its own URN is its identifier in the domain's own
/// catalog, else one derived from its name. If an admin vouches for a host that cannot be proved, and the card is not
/// merely nominated, the agent gets one under the company's authority.
pub async fn assign_urns<'i>(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    row: &domain::Model,
    identifiers: impl Iterator<Item = &'i str>,
    (name, coverage_level): (&str, CoverageLevel),
) -> Result<()> {
    let config = context.config();
    let data = if lacks_own_urn(&state.agent, row) && coverage_level == CoverageLevel::Covered {
        let own: Vec<String> = identifiers
            .filter_map(|identifier| urn_from_identifier(&row.name, identifier))
            .collect();
        let candidates = own.into_iter().chain(candidate_urns(&row.name, name));
        let urn = find_free_urn(write, change_set, row, candidates).await?;
        state.agent.urn.clone_from(&urn);
        json!({"urn": urn})
    } else if lacks_authority_urn(&config.ard, &state.agent, row) && coverage_level.is_admitted() {
        let authority = config.ard.authority.as_str();
        let candidates = authority_candidate_urns(authority, &row.name, name);
        let urn = find_free_urn(write, change_set, row, candidates).await?;
        state.agent.authority = Some(authority.to_owned());
        state.agent.authority_urn.clone_from(&urn);
        json!({"urn": urn, "authority": authority})
    } else {
        return Ok(());
    };
    change_set.put_agent(&state.agent);
    change_set.add_agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM_ACTOR, data);
    Ok(())
}

/// Whether an agent has no URN of its own, and gets one if a proof covers its card.
pub fn lacks_own_urn(agent: &agent::Model, row: &domain::Model) -> bool {
    agent.urn.is_none() && row.is_domain_proved()
}

/// Whether an agent has no URN at all, and gets one under the company's authority if its card is not merely nominated.
/// A host with the authority's own name gets none: its agents would be taken for those of the proved domain.
pub fn lacks_authority_urn(config: &ArdConfig, agent: &agent::Model, row: &domain::Model) -> bool {
    agent.current_urn().is_none() && is_named_by_authority(config, row)
}

/// Whether the agents of a domain get URNs under the company's authority.
pub fn is_named_by_authority(config: &ArdConfig, row: &domain::Model) -> bool {
    !config.authority.is_empty()
        && row.is_only_vouched()
        && !row.can_be_proved()
        && row.name != config.authority
}

/// The first of these URNs that no agent has or had.
async fn find_free_urn(
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    row: &domain::Model,
    candidates: impl Iterator<Item = String>,
) -> Result<Option<String>> {
    let taken: HashSet<String> = agents::agent_urns_by_domain(write, &row.name)
        .await?
        .into_iter()
        .collect();
    for urn in candidates {
        if taken.contains(&urn) || change_set.has_agent_with_urn(&urn) {
            continue;
        }
        // An agent of another domain has it if that domain's agents were named under this one.
        if agents::agent_by_urn(write, &urn).await?.is_none() {
            return Ok(Some(urn));
        }
    }
    Ok(None)
}
