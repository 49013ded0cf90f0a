//! The names of providers as their cards write them. The index knows them in lower case, as the filter compares them.

use std::collections::BTreeMap;

use a2a_registry_api::{AgentList, Hit};
use a2a_registry_domain::facet::Facet;
use serde::Deserialize;

use crate::caller::Caller;
use crate::context::Context;
use crate::index_pool::run;

/// The most providers whose names are looked up for one page; those on the page itself cost nothing.
const LOOKED_UP: usize = 12;

/// Names of providers, by their value in the filter.
pub(crate) type ProviderNames = BTreeMap<String, String>;

/// The part of a stored hit that names its provider.
#[derive(Deserialize)]
struct StoredHit {
    provider: Option<StoredProvider>,
}

#[derive(Deserialize)]
struct StoredProvider {
    organization: Option<String>,
}

/// The names in these hits.
pub(crate) fn names_in(hits: &[Hit]) -> ProviderNames {
    let providers = hits.iter().filter_map(|hit| hit.summary.provider.as_ref());
    let names = providers.filter_map(|provider| provider.organization.as_deref());
    names
        .map(|name| (name.to_lowercase(), name.to_owned()))
        .collect()
}

/// The names of the providers that a list counts: from its hits, else from an agent of the provider that the caller
/// finds. A name that cannot be looked up stays in lower case.
pub(crate) async fn provider_names(
    context: &Context,
    caller: &Caller,
    list: &AgentList,
) -> ProviderNames {
    let mut names = names_in(&list.agents);
    let facet = list.facets.get("provider");
    let counted = facet.into_iter().flat_map(|facet| &facet.values);
    let missing: Vec<String> = counted
        .map(|one| one.value.clone())
        .filter(|value| !value.is_empty() && !names.contains_key(value))
        .take(LOOKED_UP)
        .collect();
    if missing.is_empty() {
        return names;
    }
    let labels = caller.labels(&context.policies.in_force());
    let found = run(context, caller, move |index| {
        index.newest_with(Facet::Provider, &missing, &labels, 1, |_, hit| name_in(hit))
    });
    for name in found.await.unwrap_or_default().into_iter().flatten() {
        names.entry(name.to_lowercase()).or_insert(name);
    }
    names
}

/// The name of the provider in a hit.
fn name_in(hit: &[u8]) -> Option<String> {
    let stored: StoredHit = serde_json::from_slice(hit).ok()?;
    stored.provider?.organization
}
