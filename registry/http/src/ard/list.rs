//! `GET /agents` and `GET /agents/{identifier}` (ARD sections 5.3.4 and 5.3.5).

use a2a_registry_api::ard::{Entry, List};
use a2a_registry_api::deserialize_nonempty_parameter;
use a2a_registry_core::agents::catalog_entry::{
    FORMER_IDENTIFIER_ATTRIBUTE, LOWERCASE_NAME_ATTRIBUTE, any_catalog_entry_filter,
    normalize_media_type, urn_publisher, with_former_urn,
};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::database_health::require_recent_database_contact;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::search::engine::MAX_PAGE_BYTES;
use a2a_registry_core::search_pool::run_search;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::{
    AgentListRequest, AgentProperty, ExactFilter, ListSortKey, ListSortValue,
};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::ard::filter_terms::MAX_CONDITIONS;
use crate::ard::search::validate_page_size;
use crate::ard::{ArdScope, SURFACE, load_complete_entries, require_ard_enabled};

const DEFAULT_PAGE_SIZE: u32 = 20;
/// Maximum length of a filter, in bytes.
const MAX_FILTER_BYTES: usize = 4096;
const MAX_TERMS: usize = 16;

/// Query parameters of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ListQuery {
    /// Terms joined by `AND`: `displayName`, `type`, `publisherId` with `=`, `createdAfter` and `updatedAfter` with
    /// `=` or `>`; values in quotes `'` or bare, alternatives separated by commas.
    pub filter: Option<String>,
    /// Sort order: `displayName`, `updatedAt`, `createdAt`, each followed by `ASC` or `DESC`, separated by commas. By
    /// default entries are sorted by identifier.
    pub order_by: Option<String>,
    /// Number of entries on the page: 20 by default, at most 100; larger values count as 100.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(minimum = 1)]
    pub page_size: Option<i64>,
    /// `pageToken` of the previous page.
    pub page_token: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
enum ListCursorValue {
    Text(String),
    Time(i64),
}

pub(crate) async fn list_catalog_entries(
    context: &AppContext,
    caller: &Caller,
    scope: &ArdScope,
    query: &ListQuery,
) -> Result<List> {
    require_ard_enabled(context)?;
    require_recent_database_contact(context)?;
    let mut request = parse_list_filter(query.filter.as_deref().unwrap_or_default())?;
    request.sort_order = parse_sort_order(query.order_by.as_deref().unwrap_or_default())?;
    request.limit = validate_page_size(query.page_size, DEFAULT_PAGE_SIZE)? as usize;
    request.max_bytes = Some(MAX_PAGE_BYTES);
    let within = scope.load_collection_scope(context, caller).await?;
    let query_key = format!(
        "{SURFACE} list {:?} {:?} {}",
        query.filter, query.order_by, within.canonical_text
    );
    request.filters.any_of = within.filters;
    request.filters.exact.push(any_catalog_entry_filter());
    request.visible_to = caller.labels(&context.policy_sets.enforced_set());
    if let Some(token) = &query.page_token {
        let place: Vec<ListCursorValue> = context
            .page_token_signer
            .decode_position(&query_key, caller, token)?;
        request.after = Some(place.into_iter().map(ListSortValue::from).collect());
    }
    let page = run_search(context, caller, move |index| index.list_agents(&request)).await?;
    let last = page.rows.last().filter(|_| page.has_more);
    let next = last.and_then(|last| {
        let place: Vec<ListCursorValue> = last
            .position
            .iter()
            .cloned()
            .map(ListCursorValue::from)
            .collect();
        context
            .page_token_signer
            .sign_position(&query_key, caller, &place)
    });
    Ok(List {
        items: load_complete_entries(context, &page.rows).await?,
        total: page.total,
        page_token: next,
    })
}

/// Returns an entry. An entry that the caller may not see is not found, like one that does not exist.
pub(crate) async fn load_catalog_entry(
    context: &AppContext,
    caller: &Caller,
    scope: &ArdScope,
    identifier: &str,
) -> Result<Entry> {
    require_ard_enabled(context)?;
    require_recent_database_contact(context)?;
    if urn_publisher(identifier).is_none() {
        let detail =
            "The identifier must have the form urn:air:PUBLISHER:…:NAME, percent-encoded once.";
        return Err(AppError::invalid("/identifier", detail));
    }
    let current = AgentProperty::Identifier;
    if let Some(entry) = find_catalog_entry(context, caller, scope, current, identifier).await? {
        return Ok(entry);
    }
    let former = AgentProperty::Attribute(FORMER_IDENTIFIER_ATTRIBUTE.to_owned());
    let entry = find_catalog_entry(context, caller, scope, former, identifier).await?;
    entry
        .map(|entry| with_former_urn(entry, identifier))
        .ok_or_else(|| AppError::not_found("No entry has this identifier."))
}

