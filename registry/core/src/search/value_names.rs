//! Display names of facet values, as written by agents with these values. They are read from the index and cached
//! until the index changes, because most searches count the same frequent values.

use std::collections::BTreeMap;

use a2a_registry_domain::facet::Facet;

use crate::context::AppContext;
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

/// A function that reads the name of a value from the hit of an agent that has it.
pub type ValueNameReader = fn(&str, &[u8]) -> Option<String>;

/// Loads the names of these values of a facet, by value: each from the last changed agent that names the value and
/// that the caller can find. For each value at most `max_agents` agents are read. A value whose name cannot be looked
/// up has none.
pub async fn load_value_names(
    context: &AppContext,
    caller: &Caller,
    facet: Facet,
    values: Vec<String>,
    max_agents: usize,
    read_name: ValueNameReader,
) -> BTreeMap<String, String> {
    let labels = caller.labels(&context.policy_sets.enforced_set());
    let state = format!(
        "{} {} {}",
        labels.join(" "),
        context.index.generation(),
        context.index.overlay_version(),
    );
    let key = |value: &str| format!("name of {facet} {value:?} {state}");
    let cache = &context.search_cache.responses;
    let mut names = BTreeMap::new();
    // A value without a name has an empty one.
    let mut add = |value: String, name: String| {
        if !name.is_empty() {
            names.insert(value, name);
        }
    };
    let mut missing = Vec::new();
    for value in values {
        match cache.get(&key(&value)) {
            Some(name) => add(value, String::from_utf8_lossy(&name).into_owned()),
            None => missing.push(value),
        }
    }
    if missing.is_empty() {
        return names;
    }
    let missing_values = missing.clone();
    let lookup = run_search(context, caller, move |index| {
        index.newest_agents_by_value(facet, &missing_values, &labels, max_agents, read_name)
    });
    for (value, name) in missing.into_iter().zip(lookup.await.unwrap_or_default()) {
        let name = name.unwrap_or_default();
        cache.insert(key(&value), name.clone().into());
        add(value, name);
    }
    names
}
