//! Reader of security schemes and requirements in any generation's form.

use serde_json::{Map, Value};

use super::informal_credentials::is_access_policy_label;
use super::{v0_2, v1_0};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MAX_LIST_ELEMENTS, MemberReader};
use crate::{SchemeKind, SecurityRequirement, SecurityScheme, rules};

/// Takes `securitySchemes`, sorted by name.
pub(super) fn take_schemes(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Vec<SecurityScheme> {
    let Some((position, value)) = members.take_member("securitySchemes", out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let original_value = value.clone();
    let mut schemes = match value {
        Value::Object(named) if named.is_empty() => return Vec::new(),
        Value::Object(named) => read_named_schemes(named, &pointer, out),
        Value::Array(list) => {
            out.add(
                &rules::SCHEME_LIST,
                &pointer,
                &format!("{} elements", list.len()),
            );
            if list.is_empty() {
                return Vec::new();
            }
            read_listed_schemes(list, &pointer, out)
        }
        other => {
            out.add_wrong_type(&pointer, &other, "an object of schemes by name");
            members.retain_unreadable(&position, other);
            return Vec::new();
        }
    };
    if schemes.is_empty() {
        // Credentials are required, but it is unknown which.
        members.retain_unreadable(&position, original_value);
    }
    schemes.sort_by(|a, b| a.name.cmp(&b.name));
    schemes
}

fn read_named_schemes(
    schemes_by_name: Map<String, Value>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Vec<SecurityScheme> {
    if schemes_by_name.len() > MAX_LIST_ELEMENTS {
        out.add(
            &rules::LIST_CUT,
            pointer,
            &format!("{} schemes", schemes_by_name.len()),
        );
    }
    let mut schemes = Vec::new();
    for (name, value) in schemes_by_name.into_iter().take(MAX_LIST_ELEMENTS) {
        let pointer = pointer.member(&name);
        if let Some((kind, description)) = read_scheme(value, &pointer, out) {
            schemes.push(SecurityScheme {
                name: member_reader::trim_and_truncate(
                    name.clone(),
                    &pointer,
                    LengthLimit::Line,
                    out,
                )
                .unwrap_or_default(),
                kind,
                description,
            });
        }
    }
    schemes
}

/// Reads schemes in a list: named by `id`, or by their type.
fn read_listed_schemes(
    list: Vec<Value>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Vec<SecurityScheme> {
    let mut schemes: Vec<SecurityScheme> = Vec::new();
    for (index, value) in member_reader::truncate_list(list, pointer, out)
        .into_iter()
        .enumerate()
    {
        let pointer = pointer.element(index);
        let text_member = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let name = text_member("id")
            .or_else(|| text_member("type"))
            .or_else(|| value.as_str().map(str::to_owned))
            .unwrap_or_else(|| format!("scheme-{}", index + 1));
        let Some(name) = member_reader::trim_and_truncate(name, &pointer, LengthLimit::Line, out)
        else {
            continue;
        };
        if schemes.iter().any(|scheme| scheme.name == name) {
            out.add(&rules::SCHEME_UNREADABLE, &pointer, &name);
        } else if let Some((kind, description)) = read_scheme(value, &pointer, out) {
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
pub(super) fn read_scheme(
    value: Value,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Option<(SchemeKind, Option<String>)> {
    match value {
        Value::Object(inner) => {
            let mut inner = MemberReader::new(inner, *pointer);
            let scheme = v1_0::take_wrapped_scheme(&mut inner, out)
                .or_else(|| v0_2::take_typed_scheme(&mut inner, out));
            if scheme.is_none() {
                out.add_with_value(
                    &rules::SCHEME_UNREADABLE,
                    pointer,
                    &Value::Object(inner.into_remaining()),
                );
            }
            scheme
        }
        Value::String(_) => {
            out.add_coerced_type(pointer, &value, "an object with the kind of the scheme");
            let Value::String(label) = value else {
                return None;
            };
            let label = member_reader::trim_and_truncate(label, pointer, LengthLimit::Line, out)?;
            if is_access_policy_label(&label) {
                return None;
            }
            Some((v0_2::scheme_kind_from_label(&label), None))
        }
        other => {
            out.add_with_value(&rules::SCHEME_UNREADABLE, pointer, &other);
            None
        }
    }
}

/// Takes `securityRequirements` (1.0) or `security` (0.2, 0.3, most 1.0 cards). `declared_schemes` are the card's own
/// schemes.
pub(super) fn take_security_requirements(
    members: &mut MemberReader<'_>,
    declared_schemes: &[SecurityScheme],
    out: &mut FindingCollector,
) -> Vec<SecurityRequirement> {
    let mut requirements = Vec::new();
    for name in ["securityRequirements", "security"] {
        let Some((position, value)) = members.take_member(name, out) else {
            continue;
        };
        let parent = members.pointer();
        let pointer = position.pointer_in(&parent);
        let list = match value {
            Value::Array(list) => list,
            Value::Object(single) if has_scheme_name(&single, declared_schemes) => {
                out.add(&rules::SECURITY_SHAPE, &pointer, "an object");
                vec![Value::Object(single)]
            }
            other => {
                out.add_with_value(&rules::SECURITY_SHAPE, &pointer, &other);
                members.retain_unreadable(&position, other);
                continue;
            }
        };
        let mut read_requirements = Vec::new();
        let original_list = Value::Array(list.clone());
        for (index, value) in member_reader::truncate_list(list, &pointer, out)
            .into_iter()
            .enumerate()
        {
            read_requirements.extend(read_security_requirement(
                value,
                &pointer.element(index),
                out,
            ));
        }
        if read_requirements.is_empty() && original_list != Value::Array(Vec::new()) {
            members.retain_unreadable(&position, original_list);
        }
        requirements.extend(read_requirements);
    }
    member_reader::unique_values(requirements)
}

/// Whether an object that replaces a list mentions schemes at all.
fn has_scheme_name(object: &Map<String, Value>, declared_schemes: &[SecurityScheme]) -> bool {
    object.contains_key("schemes")
        || declared_schemes
            .iter()
            .any(|scheme| object.contains_key(&scheme.name))
}

fn read_security_requirement(
    value: Value,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Option<SecurityRequirement> {
    let mut schemes = match value {
        Value::Object(mut entry) => match entry.shift_remove("schemes") {
            Some(Value::Object(inner)) if entry.is_empty() => {
                read_named_scopes(inner, &pointer.member("schemes"), out)
            }
            Some(other) => {
                entry.insert("schemes".to_owned(), other);
                read_named_scopes(entry, pointer, out)
            }
            None => read_named_scopes(entry, pointer, out),
        },
        Value::Array(names) => {
            out.add(&rules::SECURITY_SHAPE, pointer, "a list");
            let names = member_reader::read_texts(names, pointer, LengthLimit::Line, out);
            // Otherwise an empty list inside the list would admit callers without credentials.
            if names.is_empty() {
                return None;
            }
            names.into_iter().map(|name| (name, Vec::new())).collect()
        }
        Value::String(name) => {
            out.add(&rules::SECURITY_SHAPE, pointer, &name);
            let name = member_reader::trim_and_truncate(name, pointer, LengthLimit::Line, out)?;
            vec![(name, Vec::new())]
        }
        other => {
            out.add_with_value(&rules::SECURITY_SHAPE, pointer, &other);
            return None;
        }
    };
    schemes.sort();
    schemes.dedup_by(|a, b| a.0 == b.0);
    Some(SecurityRequirement { schemes })
}

/// Reads scopes by scheme name: a list (0.x) or an object with `list` (1.0).
fn read_named_scopes(
    scopes_by_scheme: Map<String, Value>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Vec<(String, Vec<String>)> {
    let mut schemes = Vec::new();
    for (name, value) in scopes_by_scheme.into_iter().take(MAX_LIST_ELEMENTS) {
        let pointer = pointer.member(&name);
        let scopes = match value {
            Value::Array(list) => member_reader::read_texts(list, &pointer, LengthLimit::Line, out),
            Value::Object(_) => v1_0::read_scopes(value, &pointer, out),
            Value::Null => Vec::new(),
            other => {
                out.add_with_value(&rules::SECURITY_SHAPE, &pointer, &other);
                Vec::new()
            }
        };
        if let Some(name) =
            member_reader::trim_and_truncate(name.clone(), &pointer, LengthLimit::Line, out)
        {
            schemes.push((name, scopes));
        }
    }
    schemes
}