/// Finds the entry with this value of a property that is different for every agent.
async fn find_catalog_entry(
    context: &AppContext,
    caller: &Caller,
    scope: &ArdScope,
    property: AgentProperty,
    value: &str,
) -> Result<Option<Entry>> {
    let collection_filter = scope.load_collection_scope(context, caller).await?;
    let mut request = AgentListRequest {
        visible_to: caller.labels(&context.policy_sets.enforced_set()),
        limit: 1,
        ..AgentListRequest::default()
    };
    request.filters.any_of = collection_filter.filters;
    request.filters.exact = vec![
        any_catalog_entry_filter(),
        ExactFilter {
            property,
            values: vec![value.to_owned()],
        },
    ];
    let page = run_search(context, caller, move |index| index.list_agents(&request)).await?;
    Ok(load_complete_entries(context, &page.rows).await?.pop())
}

impl From<ListCursorValue> for ListSortValue {
    fn from(value: ListCursorValue) -> Self {
        match value {
            ListCursorValue::Text(text) => Self::Text(text),
            ListCursorValue::Time(time) => Self::Time(time),
        }
    }
}

impl From<ListSortValue> for ListCursorValue {
    fn from(value: ListSortValue) -> Self {
        match value {
            ListSortValue::Text(text) => Self::Text(text),
            ListSortValue::Time(time) => Self::Time(time),
        }
    }
}

fn invalid_filter(detail: String) -> AppError {
    AppError::invalid("/filter", detail)
}

fn parse_list_filter(text: &str) -> Result<AgentListRequest> {
    let mut request = AgentListRequest::default();
    if text.len() > MAX_FILTER_BYTES {
        return Err(invalid_filter(format!(
            "a filter can have at most {MAX_FILTER_BYTES} bytes"
        )));
    }
    let mut count = 0;
    for term in parse_filter_terms(text)? {
        count += term.values.len();
        if count > MAX_CONDITIONS {
            return Err(invalid_filter(format!(
                "a filter can have at most {MAX_CONDITIONS} values"
            )));
        }
        let exact_filter = |path: &str, values| ExactFilter {
            property: AgentProperty::Attribute(path.to_owned()),
            values,
        };
        let values = term.values;
        match (term.name.as_str(), term.operator) {
            ("displayName", '=') => {
                let values = values.iter().map(|value| value.to_lowercase()).collect();
                request
                    .filters
                    .exact
                    .push(exact_filter(LOWERCASE_NAME_ATTRIBUTE, values));
            }
            ("type", '=') => {
                let values = values
                    .iter()
                    .map(|value| normalize_media_type(value))
                    .collect();
                request.filters.exact.push(exact_filter("type", values));
            }
            ("publisherId", '=') => request
                .filters
                .exact
                .push(exact_filter("publisher", values)),
            ("createdAfter", _) => {
                request.created_after = Some(parse_filter_time(&term.name, &values)?)
            }
            ("updatedAfter", _) => {
                request.updated_after = Some(parse_filter_time(&term.name, &values)?)
            }
            _ => {
                let name: String = term.name.chars().take(50).collect();
                return Err(invalid_filter(format!(
                    "`{name}{}` is not a term: use displayName=, type=, publisherId=, createdAfter= or updatedAfter=, \
                    joined by AND",
                    term.operator
                )));
            }
        }
    }
    Ok(request)
}

fn parse_filter_time(name: &str, values: &[String]) -> Result<i64> {
    let invalid_time = || {
        invalid_filter(format!(
            "{name} must be one time such as 2026-09-30T08:15:00Z"
        ))
    };
    let [value] = values else {
        return Err(invalid_time());
    };
    let timestamp = match value.len() {
        10 => format!("{value}T00:00:00Z"),
        _ => value.clone(),
    };
    timestamp
        .parse::<Timestamp>()
        .map(|time| time.0)
        .map_err(|_| invalid_time())
}

struct FilterTerm {
    name: String,
    operator: char,
    values: Vec<String>,
}

