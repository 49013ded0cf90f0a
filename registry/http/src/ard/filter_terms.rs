//! Term paths in filters and facets (ARD section 5.3.1): the first segment is a JSON-LD term, the rest is literal.

use std::collections::BTreeMap;

use a2a_registry_api::ard::{FilterValues, Query};
use a2a_registry_core::agents::catalog_entry::normalize_media_type;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_domain::facet::Facet;
use a2a_registry_search::{AgentProperty, ExactFilter, MAX_FILTER_VALUES, MAX_VALUE_BYTES};
use serde_json::Value;

const NAMESPACE: &str = "https://agenticresourcediscovery.org/ns#";
/// URL of the base context, which applies to every document.
const BASE_CONTEXT: &str = "https://agenticresourcediscovery.org/context/v1";
/// Prefix of the ARD namespace in the base context.
const NAMESPACE_PREFIX: &str = "ard";
/// Maximum number of names that a query's own context defines.
const MAX_CONTEXT_NAMES: usize = 64;
/// Maximum number of values in all conditions of a query together. One less than a search allows, because the
/// registry adds a condition with one value: that the agent has a catalog entry.
pub(crate) const MAX_CONDITIONS: usize = MAX_FILTER_VALUES - 1;
/// Maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 256;

/// Term definitions of a query: the base context plus the query's own context.
pub(super) struct TermContext(BTreeMap<String, String>);

impl TermContext {
    /// Builds the context of a query. ARD's context is built in. Other remote contexts are not fetched, so their
    /// prefixes stay unknown.
    pub(super) fn from_query(query: &Query) -> Result<Self> {
        let mut names = BTreeMap::from([(NAMESPACE_PREFIX.to_owned(), NAMESPACE.to_owned())]);
        let query_context = query.context.as_ref();
        let contexts = match query_context {
            None => Vec::new(),
            Some(Value::Array(all)) => all.iter().collect(),
            Some(one) => vec![one],
        };
        for context in contexts {
            match context {
                Value::String(_) => {}
                Value::Object(members) => {
                    for (name, value) in members {
                        let id = value.as_str().or_else(|| value.get("@id")?.as_str());
                        if let Some(id) = id.filter(|_| !name.starts_with('@')) {
                            names.insert(name.clone(), id.to_owned());
                        }
                    }
                }
                _ => {
                    let detail = format!(
                        "A context must be the URL {BASE_CONTEXT}, an object of names, or a list of these."
                    );
                    return Err(AppError::invalid("/query/@context", detail));
                }
            }
            if names.len() > MAX_CONTEXT_NAMES {
                let detail = format!("a context can define at most {MAX_CONTEXT_NAMES} names");
                return Err(AppError::invalid("/query/@context", detail));
            }
        }
        Ok(Self(names))
    }

    pub(super) fn resolve_property(&self, pointer: &str, path: &str) -> Result<AgentProperty> {
        let quoted_path: String = path.chars().take(100).collect();
        let invalid_path = |why: &str| {
            AppError::invalid(
                pointer,
                format!(
                    "`{quoted_path}` {why}: filter entries by identifier, displayName, type, tags, capabilities, \
                    version, publisher, updatedAt, or members of trustManifest, metadata and data, such as \
                    metadata.lifecycle."
                ),
            )
        };
        if path.len() > MAX_PATH_BYTES {
            return Err(invalid_path("is too long"));
        }
        let (term, rest) = match path.split_once('.') {
            Some((term, rest)) => (term, Some(rest)),
            None => (path, None),
        };
        let iri = self
            .resolve_term(term)
            .ok_or_else(|| invalid_path("has an unbound prefix"))?;
        let name = iri
            .strip_prefix(NAMESPACE)
            .ok_or_else(|| invalid_path("is not an ARD term"))?;
        let attribute = |path: String| Ok(AgentProperty::Attribute(path));
        match (name, rest) {
            ("identifier", None) => Ok(AgentProperty::Identifier),
            ("tags", None) => Ok(AgentProperty::Facet(Facet::Tag)),
            ("capabilities", None) => Ok(AgentProperty::Facet(Facet::Skill)),
            ("mediaType", None) => attribute("type".to_owned()),
            ("displayName" | "version" | "publisher" | "updatedAt", None) => {
                attribute(name.to_owned())
            }
            ("trustManifest" | "metadata" | "data", Some(rest))
                if rest.split('.').all(|part| !part.is_empty()) =>
            {
                attribute(format!("{name}.{rest}"))
            }
            _ => Err(invalid_path("cannot be filtered by")),
        }
    }

