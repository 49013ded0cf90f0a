//! Filters of the search page: available facets and active filters.

use std::collections::BTreeMap;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{FacetValue, Understood};
use a2a_registry_core::search::skill_names::SkillNames;
use a2a_registry_core::text;
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::facet::Facet;

use crate::pages::search::FilterValueNames;
use crate::pages::search::links::{
    FilterLinks, SEARCH_PAGE_FACETS, active_filter_values, filter_title, is_technical_facet,
    link_with_part_as_text, link_without_filter,
};
use crate::pages::{auth, trust};

/// Number of facet values that are visible at first; the others can be expanded.
const VISIBLE_VALUES: usize = 6;

/// Values of one filter with their counts.
pub(crate) struct FacetView {
    pub name: &'static str,
    pub title: String,
    /// Whether its values are folded at first.
    pub is_folded: bool,
    pub seen: Vec<FacetValueView>,
    pub folded: Vec<FacetValueView>,
    pub others: u64,
}

pub(crate) struct FacetValueView {
    pub label: String,
    pub meaning: &'static str,
    pub count: u64,
    pub chosen: bool,
    /// Link that adds or removes the value; `None` if it is not a filter.
    pub link: Option<String>,
}

pub(crate) struct ActiveFilterView {
    pub title: String,
    pub label: String,
    /// Link to the search without the filter.
    pub link: String,
}

/// A phrase of the text that was applied as a filter.
pub(crate) struct UnderstoodPartView {
    pub title: String,
    pub label: String,
    /// Words of the phrase.
    pub words: String,
    /// Link to the search in which these words are text.
    pub link: String,
}

/// Display name of a value. Collections are not a facet.
fn filter_value_label(filter: Option<Facet>, value: &str, names: &FilterValueNames) -> String {
    match (filter, value) {
        (Some(Facet::Provider), _) => {
            let name = names.providers.get(&value.to_lowercase());
            text::single_line(name.map_or(value, String::as_str), 60)
        }
        (Some(Facet::Capability), "streaming") => "Streaming".to_owned(),
        (Some(Facet::Capability), "push_notifications") => "Push notifications".to_owned(),
        (Some(Facet::Capability), "extended_agent_card") => "Extended card".to_owned(),
        (Some(Facet::Auth), _) => auth::auth_label(value),
        (Some(Facet::Skill), _) => text::single_line(&skill_label(value, &names.skills), 60),
        (Some(Facet::Signature | Facet::Liveness), _) => state_facet_label(value),
        (Some(Facet::Endpoint), _) => {
            let state = value.parse::<EndpointState>();
            let label = state.map_or_else(|_| value.to_owned(), |state| state.label().to_owned());
            text::single_line(&label, 60)
        }
        (Some(Facet::Unmanaged), "true") => "has no responsible account".to_owned(),
        (Some(Facet::Unmanaged), "false") => "has a responsible account".to_owned(),
        _ => text::single_line(value, 60),
    }
}

/// Name of a skill, or its id as words if the name is unknown: most ids are the name with other separators.
pub(crate) fn skill_label(id: &str, names: &SkillNames) -> String {
    names
        .get(id)
        .map_or_else(|| id.replace(['-', '_'], " "), Clone::clone)
}

/// Text for a state.
fn state_facet_label(value: &str) -> String {
    let text = match value {
        "fresh" => "Card fetched",
        "stale" => "Last fetch failed",
        "gone" => "Unreachable",
        "unsigned" => "Not signed",
        "valid" => "Valid",
        "untrusted" => "Key not bound to the domain",
        "invalid" => "Invalid",
        "unknown" => "Key not fetched",
        _ => return text::single_line(value, 60),
    };
    text.to_owned()
}

pub(crate) fn active_filters(
    query: &SearchQuery,
    names: &FilterValueNames,
) -> Vec<ActiveFilterView> {
    let active = active_filter_values(query).map(|(name, value)| ActiveFilterView {
        title: filter_title(name),
        label: filter_value_label(name.parse().ok(), value, names),
        link: link_without_filter(query, name, value),
    });
    active.collect()
}

/// The phrases that were applied as filters; excluded words have no filter of their own.
pub(crate) fn understood_parts(
    query: &SearchQuery,
    understood: Option<&Understood>,
    names: &FilterValueNames,
) -> Vec<UnderstoodPartView> {
    let Some(understood) = understood else {
        return Vec::new();
    };
    let parts = understood.parts.iter().enumerate();
    let views = parts.map(|(place, part)| {
        let facet = part.parameter.parse::<Facet>().ok();
        UnderstoodPartView {
            title: match facet {
                Some(_) => filter_title(&part.parameter),
                None => "Without".to_owned(),
            },
            label: match facet {
                Some(_) => filter_value_label(facet, &part.value, names),
                // Several excluded names are `-acme -zeta`.
                None => {
                    let names = part.value.trim_start_matches('-').replace(" -", ", ");
                    text::single_line(&names, 60)
                }
            },
            words: text::single_line(&part.text, 60),
            link: link_with_part_as_text(query, understood, place),
        }
    });
    views.collect()
}