/// Parses the terms of a filter: `name=value,'another value' AND name>value`.
fn parse_filter_terms(text: &str) -> Result<Vec<FilterTerm>> {
    let mut terms = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if terms.len() == MAX_TERMS {
            return Err(invalid_filter(format!(
                "a filter can have at most {MAX_TERMS} terms"
            )));
        }
        let end = rest.find(['=', '>']).ok_or_else(|| {
            invalid_filter(
                "a filter must consist of terms such as displayName='Parcel Tracker'".to_owned(),
            )
        })?;
        let name = rest[..end].trim().to_owned();
        let operator = if rest[end..].starts_with('=') {
            '='
        } else {
            '>'
        };
        let (values, after) = parse_filter_values(&rest[end + 1..])?;
        terms.push(FilterTerm {
            name,
            operator,
            values,
        });
        rest = after.trim_start();
        if rest.is_empty() {
            break;
        }
        rest = match rest.strip_prefix("AND") {
            Some(after) if after.starts_with(char::is_whitespace) && !after.trim().is_empty() => {
                after.trim_start()
            }
            _ => return Err(invalid_filter("terms must be joined by AND".to_owned())),
        };
    }
    Ok(terms)
}

/// Parses the values at the start of a text. Also returns the rest of the text.
fn parse_filter_values(text: &str) -> Result<(Vec<String>, &str)> {
    let mut values = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (value, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted
                .split_once('\'')
                .ok_or_else(|| invalid_filter("a quote is not closed".to_owned()))?,
            None => {
                let end = rest.find(|one: char| one == ',' || one.is_whitespace());
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        if value.is_empty() {
            return Err(invalid_filter("a term must have a value".to_owned()));
        }
        values.push(value.to_owned());
        match after.trim_start().strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => return Ok((values, after)),
        }
    }
}

fn parse_sort_order(text: &str) -> Result<Vec<(ListSortKey, bool)>> {
    let invalid_order = || {
        let detail = "orderBy must be displayName, updatedAt or createdAt, each with ASC or DESC, separated by commas";
        AppError::invalid("/orderBy", detail)
    };
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut sort_order: Vec<(ListSortKey, bool)> = Vec::new();
    for part in text.split(',') {
        let mut words = part.split_whitespace();
        let key = match words.next() {
            Some("displayName" | "name") => ListSortKey::Name,
            Some("updatedAt" | "updated_at") => ListSortKey::Updated,
            Some("createdAt" | "created_at") => ListSortKey::Created,
            _ => return Err(invalid_order()),
        };
        let descending = match words.next() {
            None | Some("ASC") => false,
            Some("DESC") => true,
            Some(_) => return Err(invalid_order()),
        };
        if words.next().is_some() || sort_order.iter().any(|(known, _)| *known == key) {
            return Err(invalid_order());
        }
        sort_order.push((key, descending));
    }
    Ok(sort_order)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn filters_are_read_in_both_forms() {
        let request = parse_list_filter(
            "displayName='Parcel, Tracker',other AND type = application/A2A-agent-card+json AND \
             updatedAfter>'2026-09-30T08:15:00Z' AND createdAfter=2026-09-30",
        )
        .unwrap();
        let values: Vec<Vec<String>> = request
            .filters
            .exact
            .iter()
            .map(|one| one.values.clone())
            .collect();
        assert_eq!(
            values,
            [
                vec!["parcel, tracker".to_owned(), "other".to_owned()],
                vec!["application/a2a-agent-card+json".to_owned()]
            ]
        );
        assert_eq!(request.updated_after, Some(1_790_756_100_000_000));
        assert_eq!(request.created_after, Some(1_790_726_400_000_000));
        assert_eq!(parse_list_filter("  ").unwrap().filters.exact, []);
        for wrong in [
            "x",
            "x=1",
            "displayName>a",
            "displayName=",
            "displayName='a",
            "displayName=a OR type=b",
            "displayName=a AND ",
            "displayName=a,,b",
            "updatedAfter=yesterday",
            "updatedAfter=2026-09-30,2026-10-01",
        ] {
            assert!(parse_list_filter(wrong).is_err(), "{wrong}");
        }
        let many = vec!["type=a"; MAX_TERMS].join(" AND ");
        assert!(parse_list_filter(&many).is_ok());
        assert!(parse_list_filter(&format!("{many} AND type=a")).is_err());
    }

    #[test]
    fn orders_are_read() {
        assert_eq!(
            parse_sort_order("name, updatedAt DESC ,createdAt ASC").unwrap(),
            [
                (ListSortKey::Name, false),
                (ListSortKey::Updated, true),
                (ListSortKey::Created, false)
            ]
        );
        for wrong in [
            "relevance",
            "name up",
            "name,name",
            "name DESC ASC",
            ",",
            "name desc",
        ] {
            assert!(parse_sort_order(wrong).is_err(), "{wrong}");
        }
    }
}
