//! Reads security schemes and requirements in any generation's form.

use serde_json::{Map, Value};

use super::informal::names_no_scheme;
use super::{v0_2, v1_0};
use crate::finding::Findings;
use crate::member::{self, Length, MAX_LIST, Members};
use crate::pointer::Pointer;
use crate::{SchemeKind, SecurityRequirement, SecurityScheme, rules};

/// Takes `securitySchemes`, sorted by name.
pub(super) fn schemes(members: &mut Members<'_>, out: &mut Findings) -> Vec<SecurityScheme> {
    let Some((spot, value)) = members.take("securitySchemes", out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    let unread = value.clone();
    let mut schemes = match value {
        Value::Object(named) if named.is_empty() => return Vec::new(),
        Value::Object(named) => named_schemes(named, &at, out),
        Value::Array(list) => {
            out.add(
                &rules::SCHEME_LIST,
                &at,
                &format!("{} elements", list.len()),
            );
            if list.is_empty() {
                return Vec::new();
            }
            listed_schemes(list, &at, out)
        }
        other => {
            out.mistyped(&at, &other, "an object of schemes by name");
            members.keep(&spot, other);
            return Vec::new();
        }
    };
    if schemes.is_empty() {
        // Credentials are required, but it is unknown which.
        members.keep(&spot, unread);
    }
    schemes.sort_by(|a, b| a.name.cmp(&b.name));
    schemes
}

fn named_schemes(
    named: Map<String, Value>,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Vec<SecurityScheme> {
    if named.len() > MAX_LIST {
        out.add(&rules::LIST_CUT, at, &format!("{} schemes", named.len()));
    }
    let mut schemes = Vec::new();
    for (name, value) in named.into_iter().take(MAX_LIST) {
        let at = at.name(&name);
        if let Some((kind, description)) = scheme(value, &at, out) {
            schemes.push(SecurityScheme {
                name: member::bounded(name.clone(), &at, Length::Line, out).unwrap_or_default(),
                kind,
                description,
            });
        }
    }
    schemes
}

/// Schemes in a list: named by `id`, or by their type.
fn listed_schemes(list: Vec<Value>, at: &Pointer<'_>, out: &mut Findings) -> Vec<SecurityScheme> {
    let mut schemes: Vec<SecurityScheme> = Vec::new();
    for (index, value) in member::cut(list, at, out).into_iter().enumerate() {
        let at = at.index(index);
        let label = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let name = label("id")
            .or_else(|| label("type"))
            .or_else(|| value.as_str().map(str::to_owned))
            .unwrap_or_else(|| format!("scheme-{}", index + 1));
        let Some(name) = member::bounded(name, &at, Length::Line, out) else {
            continue;
        };
        if schemes.iter().any(|scheme| scheme.name == name) {
            out.add(&rules::SCHEME_UNREADABLE, &at, &name);
        } else if let Some((kind, description)) = scheme(value, &at, out) {
            schemes.push(SecurityScheme {
                name,
                kind,
                description,
            });
        }
    }
    schemes
}

/// Reads one scheme in any form; `None`, with a finding, if it is unreadable.
pub(super) fn scheme(
    value: Value,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Option<(SchemeKind, Option<String>)> {
    match value {
        Value::Object(inner) => {
            let mut inner = Members::new(inner, *at);
            let read = v1_0::scheme(&mut inner, out).or_else(|| v0_2::scheme(&mut inner, out));
            if read.is_none() {
                out.add_value(&rules::SCHEME_UNREADABLE, at, &Value::Object(inner.rest()));
            }
            read
        }
        Value::String(_) => {
            out.coerced(at, &value, "an object with the kind of the scheme");
            let Value::String(label) = value else {
                return None;
            };
            let label = member::bounded(label, at, Length::Line, out)?;
            if names_no_scheme(&label) {
                return None;
            }
            Some((v0_2::labelled(&label), None))
        }
        other => {
            out.add_value(&rules::SCHEME_UNREADABLE, at, &other);
            None
        }
    }
}

/// Takes `securityRequirements` (1.0) or `security` (0.2, 0.3, most 1.0 cards). `declared` are the card's own schemes.
pub(super) fn requirements(
    members: &mut Members<'_>,
    declared: &[SecurityScheme],
    out: &mut Findings,
) -> Vec<SecurityRequirement> {
    let mut requirements = Vec::new();
    for name in ["securityRequirements", "security"] {
        let Some((spot, value)) = members.take(name, out) else {
            continue;
        };
        let parent = members.at();
        let at = spot.below(&parent);
        let list = match value {
            Value::Array(list) => list,
            Value::Object(single) if names_scheme(&single, declared) => {
                out.add(&rules::SECURITY_SHAPE, &at, "an object");
                vec![Value::Object(single)]
            }
            other => {
                out.add_value(&rules::SECURITY_SHAPE, &at, &other);
                members.keep(&spot, other);
                continue;
            }
        };
        let mut read = Vec::new();
        let unread = Value::Array(list.clone());
        for (index, value) in member::cut(list, &at, out).into_iter().enumerate() {
            read.extend(requirement(value, &at.index(index), out));
        }
        if read.is_empty() && unread != Value::Array(Vec::new()) {
            members.keep(&spot, unread);
        }
        requirements.extend(read);
    }
    member::unique(requirements)
}

/// Whether an object in place of a list mentions schemes at all.
fn names_scheme(object: &Map<String, Value>, declared: &[SecurityScheme]) -> bool {
    object.contains_key("schemes")
        || declared
            .iter()
            .any(|scheme| object.contains_key(&scheme.name))
}

fn requirement(value: Value, at: &Pointer<'_>, out: &mut Findings) -> Option<SecurityRequirement> {
    let mut schemes = match value {
        Value::Object(mut entry) => match entry.shift_remove("schemes") {
            Some(Value::Object(inner)) if entry.is_empty() => {
                named_scopes(inner, &at.name("schemes"), out)
            }
            Some(other) => {
                entry.insert("schemes".to_owned(), other);
                named_scopes(entry, at, out)
            }
            None => named_scopes(entry, at, out),
        },
        Value::Array(names) => {
            out.add(&rules::SECURITY_SHAPE, at, "a list");
            let names = member::texts(names, at, Length::Line, out);
            // An empty list inside the list would otherwise admit callers without credentials.
            if names.is_empty() {
                return None;
            }
            names.into_iter().map(|name| (name, Vec::new())).collect()
        }
        Value::String(name) => {
            out.add(&rules::SECURITY_SHAPE, at, &name);
            let name = member::bounded(name, at, Length::Line, out)?;
            vec![(name, Vec::new())]
        }
        other => {
            out.add_value(&rules::SECURITY_SHAPE, at, &other);
            return None;
        }
    };
    schemes.sort();
    schemes.dedup_by(|a, b| a.0 == b.0);
    Some(SecurityRequirement { schemes })
}

/// Scopes by scheme name: a list (0.x) or an object with `list` (1.0).
fn named_scopes(
    named: Map<String, Value>,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Vec<(String, Vec<String>)> {
    let mut schemes = Vec::new();
    for (name, value) in named.into_iter().take(MAX_LIST) {
        let at = at.name(&name);
        let scopes = match value {
            Value::Array(list) => member::texts(list, &at, Length::Line, out),
            Value::Object(_) => v1_0::scopes(value, &at, out),
            Value::Null => Vec::new(),
            other => {
                out.add_value(&rules::SECURITY_SHAPE, &at, &other);
                Vec::new()
            }
        };
        if let Some(name) = member::bounded(name.clone(), &at, Length::Line, out) {
            schemes.push((name, scopes));
        }
    }
    schemes
}
