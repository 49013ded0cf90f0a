//! The links of the search page: for each filter, order and page.

use a2a_registry_core::search::query::{BY_CONTENT, SearchQuery};
use a2a_registry_domain::facet::Facet;
use url::form_urlencoded::{Parse, Serializer, byte_serialize, parse};

/// The facets that are counted, in the order they are shown. Twelve are allowed.
pub(crate) const FACETS: [Facet; 12] = [
    Facet::Auth,
    Facet::ProtocolVersion,
    Facet::Binding,
    Facet::Tag,
    Facet::Skill,
    Facet::Provider,
    Facet::Domain,
    Facet::Capability,
    Facet::InputMode,
    Facet::Trust,
    Facet::Signature,
    Facet::Liveness,
];

/// The title of a filter: its name as words, unless the page has a better one.
pub(crate) fn title(filter: &str) -> String {
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

/// The filters of a search: each of their values, with the filter's name.
pub(crate) fn filters(query: &SearchQuery) -> impl Iterator<Item = (&'static str, &str)> {
    let facets = Facet::ALL.iter().flat_map(move |facet| {
        let values = query.values(*facet).iter();
        values.map(move |value| (facet.as_str(), value.as_str()))
    });
    let collections = query.collection.iter();
    facets.chain(collections.map(|name| ("collection", name.as_str())))
}

/// The list of every agent.
pub(crate) const EVERY_AGENT: &str = "/?q=";

/// The address of a search that differs from this one, from its first page.
pub(crate) fn link(query: &SearchQuery, change: impl FnOnce(&mut SearchQuery)) -> String {
    let mut query = SearchQuery {
        page_token: None,
        facets: Vec::new(),
        fields: Vec::new(),
        ..query.clone()
    };
    change(&mut query);
    // The page folds duplicates by default.
    query.group.take_if(|group| group == BY_CONTENT);
    match serde_html_form::to_string(&query) {
        Ok(pairs) if !pairs.is_empty() => format!("/?{pairs}"),
        _ => EVERY_AGENT.to_owned(),
    }
}

fn parameters(address: &str) -> Parse<'_> {
    parse(address.strip_prefix("/?").unwrap_or_default().as_bytes())
}

/// The address of a search without this value of a filter.
pub(crate) fn without(query: &SearchQuery, filter: &str, value: &str) -> String {
    let address = link(query, |_| {});
    let others = parameters(&address);
    let others = others.filter(|(name, one)| (&**name, &**one) != (filter, value));
    let others = Serializer::new(String::new()).extend_pairs(others).finish();
    match others.is_empty() {
        true => EVERY_AGENT.to_owned(),
        false => format!("/?{others}"),
    }
}

/// The addresses of a search with one more value of a filter. A page has hundreds of them, which differ only in the
/// value, so the query is written once for all.
pub(crate) struct AddedValue {
    /// The address up to the value.
    before: String,
    /// The values that are in the query: selecting one of them again removes it.
    pub chosen: Vec<String>,
}

impl AddedValue {
    /// The addresses of this search with one more value of a filter; another level of trust replaces the selected one.
    pub(crate) fn new(query: &SearchQuery, filter: &str) -> Self {
        let is_trust = filter == Facet::Trust.as_str();
        let others = link(query, |query| drop(query.trust.take_if(|_| is_trust)));
        let chosen = filters(query).filter(|(name, _)| *name == filter);
        Self {
            before: match others.as_str() {
                EVERY_AGENT => format!("/?{filter}="),
                others => format!("{others}&{filter}="),
            },
            chosen: chosen.map(|(_, value)| value.to_owned()).collect(),
        }
    }

    pub(crate) fn link(&self, value: &str) -> String {
        let mut link = self.before.clone();
        link.extend(byte_serialize(value.as_bytes()));
        link
    }
}

/// The words, the order and the mode alone, with explanations if requested.
pub(crate) fn unfiltered(query: &SearchQuery) -> String {
    let bare = SearchQuery {
        q: query.q.clone(),
        sort: query.sort.clone(),
        explain: query.explain,
        mode: query.mode.clone(),
        group: query.group.clone(),
        ..SearchQuery::default()
    };
    link(&bare, |_| {})
}

/// The hidden fields of a form for new words: every filter, the order, the mode, and whether scores are explained.
pub(crate) fn carried(query: &SearchQuery) -> Vec<(String, String)> {
    let rest = link(query, |query| query.q = None);
    let rest = parameters(&rest).into_owned();
    rest.filter(|(name, _)| name != "q").collect()
}

/// Whether a search has words or filters.
pub(crate) fn asks(query: &SearchQuery) -> bool {
    query.q.is_some() || query.page_token.is_some() || filters(query).next().is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn titles_are_words() {
        assert_eq!(title("protocol_version"), "Protocol version");
        assert_eq!(title("collection"), "Collection");
        assert_eq!(title("output_mode"), "Produces");
    }

    #[test]
    fn an_added_value_is_in_the_search_and_can_be_taken_out_again() {
        let query = SearchQuery {
            q: Some("a %00 b & c=d 000\0".to_owned()),
            tag: vec!["x y".to_owned(), "%00".to_owned(), "000".to_owned()],
            domain: vec!["a.example".to_owned()],
            group: Some(BY_CONTENT.to_owned()),
            facets: vec!["tag".to_owned()],
            page_token: Some("t".to_owned()),
            ..SearchQuery::default()
        };
        for query in [SearchQuery::default(), query] {
            let names = Facet::ALL.iter().map(|facet| facet.as_str());
            for name in names.chain(["collection"]) {
                let added = AddedValue::new(&query, name);
                for value in ["plain", "a b", "&=%+#", "é⟦", "%00", "\u{202e}", "\0"] {
                    if added.chosen.iter().any(|chosen| chosen == value) {
                        continue;
                    }
                    let address = added.link(value);
                    let found: SearchQuery =
                        serde_html_form::from_str(address.strip_prefix("/?").unwrap()).unwrap();
                    assert!(filters(&found).any(|one| one == (name, value)), "{address}");
                    let before = link(&query, |_| {});
                    assert_eq!(without(&found, name, value), before, "{name} {value:?}");
                }
            }
        }
    }

    #[test]
    fn another_level_of_trust_replaces_the_chosen_one() {
        let query = SearchQuery {
            q: Some("x".to_owned()),
            trust: Some("L1".to_owned()),
            ..SearchQuery::default()
        };
        let levels = AddedValue::new(&query, "trust");
        assert_eq!(levels.chosen, ["L1"]);
        assert_eq!(levels.link("L2"), "/?q=x&trust=L2");
    }
}
