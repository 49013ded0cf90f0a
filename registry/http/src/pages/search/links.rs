//! Links of the search page for each filter, order and page.

use a2a_registry_api::Understood;
use a2a_registry_api::search_query::{GROUP_BY_CONTENT, SearchQuery};
use a2a_registry_core::collection_filters::collection_rows::format_filter;
use a2a_registry_core::config::LimitsConfig;
use a2a_registry_core::search::understanding::{query_with_part_as_text, understand_query};
use a2a_registry_domain::facet::Facet;
use url::form_urlencoded::{Parse, Serializer, byte_serialize, parse};

/// Counted facets in display order. The maximum is twelve.
pub(crate) const SEARCH_PAGE_FACETS: [Facet; 12] = [
    Facet::Skill,
    Facet::Tag,
    Facet::Provider,
    Facet::Auth,
    Facet::Trust,
    Facet::Endpoint,
    Facet::Domain,
    Facet::Liveness,
    Facet::ProtocolVersion,
    Facet::Binding,
    Facet::Capability,
    Facet::InputMode,
];

/// Whether a facet is folded at first, because few people filter by it.
pub(crate) const fn is_technical_facet(facet: Facet) -> bool {
    matches!(
        facet,
        Facet::ProtocolVersion
            | Facet::Binding
            | Facet::Capability
            | Facet::InputMode
            | Facet::Liveness
    )
}

/// Title of a filter: its name as words, unless there is a better one.
pub(crate) fn filter_title(filter: &str) -> String {
    match filter.parse::<Facet>() {
        Ok(Facet::Auth) => "Authentication".to_owned(),
        Ok(Facet::InputMode) => "Accepts".to_owned(),
        Ok(Facet::OutputMode) => "Produces".to_owned(),
        Ok(Facet::Trust) => "Trust, at least".to_owned(),
        _ => {
            let (first, rest) = filter.split_at_checked(1).unwrap_or_default();
            first.to_uppercase() + &rest.replace('_', " ")
        }
    }
}

/// Filter values of a search, each with the filter's name.
pub(crate) fn active_filter_values(
    query: &SearchQuery,
) -> impl Iterator<Item = (&'static str, &str)> {
    let facets = Facet::ALL.iter().flat_map(move |facet| {
        let values = query.filter_values(*facet).iter();
        values.map(move |value| (facet.as_str(), value.as_str()))
    });
    let collections = query.collection.iter();
    facets.chain(collections.map(|name| ("collection", name.as_str())))
}

/// URL of the list of all agents.
pub(crate) const ALL_AGENTS_URL: &str = "/?q=";

/// URL of the first page of a changed search.
pub(crate) fn search_link(query: &SearchQuery, change: impl FnOnce(&mut SearchQuery)) -> String {
    let mut query = SearchQuery {
        page_token: None,
        facets: Vec::new(),
        fields: Vec::new(),
        ..query.clone()
    };
    change(&mut query);
    // By default the page collapses duplicates and leaves out what does not fit.
    query.group.take_if(|group| group == GROUP_BY_CONTENT);
    query.fitting.take_if(|fitting| *fitting);
    match serde_html_form::to_string(&query) {
        Ok(pairs) if !pairs.is_empty() => format!("/?{pairs}"),
        _ => ALL_AGENTS_URL.to_owned(),
    }
}

fn parse_link_query(address: &str) -> Parse<'_> {
    parse(address.strip_prefix("/?").unwrap_or_default().as_bytes())
}

/// URL of a search without this filter value.
pub(crate) fn link_without_filter(query: &SearchQuery, filter: &str, value: &str) -> String {
    let address = search_link(query, |_| {});
    let others = parse_link_query(&address);
    let others = others.filter(|(name, one)| (&**name, &**one) != (filter, value));
    let others = Serializer::new(String::new()).extend_pairs(others).finish();
    match others.is_empty() {
        true => ALL_AGENTS_URL.to_owned(),
        false => format!("/?{others}"),
    }
}

