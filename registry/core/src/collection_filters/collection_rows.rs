//! Rows of collections: who sees them, and the filter that selects their agents.
//!
//! A filter has the form `label:env=prod tag:finance provider:"Acme Corp"`: values of one name are alternatives, and
//! different names must all match, as in a search. It contains neither words nor other collections, so it can be
//! evaluated on an agent's rows.

use a2a_registry_api::limits::{MAX_FILTER_TERMS, MAX_FILTER_TEXT};
use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_domain::role::Permission;
use a2a_registry_search::Filters;
use a2a_registry_store::entity::collection;
use uuid::Uuid;

use crate::collection_filters::filters::build_filters;
use crate::error::{AppError, Result};
use crate::visibility::audience::decode_audience;
use crate::visibility::caller::Caller;

/// The JSON pointer to the text of a filter in a request.
const FILTER_POINTER: &str = "/filter";

pub fn collection_owners(row: &collection::Model) -> Vec<Uuid> {
    serde_json::from_str(&row.owners).unwrap_or_default()
}

/// Whether a caller may see a collection: everyone if it has no audience, else the members of its groups, its owners,
/// and those who see everything.
pub fn can_see_collection(caller: &Caller, row: &collection::Model) -> bool {
    let Some(audience) = row.audience.as_deref() else {
        return true;
    };
    if caller.has_permission(Permission::SeeAll) {
        return true;
    }
    let account = caller.account.as_ref();
    account
        .filter(|account| account.has_permission(Permission::Read))
        .is_some_and(|account| {
            let groups = decode_audience(Some(audience));
            groups.iter().any(|group| account.groups.contains(group))
                || collection_owners(row).contains(&account.id)
        })
}

/// Parses the text of a filter; returns it with one space between its terms, and the parsed filters.
pub fn parse_collection_filter(text: &str) -> Result<(String, Filters)> {
    if text.chars().count() > MAX_FILTER_TEXT {
        let detail = format!("at most {MAX_FILTER_TEXT} characters");
        return Err(AppError::invalid(FILTER_POINTER, detail));
    }
    let terms = parse_filter_terms(text)?;
    if terms.is_empty() || terms.len() > MAX_FILTER_TERMS {
        let detail =
            format!("a filter must have 1 to {MAX_FILTER_TERMS} terms such as tag:finance");
        return Err(AppError::invalid(FILTER_POINTER, detail));
    }
    let mut values = FacetMap::<Vec<String>>::default();
    for (name, value) in &terms {
        let facet: Facet = name.parse().map_err(|_| unknown_filter_error(name))?;
        if facet == Facet::Trust && !values[facet].is_empty() {
            let detail = "trust is a minimum level and may be given only once";
            return Err(AppError::invalid(FILTER_POINTER, detail));
        }
        values[facet].push(value.clone());
    }
    let filters = build_filters(values).map_err(|error| AppError {
        members: vec![(FILTER_POINTER.to_owned(), error.public.clone())],
        ..error
    })?;
    let pairs = terms
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Ok((format_filter(pairs), filters))
}

fn unknown_filter_error(name: &str) -> AppError {
    let name: String = name.chars().take(50).collect();
    let names = Facet::joined_names();
    let detail = format!("{name} is not a filter for collections; the filters are {names}");
    AppError::invalid(FILTER_POINTER, detail)
}

/// The terms of a filter, each with its name and value, which are a search's.
pub fn parse_filter_terms(text: &str) -> Result<Vec<(String, String)>> {
    let invalid = |detail: &str| AppError::invalid(FILTER_POINTER, detail);
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once(':')
            .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
            .ok_or_else(|| invalid("a filter must have terms such as tag:finance, and no words"))?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted
                .split_once('"')
                .filter(|(_, after)| after.is_empty() || after.starts_with(char::is_whitespace))
                .ok_or_else(|| invalid("a quoted value must end with a quote"))?,
            None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
        };
        if value.is_empty() || value.contains(['"', '\0']) {
            return Err(invalid(
                "a value must have at least one character, and no quote or U+0000",
            ));
        }
        terms.push((name.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    Ok(terms)
}

/// Writes terms as the text of a filter, with one space between them.
pub fn format_filter<'n, 'v>(terms: impl Iterator<Item = (&'n str, &'v str)>) -> String {
    let terms = terms.map(|(name, value)| match value.contains(char::is_whitespace) {
        true => format!("{name}:\"{value}\""),
        false => format!("{name}:{value}"),
    });
    terms.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_filter_is_read_as_a_search_has_it() {
        let (written, filters) = parse_collection_filter(
            "  label:env=prod\ttag:Finance tag:tax provider:\"Acme  Corp\" trust:L2 ",
        )
        .unwrap();
        assert_eq!(
            written,
            "label:env=prod tag:Finance tag:tax provider:\"Acme  Corp\" trust:L2"
        );
        assert_eq!(
            parse_collection_filter(&written).unwrap(),
            (written.clone(), filters.clone())
        );
        let expected = FacetMap::from([
            (Facet::Label, vec!["env=prod".to_owned()]),
            (Facet::Tag, vec!["Finance".into(), "tax".into()]),
            (Facet::Provider, vec!["acme  corp".into()]),
            (Facet::Trust, vec!["L2".into(), "L3".into(), "L4".into()]),
        ]);
        assert_eq!(filters.values, expected);
        let (_, one) =
            parse_collection_filter("auth:http:bearer capability:https://a.example/x").unwrap();
        assert_eq!(
            (&one.values[Facet::Auth], &one.values[Facet::Capability]),
            (
                &vec!["http:bearer".to_owned()],
                &vec!["https://a.example/x".to_owned()],
            )
        );
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let many: Vec<String> = (0..=MAX_FILTER_TERMS)
            .map(|n| format!("tag:t{n}"))
            .collect();
        let long = format!("tag:{}", "x".repeat(MAX_FILTER_TEXT));
        for text in [
            "",
            "  ",
            "words alone",
            "tag:finance words",
            "collection:other",
            "q:words",
            "tag:",
            ":x",
            "tag:\"open",
            "tag:\"a\"b",
            "tag:a\"b",
            "tag:\0",
            "lifecycle:nowhere",
            "unmanaged:perhaps",
            "trust:L9",
            "trust:L1 trust:L2",
            &many.join(" "),
            &long,
        ] {
            let error = parse_collection_filter(text).unwrap_err();
            assert_eq!(error.members[0].0, FILTER_POINTER, "{text}: {error:?}");
        }
        let most = many[..MAX_FILTER_TERMS].join(" ");
        assert!(parse_collection_filter(&most).is_ok());
    }
}