/// Facets of a response that offer a choice. A single value, or values that every hit has, do not narrow the search;
/// such facets are left out unless a value is selected. Providers and skills are shown by these names.
pub(crate) fn facet_views(
    query: &SearchQuery,
    facet_counts: &BTreeMap<String, a2a_registry_api::Facet>,
    total: u64,
    names: &FilterValueNames,
) -> Vec<FacetView> {
    SEARCH_PAGE_FACETS
        .iter()
        .filter_map(|one| {
            let name = one.as_str();
            let facet = facet_counts.get(name)?;
            let values = match one {
                Facet::Trust => &cumulative_trust_levels(&facet.values),
                _ => &facet.values,
            };
            let value_links = FilterLinks::new(query, name);
            let mut visible_values: Vec<FacetValueView> = values
                .iter()
                .filter(|value| !value.value.is_empty())
                .map(|value| {
                    let chosen = value_links.selected.contains(&value.value);
                    let link = match chosen {
                        true => link_without_filter(query, name, &value.value),
                        false => value_links.link_with_value(&value.value),
                    };
                    facet_value_view(*one, value, names, chosen, link)
                })
                .collect();
            let narrows = (visible_values.len() > 1 || *one == Facet::Trust)
                && visible_values.iter().any(|value| value.count < total);
            if !narrows && !visible_values.iter().any(|value| value.chosen) {
                return None;
            }
            // Active values are always visible, so that they can be removed.
            visible_values.sort_by_key(|value| !value.chosen);
            let folded = visible_values.split_off(visible_values.len().min(VISIBLE_VALUES));
            let has_chosen = visible_values.iter().any(|value| value.chosen);
            Some(FacetView {
                name: one.as_str(),
                title: filter_title(name),
                is_folded: is_technical_facet(*one) && !has_chosen,
                seen: visible_values,
                folded,
                others: facet.other_count,
            })
        })
        .collect()
}

/// Number of agents at or above each trust level, as the filter counts them. Agents without a level are in no count.
fn cumulative_trust_levels(level_counts: &[FacetValue]) -> Vec<FacetValue> {
    let mut total = 0;
    let mut levels: Vec<FacetValue> = trust::TRUST_LEVELS
        .iter()
        .rev()
        .filter_map(|(level, _)| {
            let own = level_counts.iter().find(|one| one.value == *level)?;
            total += own.count;
            Some(FacetValue {
                count: total,
                ..own.clone()
            })
        })
        .collect();
    levels.reverse();
    levels
}

fn facet_value_view(
    facet: Facet,
    counted: &FacetValue,
    names: &FilterValueNames,
    chosen: bool,
    link: String,
) -> FacetValueView {
    let value = &counted.value;
    FacetValueView {
        label: filter_value_label(Some(facet), value, names),
        meaning: match facet {
            Facet::Trust => trust::trust_level_description(value),
            _ => "",
        },
        count: counted.count,
        chosen,
        link: Some(link),
    }
}

#[cfg(test)]
mod tests {
    use a2a_registry_api::Facet;

    use super::*;

    #[test]
    fn skills_have_their_names_or_their_ids_as_words() {
        let value = |value: &str| FacetValue {
            value: value.to_owned(),
            count: 1,
        };
        let facet = Facet {
            values: vec![value("book-flights"), value("plan_itinerary")],
            other_count: 0,
        };
        let counted = BTreeMap::from([("skill".to_owned(), facet)]);
        let query = SearchQuery::default();
        let names = FilterValueNames {
            skills: SkillNames::from([("plan_itinerary".to_owned(), "Plan a trip".to_owned())]),
            ..FilterValueNames::default()
        };
        let shown = super::facet_views(&query, &counted, 2, &names);
        let labels: Vec<&str> = shown[0].seen.iter().map(|one| &*one.label).collect();
        assert_eq!(labels, ["book flights", "Plan a trip"]);
        let link = shown[0].seen[0].link.as_deref();
        assert_eq!(link, Some("/?skill=book-flights"));
    }

    #[test]
    fn trust_is_counted_as_its_filter_finds_it() {
        let value = |value: &str, count| FacetValue {
            value: value.to_owned(),
            count,
        };
        let counted = [
            value("L1", 4),
            value("none", 100),
            value("L3", 1),
            value("L0", 20),
        ];
        let facet = Facet {
            values: counted.to_vec(),
            other_count: 0,
        };
        let facets = BTreeMap::from([("trust".to_owned(), facet)]);
        let query = SearchQuery::default();
        let shown = super::facet_views(&query, &facets, 125, &FilterValueNames::default());
        let counts: Vec<(&str, u64)> = shown[0]
            .seen
            .iter()
            .map(|value| (value.label.as_str(), value.count))
            .collect();
        assert_eq!(counts, [("L0", 25), ("L1", 5), ("L3", 1)]);
        assert!(shown[0].seen.iter().all(|value| value.link.is_some()));
        // If all agents have the same level, there is no choice.
        let all = Facet {
            values: vec![value("L1", 125)],
            other_count: 0,
        };
        let facets = BTreeMap::from([("trust".to_owned(), all)]);
        assert!(super::facet_views(&query, &facets, 125, &FilterValueNames::default()).is_empty());
    }
}
