//! The index request that is built from the parameters of a search.

use a2a_crawler::fetch::card_url_under;
use a2a_crawler::guard::Domain;
use a2a_registry_api::HitFields;
use a2a_registry_api::limits::{
    MAX_LOOKUP_DIGEST_CHARS, MAX_LOOKUP_NAME_CHARS, MAX_LOOKUP_URL_CHARS, MAX_LOOKUP_URN_CHARS,
};
use a2a_registry_api::search_query::{
    GROUP_BY_CONTENT, GROUP_NONE, LookupQuery, SearchMode, SearchQuery,
};
use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_search::{Filters, RequestedHitParts, SearchRequest, SortOrder};
use url::Url;

use crate::agents::documents::name_lookup_key;
use crate::collection_filters::filters::build_filters;
use crate::config::LimitsConfig;
use crate::error::{AppError, Result};

/// Builds the request for the index, without the labels of a caller. All parameters are checked here; an error is
/// `Invalid` and names the parameter.
pub fn build_search_request(query: &SearchQuery, limits: &LimitsConfig) -> Result<SearchRequest> {
    let text = query
        .q
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    if let Some(text) = text {
        check_text_length("/q", text, limits.query_chars)?;
    }
    if filter_value_count(query) > limits.filters {
        let detail = format!("a search can have at most {} filter values", limits.filters);
        return Err(AppError::invalid("", detail));
    }
    let fields = parse_hit_fields(query)?;
    Ok(SearchRequest {
        text: text.map(str::to_owned),
        filters: parse_filters(query)?,
        sort: parse_sort(query)?,
        facets: parse_facets(query, limits.facets)?,
        explain: fields.includes(HitFields::EXPLAIN),
        parts: RequestedHitParts {
            hit: true,
            catalog_entry: false,
            highlights: fields.includes(HitFields::HIGHLIGHTS),
            computation: fields.selects_field(HitFields::EXPLAIN),
        },
        only_fitting: query.fitting == Some(true),
        group_duplicates: parse_content_grouping(query)?,
        ..SearchRequest::default()
    })
}

fn parse_filters(query: &SearchQuery) -> Result<Filters> {
    build_filters(FacetMap::from_fn(|facet| {
        query.filter_values(facet).to_vec()
    }))
}

/// The number of values that count against the limit: the values of lists.
pub(super) fn filter_value_count(query: &SearchQuery) -> usize {
    let lists = Facet::ALL.iter().filter(|facet| **facet != Facet::Trust);
    let values = lists.map(|facet| query.filter_values(*facet).len());
    values.sum::<usize>() + query.collection.len()
}

fn parse_sort(query: &SearchQuery) -> Result<SortOrder> {
    let Some(name) = query.sort.as_deref() else {
        return Ok(SortOrder::default());
    };
    let sort = SortOrder::ALL
        .into_iter()
        .find(|sort| sort.as_str() == name);
    sort.ok_or_else(|| {
        AppError::invalid(
            "/sort",
            "sort must be one of relevance, name, updated, newest",
        )
    })
}

fn parse_content_grouping(query: &SearchQuery) -> Result<bool> {
    match query.group.as_deref() {
        None | Some(GROUP_NONE) => Ok(false),
        Some(GROUP_BY_CONTENT) => Ok(true),
        Some(_) => Err(AppError::invalid("/group", "group must be content or none")),
    }
}

/// The requested mode; `has_model` says whether there is a model.
pub fn resolve_search_mode(query: &SearchQuery, has_model: bool) -> Result<SearchMode> {
    match query.mode.as_deref() {
        None if has_model => Ok(SearchMode::Hybrid),
        None => Ok(SearchMode::Lexical),
        Some(name) => SearchMode::from_name(name).ok_or_else(|| {
            AppError::invalid("/mode", "mode must be one of lexical, hybrid, semantic")
        }),
    }
}

