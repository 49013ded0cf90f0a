//! Counts agents that a search leaves out because they have no URN, which identifies catalog entries.

use a2a_registry_api::ard::AGENT_CARD_TYPE;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::agents::catalog_entry::any_catalog_entry_filter;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::search::engine::{SurfaceQuery, count_matches};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{AgentProperty, ExactFilter};

/// Number of agents without a URN that match the text and conditions of a search.
pub(crate) async fn count_agents_without_urn(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
    filters: &SurfaceQuery,
) -> Result<u64> {
    let mut unrestricted = filters.clone();
    unrestricted
        .exact_filters
        .retain(|one| !matches_every_entry(one));
    let mut with_entry = unrestricted.clone();
    with_entry.exact_filters.push(any_catalog_entry_filter());
    let counts = count_matches(context, caller, query, &[unrestricted, with_entry]).await?;
    // The index may change between the two queries.
    Ok(match counts.as_slice() {
        [all, named] => all.saturating_sub(*named),
        _ => 0,
    })
}

/// Whether a condition is true for every agent with an entry. The index has no type for an agent without an entry.
fn matches_every_entry(condition: &ExactFilter) -> bool {
    let is_type = condition.property == AgentProperty::Attribute("type".to_owned());
    let takes_agents = condition.values.iter().any(|one| one == AGENT_CARD_TYPE);
    *condition == any_catalog_entry_filter() || (is_type && takes_agents)
}

/// Hint about the number of agents without a URN; `None` if there are none.
pub(crate) fn without_urn_hint(agents: u64) -> Option<String> {
    match agents {
        0 => None,
        1 => Some(
            "1 matching agent is left out because it has no URN: its domain is not proved. /v1/agents finds it."
                .to_owned(),
        ),
        count => Some(format!(
            "{count} matching agents are left out because they have no URN: their domains are not proved. \
            /v1/agents finds them."
        )),
    }
}
