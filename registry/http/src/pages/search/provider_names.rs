//! Provider names as written in cards. The index has them in lower case, as the filter compares them.

use std::collections::BTreeMap;

use a2a_registry_api::{AgentList, Hit};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::search::value_names::load_value_names;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::facet::Facet;
use serde::Deserialize;

/// Maximum number of provider names to look up for one page. Names on the page itself need no look-up.
const MAX_LOOKED_UP: usize = 12;

/// Provider names by filter value.
pub(crate) type ProviderNames = BTreeMap<String, String>;

#[derive(Deserialize)]
struct StoredProviderHit {
    provider: Option<StoredProvider>,
}

#[derive(Deserialize)]
struct StoredProvider {
    organization: Option<String>,
}

pub(crate) fn hit_provider_names(hits: &[Hit]) -> ProviderNames {
    let providers = hits.iter().filter_map(|hit| hit.summary.provider.as_ref());
    let names = providers.filter_map(|provider| provider.organization.as_deref());
    names
        .map(|name| (name.to_lowercase(), name.to_owned()))
        .collect()
}

/// Loads the names of the providers that a list counts: from its hits, otherwise from an agent of the provider that
/// the caller finds. A name that cannot be looked up stays in lower case.
pub(crate) async fn load_provider_names(
    context: &AppContext,
    caller: &Caller,
    list: &AgentList,
) -> ProviderNames {
    let mut names = hit_provider_names(&list.agents);
    let facet = list.facets.get("provider");
    let counted = facet.into_iter().flat_map(|facet| &facet.values);
    let missing: Vec<String> = counted
        .map(|one| one.value.clone())
        .filter(|value| !value.is_empty() && !names.contains_key(value))
        .take(MAX_LOOKED_UP)
        .collect();
    let found = load_value_names(
        context,
        caller,
        Facet::Provider,
        missing,
        1,
        stored_provider_name,
    );
    for name in found.await.into_values() {
        names.entry(name.to_lowercase()).or_insert(name);
    }
    names
}

fn stored_provider_name(_: &str, hit: &[u8]) -> Option<String> {
    let stored: StoredProviderHit = serde_json::from_slice(hit).ok()?;
    stored.provider?.organization
}