pub fn parse_hit_fields(query: &SearchQuery) -> Result<HitFields> {
    let fields = HitFields::from_names(split_commas(&query.fields)).map_err(|_| {
        let known: Vec<&str> = HitFields::all_names().collect();
        AppError::invalid(
            "/fields",
            format!("fields must be among {}", known.join(", ")),
        )
    })?;
    Ok(match query.explain {
        Some(true) => fields.with_explanation(),
        _ => fields,
    })
}

fn parse_facets(query: &SearchQuery, limit: usize) -> Result<Vec<Facet>> {
    let mut names = Vec::new();
    for name in split_commas(&query.facets) {
        let facet: Facet = name.parse().map_err(|_| {
            AppError::invalid(
                "/facets",
                format!("facets must be among {}", Facet::joined_names()),
            )
        })?;
        if !names.contains(&facet) {
            names.push(facet);
        }
    }
    if names.len() > limit {
        return Err(AppError::invalid(
            "/facets",
            format!("at most {limit} facets can be counted"),
        ));
    }
    Ok(names)
}

/// The query without its page and the selected members, to which a page token belongs.
pub fn canonical_query_text(query: &SearchQuery) -> String {
    let canonical = SearchQuery {
        page_token: None,
        page_size: None,
        fields: Vec::new(),
        ..query.clone()
    };
    serde_html_form::to_string(&canonical).unwrap_or_default()
}

/// The name of the order used.
pub fn effective_sort_name(query: &SearchQuery) -> &'static str {
    let sort = parse_sort(query).unwrap_or_default();
    sort.effective(query.q.as_deref()).as_str()
}

/// The look-up keys of the index, the most exact first.
pub fn query_lookup_keys(query: &LookupQuery) -> Result<Vec<String>> {
    match (&query.url, &query.urn, &query.digest, &query.name) {
        (Some(url), None, None, None) => {
            check_text_length("/url", url, MAX_LOOKUP_URL_CHARS)?;
            Ok(url_lookup_keys(url.trim()))
        }
        (None, Some(urn), None, None) => {
            check_text_length("/urn", urn, MAX_LOOKUP_URN_CHARS)?;
            Ok(vec![format!("urn:{urn}")])
        }
        (None, None, Some(digest), None) => {
            check_text_length("/digest", digest, MAX_LOOKUP_DIGEST_CHARS)?;
            Ok(vec![format!("digest:{digest}")])
        }
        (None, None, None, Some(name)) => {
            check_text_length("/name", name, MAX_LOOKUP_NAME_CHARS)?;
            Ok(vec![name_lookup_key(name)])
        }
        _ => Err(AppError::invalid(
            "",
            "Give exactly one of url, urn, digest and name.",
        )),
    }
}

/// Splits lists of names at commas.
fn split_commas(lists: &[String]) -> impl Iterator<Item = &str> {
    let names = lists.iter().flat_map(|list| list.split(','));
    names.map(str::trim).filter(|name| !name.is_empty())
}

/// The look-up keys of a host or URL. A URL without a path is a host, but may be an endpoint too; any other URL may be
/// the base URL of an agent.
fn url_lookup_keys(text: &str) -> Vec<String> {
    let host_key =
        |name: &str| format!("host:{}", name.trim_end_matches(['/', '.']).to_lowercase());
    let parsed = Url::parse(text).ok().filter(|_| text.contains("://"));
    let Some(url) = parsed else {
        return vec![host_key(text)];
    };
    let url_key = format!("url:{url}");
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if is_bare && url.has_host() {
        return vec![host_key(&Domain::from_url(&url).name), url_key];
    }
    let under = card_url_under(&url).map(|url| format!("url:{url}"));
    std::iter::once(url_key).chain(under).collect()
}

pub fn check_text_length(pointer: &str, text: &str, limit: usize) -> Result<()> {
    if text.chars().count() <= limit {
        return Ok(());
    }
    Err(AppError::invalid(
        pointer,
        format!("at most {limit} characters"),
    ))
}

#[cfg(test)]
mod tests {
    use a2a_registry_api::search_query::SORT_ORDERS;

    use super::*;

    #[test]
    fn the_documented_orders_are_those_of_the_index() {
        assert_eq!(SORT_ORDERS, SortOrder::ALL.map(SortOrder::as_str));
    }
}