/// URL of a search in which the words of one understood part are text, and the other parts are filters of the URL.
pub(crate) fn link_with_part_as_text(
    query: &SearchQuery,
    understood: &Understood,
    place: usize,
) -> String {
    match query_with_part_as_text(query, understood, place) {
        Some(changed) => search_link(&changed, |_| {}),
        None => search_link(query, |query| query.understand = Some(false)),
    }
}

/// URL of a search whose text is understood again; `None` if it is, or if nothing in it would be understood.
pub(crate) fn link_with_understanding(
    query: &SearchQuery,
    limits: &LimitsConfig,
) -> Option<String> {
    if query.understand != Some(false) {
        return None;
    }
    let understanding = SearchQuery {
        understand: None,
        ..query.clone()
    };
    understand_query(&understanding, limits).map(|_| search_link(&understanding, |_| {}))
}

/// URL of the form for a collection with the filters of a search; `None` if it has none, or if it has words or other
/// collections, which the filter of a collection cannot have.
pub(crate) fn collection_link(query: &SearchQuery) -> Option<String> {
    if query.q.is_some() || !query.collection.is_empty() {
        return None;
    }
    let filter = format_filter(active_filter_values(query));
    let pairs = serde_html_form::to_string([("filter", &filter)]);
    let pairs = pairs.ok().filter(|_| !filter.is_empty())?;
    Some(format!("/collections?{pairs}#new"))
}

/// The search as it was run: with the text that was left. It has the order and the mode of the results.
pub(crate) fn searched_query(query: &SearchQuery, understood: Option<&Understood>) -> SearchQuery {
    let mut searched = query.clone();
    if let Some(understood) = understood {
        searched.q = Some(understood.q.clone()).filter(|text| !text.is_empty());
    }
    searched
}

/// URLs of a search with one more filter value. A page has hundreds of them that differ only in the value, so the
/// query is serialized once.
pub(crate) struct FilterLinks {
    /// URL up to the value.
    prefix: String,
    /// Values in the query; selecting one of them again removes it.
    pub selected: Vec<String>,
}

impl FilterLinks {
    /// Builds the links for a filter. A new trust level replaces the selected one.
    pub(crate) fn new(query: &SearchQuery, filter: &str) -> Self {
        let is_trust = filter == Facet::Trust.as_str();
        let base_link = search_link(query, |query| drop(query.trust.take_if(|_| is_trust)));
        let selected = active_filter_values(query).filter(|(name, _)| *name == filter);
        Self {
            prefix: match base_link.as_str() {
                ALL_AGENTS_URL => format!("/?{filter}="),
                others => format!("{others}&{filter}="),
            },
            selected: selected.map(|(_, value)| value.to_owned()).collect(),
        }
    }

    pub(crate) fn link_with_value(&self, value: &str) -> String {
        let mut link = self.prefix.clone();
        link.extend(byte_serialize(value.as_bytes()));
        link
    }
}

/// URL with text, order and mode only, and with explanations if requested. A text with understood parts is searched as
/// it is.
pub(crate) fn unfiltered_link(query: &SearchQuery, understood: Option<&Understood>) -> String {
    let bare = SearchQuery {
        q: query.q.clone(),
        understand: understood.map_or(query.understand, |_| Some(false)),
        sort: query.sort.clone(),
        explain: query.explain,
        mode: query.mode.clone(),
        group: query.group.clone(),
        fitting: query.fitting,
        ..SearchQuery::default()
    };
    search_link(&bare, |_| {})
}

/// Hidden fields of the form for a new text, which is understood again: every filter, the order, the mode, and whether
/// scores are explained.
pub(crate) fn hidden_search_fields(query: &SearchQuery) -> Vec<(String, String)> {
    // Whoever wanted the weaker results of one text, or its words as text, sees first what fits another.
    let rest = search_link(query, |query| {
        (query.q, query.fitting, query.understand) = (None, None, None);
    });
    let rest = parse_link_query(&rest).into_owned();
    rest.filter(|(name, _)| name != "q").collect()
}