    /// Resolves a term to its IRI. A term is a name of the query's context, a prefixed name, or a name of the base
    /// context.
    fn resolve_term(&self, term: &str) -> Option<String> {
        if let Some((prefix, name)) = term.split_once(':') {
            let expanded = self.expand_prefix(self.0.get(prefix)?);
            return Some(format!("{expanded}{name}"));
        }
        Some(
            match self.0.get(term).filter(|_| term != NAMESPACE_PREFIX) {
                Some(iri) => self.expand_prefix(iri),
                None if term == "type" => format!("{NAMESPACE}mediaType"),
                None => format!("{NAMESPACE}{term}"),
            },
        )
    }

    /// Expands the prefix of `iri` if the context defines it. A prefix in the result is not expanded again.
    fn expand_prefix(&self, iri: &str) -> String {
        match iri.split_once(':') {
            Some((prefix, name)) if !name.starts_with("//") => match self.0.get(prefix) {
                Some(known) => format!("{known}{name}"),
                None => iri.to_owned(),
            },
            _ => iri.to_owned(),
        }
    }
}

pub(crate) fn parse_filter_conditions(query: &Query) -> Result<Vec<ExactFilter>> {
    let term_context = TermContext::from_query(query)?;
    let mut conditions = Vec::new();
    let mut count = 0;
    for (path, values) in &query.filter {
        let pointer = format!(
            "/query/filter/{}",
            path.replace('~', "~0").replace('/', "~1")
        );
        let property = term_context.resolve_property(&pointer, path)?;
        let values = match values {
            FilterValues::One(one) => std::slice::from_ref(one),
            FilterValues::Many(many) => many,
        };
        if values.is_empty() {
            let detail = "a filter must have at least one value";
            return Err(AppError::invalid(&pointer, detail));
        }
        count += values.len();
        if count > MAX_CONDITIONS || values.iter().any(|value| value.len() > MAX_VALUE_BYTES) {
            let detail = format!(
                "filters can have at most {MAX_CONDITIONS} values of at most {MAX_VALUE_BYTES} bytes"
            );
            return Err(AppError::invalid(&pointer, detail));
        }
        let is_type = property == AgentProperty::Attribute("type".to_owned());
        let values = values.iter();
        conditions.push(ExactFilter {
            property,
            values: match is_type {
                true => values.map(|value| normalize_media_type(value)).collect(),
                false => values.cloned().collect(),
            },
        });
    }
    Ok(conditions)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn property(path: &str, context: Value) -> Option<AgentProperty> {
        let query = Query {
            context: (!context.is_null()).then_some(context),
            ..Query::default()
        };
        TermContext::from_query(&query)
            .ok()?
            .resolve_property("/x", path)
            .ok()
    }

    #[test]
    fn paths_lead_to_properties() {
        let attribute = |path: &str| Some(AgentProperty::Attribute(path.to_owned()));
        let none = Value::Null;
        for (path, context, expected) in [
            ("tags", none.clone(), Some(AgentProperty::Facet(Facet::Tag))),
            (
                "ard:tags",
                none.clone(),
                Some(AgentProperty::Facet(Facet::Tag)),
            ),
            ("type", none.clone(), attribute("type")),
            ("ard:mediaType", none.clone(), attribute("type")),
            ("identifier", none.clone(), Some(AgentProperty::Identifier)),
            ("metadata.a.b", none.clone(), attribute("metadata.a.b")),
            ("ard:metadata.x:y", none.clone(), attribute("metadata.x:y")),
            (
                "trustManifest.identity",
                none.clone(),
                attribute("trustManifest.identity"),
            ),
            (
                "x:tags",
                json!({"x": NAMESPACE}),
                Some(AgentProperty::Facet(Facet::Tag)),
            ),
            (
                "labels",
                json!([BASE_CONTEXT, {"labels": "ard:tags"}]),
                Some(AgentProperty::Facet(Facet::Tag)),
            ),
            (
                "labels",
                json!({"labels": {"@id": format!("{NAMESPACE}tags")}}),
                Some(AgentProperty::Facet(Facet::Tag)),
            ),
            ("x:tags", none.clone(), None),
            ("x:tags", json!("https://elsewhere.example/context"), None),
            (
                "tags",
                json!({"tags": "https://elsewhere.example/ns#tags"}),
                None,
            ),
            ("tags.x", none.clone(), None),
            ("metadata", none.clone(), None),
            ("metadata.", none.clone(), None),
            ("metadata..x", none.clone(), None),
            ("colour", none.clone(), None),
            ("", none.clone(), None),
            ("tags", json!(7), None),
        ] {
            assert_eq!(
                property(path, context.clone()),
                expected,
                "{path} {context}"
            );
        }
        let many: serde_json::Map<String, Value> = (0..=MAX_CONTEXT_NAMES)
            .map(|number| (format!("n{number}"), json!("x")))
            .collect();
        assert_eq!(property("tags", Value::Object(many)), None);
        assert_eq!(
            property(&format!("metadata.{}", "x".repeat(MAX_PATH_BYTES)), none),
            None
        );
    }
}
