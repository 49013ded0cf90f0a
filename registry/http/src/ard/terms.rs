//! Paths of terms in filters and facets (ARD section 5.3.1): the first segment is a term of JSON-LD, the rest is
//! literal.

use std::collections::BTreeMap;

use a2a_registry_api::ard::{FilterValues, Query};
use a2a_registry_core::agents::catalog_entry::parsed_type;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_domain::facet::Facet;
use a2a_registry_search::{ExactFilter, MAX_FILTER_VALUES, MAX_VALUE_BYTES, Property};
use serde_json::Value;

const NAMESPACE: &str = "https://agenticresourcediscovery.org/ns#";
/// The base context, which applies to every document.
const BASE_CONTEXT: &str = "https://agenticresourcediscovery.org/context/v1";
/// The prefix of the namespace in the base context.
const PREFIX: &str = "ard";
/// Maximum number of names that a query's own context defines.
const MAX_NAMES: usize = 64;
/// Maximum number of values of all conditions together: one is reserved for the condition on entries.
pub(crate) const MAX_CONDITIONS: usize = MAX_FILTER_VALUES - 1;
/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 256;

/// The meaning of the paths of a query: the base context, and what the query's own context adds.
pub(super) struct Terms(BTreeMap<String, String>);

impl Terms {
    /// A remote context other than ARD's is not fetched: its prefixes stay unknown.
    pub(super) fn of(query: &Query) -> Result<Self> {
        let mut names = BTreeMap::from([(PREFIX.to_owned(), NAMESPACE.to_owned())]);
        let one = query.context.as_ref();
        let all = match one {
            None => Vec::new(),
            Some(Value::Array(all)) => all.iter().collect(),
            Some(one) => vec![one],
        };
        for context in all {
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
                        "A context is the URL {BASE_CONTEXT}, an object of names, or a list of such."
                    );
                    return Err(AppError::invalid("/query/@context", detail));
                }
            }
            if names.len() > MAX_NAMES {
                let detail = format!("a context defines at most {MAX_NAMES} names");
                return Err(AppError::invalid("/query/@context", detail));
            }
        }
        Ok(Self(names))
    }

    pub(super) fn property(&self, pointer: &str, path: &str) -> Result<Property> {
        let shown: String = path.chars().take(100).collect();
        let unknown = |why: &str| {
            AppError::invalid(
                pointer,
                format!(
                    "`{shown}` {why}: entries are filtered by identifier, displayName, type, tags, capabilities, \
                     version, publisher, updatedAt, and by what is in trustManifest, metadata and data, as in \
                     metadata.lifecycle."
                ),
            )
        };
        if path.len() > MAX_PATH {
            return Err(unknown("is too long"));
        }
        let (term, rest) = match path.split_once('.') {
            Some((term, rest)) => (term, Some(rest)),
            None => (path, None),
        };
        let iri = self
            .resolved(term)
            .ok_or_else(|| unknown("has an unbound prefix"))?;
        let name = iri
            .strip_prefix(NAMESPACE)
            .ok_or_else(|| unknown("is no term of ARD"))?;
        let attribute = |path: String| Ok(Property::Attribute(path));
        match (name, rest) {
            ("identifier", None) => Ok(Property::Identifier),
            ("tags", None) => Ok(Property::Facet(Facet::Tag)),
            ("capabilities", None) => Ok(Property::Facet(Facet::Skill)),
            ("mediaType", None) => attribute("type".to_owned()),
            ("displayName" | "version" | "publisher" | "updatedAt", None) => {
                attribute(name.to_owned())
            }
            ("trustManifest" | "metadata" | "data", Some(rest))
                if rest.split('.').all(|part| !part.is_empty()) =>
            {
                attribute(format!("{name}.{rest}"))
            }
            _ => Err(unknown("cannot be filtered by")),
        }
    }

    /// The IRI of a term: a name of the query's context, a name with a prefix, or a term of the base context.
    fn resolved(&self, term: &str) -> Option<String> {
        if let Some((prefix, name)) = term.split_once(':') {
            let expanded = self.expanded(self.0.get(prefix)?);
            return Some(format!("{expanded}{name}"));
        }
        Some(match self.0.get(term).filter(|_| term != PREFIX) {
            Some(iri) => self.expanded(iri),
            None if term == "type" => format!("{NAMESPACE}mediaType"),
            None => format!("{NAMESPACE}{term}"),
        })
    }

    /// The value of a name, with its own prefix resolved once.
    fn expanded(&self, iri: &str) -> String {
        match iri.split_once(':') {
            Some((prefix, name)) if !name.starts_with("//") => match self.0.get(prefix) {
                Some(known) => format!("{known}{name}"),
                None => iri.to_owned(),
            },
            _ => iri.to_owned(),
        }
    }
}

pub(crate) fn conditions(query: &Query) -> Result<Vec<ExactFilter>> {
    let terms = Terms::of(query)?;
    let mut conditions = Vec::new();
    let mut count = 0;
    for (path, values) in &query.filter {
        let pointer = format!(
            "/query/filter/{}",
            path.replace('~', "~0").replace('/', "~1")
        );
        let property = terms.property(&pointer, path)?;
        let values = match values {
            FilterValues::One(one) => std::slice::from_ref(one),
            FilterValues::Many(many) => many,
        };
        if values.is_empty() {
            let detail = "a filter has at least one value";
            return Err(AppError::invalid(&pointer, detail));
        }
        count += values.len();
        if count > MAX_CONDITIONS || values.iter().any(|value| value.len() > MAX_VALUE_BYTES) {
            let detail = format!(
                "filters have at most {MAX_CONDITIONS} values of at most {MAX_VALUE_BYTES} bytes"
            );
            return Err(AppError::invalid(&pointer, detail));
        }
        let is_type = property == Property::Attribute("type".to_owned());
        let values = values.iter();
        conditions.push(ExactFilter {
            property,
            values: match is_type {
                true => values.map(|value| parsed_type(value)).collect(),
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

    fn property(path: &str, context: Value) -> Option<Property> {
        let query = Query {
            context: (!context.is_null()).then_some(context),
            ..Query::default()
        };
        Terms::of(&query).ok()?.property("/x", path).ok()
    }

    #[test]
    fn paths_lead_to_properties() {
        let attribute = |path: &str| Some(Property::Attribute(path.to_owned()));
        let none = Value::Null;
        for (path, context, expected) in [
            ("tags", none.clone(), Some(Property::Facet(Facet::Tag))),
            ("ard:tags", none.clone(), Some(Property::Facet(Facet::Tag))),
            ("type", none.clone(), attribute("type")),
            ("ard:mediaType", none.clone(), attribute("type")),
            ("identifier", none.clone(), Some(Property::Identifier)),
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
                Some(Property::Facet(Facet::Tag)),
            ),
            (
                "labels",
                json!([BASE_CONTEXT, {"labels": "ard:tags"}]),
                Some(Property::Facet(Facet::Tag)),
            ),
            (
                "labels",
                json!({"labels": {"@id": format!("{NAMESPACE}tags")}}),
                Some(Property::Facet(Facet::Tag)),
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
        let many: serde_json::Map<String, Value> = (0..=MAX_NAMES)
            .map(|number| (format!("n{number}"), json!("x")))
            .collect();
        assert_eq!(property("tags", Value::Object(many)), None);
        assert_eq!(
            property(&format!("metadata.{}", "x".repeat(MAX_PATH)), none),
            None
        );
    }
}