/// Whether a search has a text or filters.
pub(crate) fn has_search_criteria(query: &SearchQuery) -> bool {
    query.q.is_some() || query.page_token.is_some() || active_filter_values(query).next().is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn titles_are_words() {
        assert_eq!(filter_title("protocol_version"), "Protocol version");
        assert_eq!(filter_title("collection"), "Collection");
        assert_eq!(filter_title("output_mode"), "Produces");
    }

    #[test]
    fn an_added_value_is_in_the_search_and_can_be_taken_out_again() {
        let query = SearchQuery {
            q: Some("a %00 b & c=d 000\0".to_owned()),
            tag: vec!["x y".to_owned(), "%00".to_owned(), "000".to_owned()],
            domain: vec!["a.example".to_owned()],
            group: Some(GROUP_BY_CONTENT.to_owned()),
            facets: vec!["tag".to_owned()],
            page_token: Some("t".to_owned()),
            ..SearchQuery::default()
        };
        for query in [SearchQuery::default(), query] {
            let names = Facet::ALL.iter().map(|facet| facet.as_str());
            for name in names.chain(["collection"]) {
                let added = FilterLinks::new(&query, name);
                for value in ["plain", "a b", "&=%+#", "é⟦", "%00", "\u{202e}", "\0"] {
                    if added.selected.iter().any(|chosen| chosen == value) {
                        continue;
                    }
                    let address = added.link_with_value(value);
                    let found: SearchQuery =
                        serde_html_form::from_str(address.strip_prefix("/?").unwrap()).unwrap();
                    assert!(
                        active_filter_values(&found).any(|one| one == (name, value)),
                        "{address}"
                    );
                    let before = search_link(&query, |_| {});
                    assert_eq!(
                        link_without_filter(&found, name, value),
                        before,
                        "{name} {value:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_text_is_understood_again_where_it_has_a_phrase() {
        let link = |text: &str, auth: &[&str], understand| {
            let query = SearchQuery {
                q: Some(text.to_owned()),
                auth: auth.iter().map(|value| (*value).to_owned()).collect(),
                understand,
                ..SearchQuery::default()
            };
            link_with_understanding(&query, &LimitsConfig::default())
        };
        let (text, off) = ("weather without login", Some(false));
        assert_eq!(
            link(text, &[], off).as_deref(),
            Some("/?q=weather+without+login")
        );
        assert_eq!(link("weather", &[], off), None);
        assert_eq!(link(text, &[], None), None);
        // A filter that is set is not understood again.
        assert_eq!(link(text, &["apiKey"], off), None);
        let nothing = LimitsConfig {
            filters: 0,
            ..LimitsConfig::default()
        };
        let query = SearchQuery {
            q: Some(text.to_owned()),
            understand: off,
            ..SearchQuery::default()
        };
        assert_eq!(link_with_understanding(&query, &nothing), None);
    }

    #[test]
    fn the_filters_of_a_search_are_the_filter_of_a_collection() {
        let query = SearchQuery {
            tag: vec!["x y".to_owned(), "a".to_owned()],
            ..SearchQuery::default()
        };
        let link = "/collections?filter=tag%3A%22x+y%22+tag%3Aa#new";
        assert_eq!(collection_link(&query).as_deref(), Some(link));
        let with_words = SearchQuery {
            q: Some("words".to_owned()),
            ..query
        };
        assert_eq!(collection_link(&with_words), None);
        assert_eq!(collection_link(&SearchQuery::default()), None);
    }

    #[test]
    fn another_level_of_trust_replaces_the_chosen_one() {
        let query = SearchQuery {
            q: Some("x".to_owned()),
            trust: Some("L1".to_owned()),
            ..SearchQuery::default()
        };
        let levels = FilterLinks::new(&query, "trust");
        assert_eq!(levels.selected, ["L1"]);
        assert_eq!(levels.link_with_value("L2"), "/?q=x&trust=L2");
    }
}
