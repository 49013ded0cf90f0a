//! The links of the search page: for each filter, order and page.

use url::form_urlencoded::byte_serialize;

use crate::search::query::{BY_CONTENT, SearchQuery};

/// A filter with a list of values: its name, its title, and its member of a query.
type Filter = (
    &'static str,
    &'static str,
    fn(&mut SearchQuery) -> &mut Vec<String>,
);

/// The filters. Adding one here puts it among the chips and into the form.
pub(crate) const FILTERS: [Filter; 16] = [
    ("tag", "Tag", |query| &mut query.tag),
    ("skill", "Skill", |query| &mut query.skill),
    ("capability", "Capability", |query| &mut query.capability),
    ("protocol_version", "Protocol version", |query| {
        &mut query.protocol_version
    }),
    ("binding", "Binding", |query| &mut query.binding),
    ("auth", "Authentication", |query| &mut query.auth),
    ("provider", "Provider", |query| &mut query.provider),
    ("domain", "Domain", |query| &mut query.domain),
    ("input_mode", "Accepts", |query| &mut query.input_mode),
    ("output_mode", "Produces", |query| &mut query.output_mode),
    ("label", "Label", |query| &mut query.label),
    ("lifecycle", "Lifecycle", |query| &mut query.lifecycle),
    ("liveness", "Liveness", |query| &mut query.liveness),
    ("signature", "Signature", |query| &mut query.signature),
    ("collection", "Collection", |query| &mut query.collection),
    ("unmanaged", "Unmanaged", |query| &mut query.unmanaged),
];

/// The facets that are counted, in the order they are shown. Twelve are allowed.
pub(crate) const FACETS: [(&str, &str); 12] = [
    ("auth", "Authentication"),
    ("protocol_version", "Protocol version"),
    ("binding", "Binding"),
    ("tag", "Tag"),
    ("skill", "Skill"),
    ("provider", "Provider"),
    ("domain", "Domain"),
    ("capability", "Capability"),
    ("input_mode", "Accepts"),
    ("trust", "Trust, at least"),
    ("signature", "Signature"),
    ("liveness", "Liveness"),
];

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

/// The address of a search with one value of a filter put in, or taken out where it is in.
pub(crate) fn toggled(
    query: &SearchQuery,
    values: fn(&mut SearchQuery) -> &mut Vec<String>,
    value: &str,
) -> String {
    link(query, |query| {
        let values = values(query);
        let before = values.len();
        values.retain(|other| other != value);
        if values.len() == before {
            values.push(value.to_owned());
        }
    })
}

/// The addresses of a search with one more value of a filter. A page has hundreds of them, which differ in the value alone, so
/// that the query is written once for all.
pub(crate) struct AddedValue {
    before: String,
    after: String,
    /// The values that are in the query: choosing one of them again takes it out.
    pub chosen: Vec<String>,
}

impl AddedValue {
    /// The addresses of this search with one more value of the filter that has these values.
    pub(crate) fn new(
        query: &SearchQuery,
        values: fn(&mut SearchQuery) -> &mut Vec<String>,
    ) -> Self {
        // It is longer than the address without it, so that nothing else in there can be taken for it.
        let place = "0".repeat(link(query, |_| {}).len() + 1);
        let address = link(query, |query| values(query).push(place.clone()));
        let parts = address.split_once(place.as_str());
        let (before, after) = parts.unwrap_or((address.as_str(), ""));
        Self {
            before: before.to_owned(),
            after: after.to_owned(),
            chosen: std::mem::take(values(&mut query.clone())),
        }
    }

    /// The address with this value.
    pub(crate) fn link(&self, value: &str) -> String {
        let escaped = byte_serialize(value.as_bytes());
        let mut link = String::with_capacity(self.before.len() + self.after.len() + value.len());
        link.push_str(&self.before);
        link.extend(escaped);
        link.push_str(&self.after);
        link
    }
}

/// The words, the order and the mode alone, explained where that was asked for.
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

/// What a form for new words carries along: every filter, the order, the mode, and whether scores are explained.
pub(crate) fn carried(query: &SearchQuery) -> Vec<(&'static str, String)> {
    let mut query = query.clone();
    let mut pairs: Vec<(&'static str, String)> = Vec::new();
    for (name, _, values) in FILTERS {
        pairs.extend(values(&mut query).iter().map(|value| (name, value.clone())));
    }
    pairs.extend(query.trust.map(|trust| ("trust", trust)));
    pairs.extend(query.sort.map(|sort| ("sort", sort)));
    pairs.extend(query.mode.map(|mode| ("mode", mode)));
    let group = query.group.filter(|group| group != BY_CONTENT);
    pairs.extend(group.map(|group| ("group", group)));
    pairs.extend(
        query
            .explain
            .map(|explain| ("explain", explain.to_string())),
    );
    pairs.extend(query.page_size.map(|size| ("page_size", size.to_string())));
    pairs
}

/// Whether a search has words or filters.
pub(crate) fn asks(query: &SearchQuery) -> bool {
    let mut query = query.clone();
    query.q.is_some()
        || query.trust.is_some()
        || query.page_token.is_some()
        || FILTERS
            .iter()
            .any(|(_, _, values)| !values(&mut query).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_added_value_leads_where_toggling_it_leads() {
        let query = SearchQuery {
            q: Some("a %00 b & c=d 000\0".to_owned()),
            tag: vec!["x y".to_owned(), "%00".to_owned(), "000".to_owned()],
            domain: vec!["a.example".to_owned()],
            trust: Some("L1".to_owned()),
            group: Some(BY_CONTENT.to_owned()),
            facets: vec!["tag".to_owned()],
            page_token: Some("t".to_owned()),
            ..SearchQuery::default()
        };
        for query in [SearchQuery::default(), query] {
            for (name, _, values) in FILTERS {
                let added = AddedValue::new(&query, values);
                for value in ["plain", "a b", "&=%+#", "é⟦", "%00", "\u{202e}", "\0"] {
                    if added.chosen.iter().any(|chosen| chosen == value) {
                        continue;
                    }
                    let expected = toggled(&query, values, value);
                    assert_eq!(added.link(value), expected, "{name} {value:?}");
                }
            }
        }
    }
}
