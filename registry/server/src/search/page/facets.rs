//! The filters of the search page: facets to choose from, and active ones.

use std::collections::BTreeMap;

use a2a_registry_api::{Facet, FacetValue};

use crate::pages::{text, trust};
use crate::search::page::links::{FACETS, FILTERS, link, toggled};
use crate::search::query::SearchQuery;

/// How many values of a facet are seen at once; the others unfold.
const SEEN: usize = 6;

/// The values of one filter, with how often each occurs.
pub(crate) struct FacetView {
    pub title: &'static str,
    pub seen: Vec<ValueView>,
    pub folded: Vec<ValueView>,
    pub others: u64,
}

/// One value.
pub(crate) struct ValueView {
    pub label: String,
    pub meaning: &'static str,
    pub count: u64,
    pub chosen: bool,
    /// The link that adds or removes it; `None` if it is no filter.
    pub link: Option<String>,
}

/// A filter in force.
pub(crate) struct Active {
    pub title: &'static str,
    pub label: String,
    /// The search without it.
    pub link: String,
}

/// The display name of a value.
fn label(name: &str, value: &str) -> String {
    match (name, value) {
        ("capability", "streaming") => "Streaming".to_owned(),
        ("capability", "push_notifications") => "Push notifications".to_owned(),
        ("capability", "extended_agent_card") => "Extended card".to_owned(),
        ("auth", "none") => "No credentials".to_owned(),
        ("auth", "unknown") => "Not understood".to_owned(),
        ("trust", "none") => "None".to_owned(),
        _ => text::line(value, 60),
    }
}

/// The filters in force.
pub(crate) fn active(query: &SearchQuery) -> Vec<Active> {
    let mut active = Vec::new();
    let mut values_of = query.clone();
    for (name, title, values) in FILTERS {
        for value in values(&mut values_of).iter() {
            active.push(Active {
                title,
                label: label(name, value),
                link: toggled(query, values, value),
            });
        }
    }
    if let Some(trust) = &query.trust {
        active.push(Active {
            title: "Trust, at least",
            label: label("trust", trust),
            link: link(query, |query| query.trust = None),
        });
    }
    active
}

/// The facets of a response, without those that have no value left to choose.
pub(crate) fn facets(query: &SearchQuery, counted: &BTreeMap<String, Facet>) -> Vec<FacetView> {
    FACETS
        .iter()
        .filter_map(|(name, title)| {
            let facet = counted.get(*name)?;
            if facet.values.is_empty() {
                return None;
            }
            let mut seen: Vec<ValueView> = facet
                .values
                .iter()
                .map(|value| view(query, name, value))
                .collect();
            // Active values are always visible, so that they can be removed.
            seen.sort_by_key(|value| !value.chosen);
            let folded = seen.split_off(seen.len().min(SEEN));
            Some(FacetView {
                title,
                seen,
                folded,
                others: facet.other_count,
            })
        })
        .collect()
}

fn view(query: &SearchQuery, name: &str, counted: &FacetValue) -> ValueView {
    let value = &counted.value;
    let filter = FILTERS.iter().find(|(filter, ..)| *filter == name);
    let (chosen, link) = match filter {
        Some((_, _, values)) => {
            let chosen = values(&mut query.clone()).contains(value);
            (chosen, Some(toggled(query, *values, value)))
        }
        None if value == "none" => (false, None),
        None => {
            let chosen = query.trust.as_ref() == Some(value);
            let wanted = (!chosen).then(|| value.clone());
            (chosen, Some(link(query, |query| query.trust = wanted)))
        }
    };
    ValueView {
        label: label(name, value),
        meaning: if name == "trust" {
            trust::level_meaning(value)
        } else {
            ""
        },
        count: counted.count,
        chosen,
        link,
    }
}
