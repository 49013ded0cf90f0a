//! Agents that a search leaves out because they have no URN, by which catalogs name entries.

use a2a_registry_api::ard::AGENT_CARD_TYPE;
use a2a_registry_core::agents::catalog_entry::any_entry;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::Result;
use a2a_registry_core::search::find::{Extra, match_counts};
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{ExactFilter, Property};

/// The number of agents that match the words and conditions of a search and have no URN.
pub(crate) async fn agents_without_urn(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    extra: &Extra,
) -> Result<u64> {
    let mut all = extra.clone();
    all.exact.retain(|one| !every_agent_fits(one));
    let mut named = all.clone();
    named.exact.push(any_entry());
    let counts = match_counts(context, caller, query, &[all, named]).await?;
    // The index may have changed between the two.
    Ok(match counts.as_slice() {
        [all, named] => all.saturating_sub(*named),
        _ => 0,
    })
}

/// Whether a condition holds for every agent that has an entry. The index keeps no type for an agent without one.
fn every_agent_fits(condition: &ExactFilter) -> bool {
    let is_type = condition.property == Property::Attribute("type".to_owned());
    let takes_agents = condition.values.iter().any(|one| one == AGENT_CARD_TYPE);
    *condition == any_entry() || (is_type && takes_agents)
}

/// `None` if there are none.
pub(crate) fn left_out_sentence(agents: u64) -> Option<String> {
    match agents {
        0 => None,
        1 => Some(
            "1 agent that matches is left out: it has no URN, which comes with the proof of a domain. /v1/agents finds it."
                .to_owned(),
        ),
        count => Some(format!(
            "{count} agents that match are left out: they have no URN, which comes with the proof of a domain. /v1/agents \
             finds them."
        )),
    }
}
