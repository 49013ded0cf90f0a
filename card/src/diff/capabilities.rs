//! Rules for capabilities: flags and protocol extensions.

use serde_json::{Map, Value};

use super::change::ChangeClass::{self, Critical, High, Low};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::json_equality::{
    BeforeAfter, MemberType, both_empty_or_null, canonical_text, is_empty_or_null, values_equal,
};
use super::list_matching::match_lists;
use super::lists_and_texts::{
    STILL_EMPTY, add_change_if_reordered, compare_wording, list_elements,
};
use super::object_members::ObjectMembers;
use super::unknown_members;
use crate::json_pointer::JsonPointer;

const CAPABILITY_MEMBERS: &[&str] = &[
    "streaming",
    "pushNotifications",
    "extendedAgentCard",
    "stateTransitionHistory",
    "extensions",
];

const EXTENSION_MEMBERS: &[&str] = &["uri", "required", "description", "params"];

const MAX_ACCOUNT_CHARS: usize = 256;

/// Compares the capabilities of two cards. `owner_extension` is the URI of the extension by which an owner proves that
/// a card is theirs.
pub(super) fn compare_capabilities(
    owner_extension: Option<&str>,
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    if let Some((name, values)) = new.changed_member(old, "supportsAuthenticatedExtendedCard") {
        compare_capability_flag(&pointer.member(name), values, out);
    }
    let Some((name, values)) = new.changed_member(old, "capabilities") else {
        return;
    };
    let pointer = pointer.member(name);
    if both_empty_or_null(values, MemberType::Object) {
        out.add(Low, &pointer, values, STILL_EMPTY);
        return;
    }
    let is_object_or_null =
        |value: Option<&Value>| value.is_none_or(|v| v.is_object() || v.is_null());
    if !(is_object_or_null(values.0) && is_object_or_null(values.1)) {
        let reason = "the capabilities are written in a different form";
        out.add(High, &pointer, values, reason);
    }
    let empty = Map::new();
    let before = values.0.and_then(Value::as_object).unwrap_or(&empty);
    let after = values.1.and_then(Value::as_object).unwrap_or(&empty);
    let (old, new) = (
        ObjectMembers::new(before, CAPABILITY_MEMBERS),
        ObjectMembers::new(after, CAPABILITY_MEMBERS),
    );
    for name in CAPABILITY_MEMBERS {
        if let Some((spelling, values)) = new.changed_member(&old, name) {
            let pointer = pointer.member(spelling);
            match *name {
                "extensions" => compare_extensions(owner_extension, &pointer, values, out),
                _ => compare_capability_flag(&pointer, values, out),
            }
        }
    }
    unknown_members::compare_unknown_members(&pointer, &old, &new, out);
}

/// Compares a flag; a missing flag counts as off.
fn compare_capability_flag(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    let read_flag = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(false),
        Some(value) => value.as_bool(),
    };
    let (class, reason) = match (read_flag(values.0), read_flag(values.1)) {
        (Some(false), Some(true)) => (High, "a capability was turned on"),
        (Some(true), Some(false)) => (Low, "a capability was turned off"),
        (Some(_), Some(_)) => (Low, "the capability is off, as before"),
        _ => (High, "the flag is not true or false"),
    };
    out.add(class, pointer, values, reason);
}

fn compare_extensions(
    owner_extension: Option<&str>,
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    let (Some(old), Some(new)) = (list_elements(values.0), list_elements(values.1)) else {
        let reason = "clients may read the extensions differently";
        out.add(Critical, pointer, values, reason);
        return;
    };
    let count_before = out.count();
    let extension_keys = |list: &[Value]| list.iter().map(extension_key).collect::<Vec<_>>();
    let matching = match_lists(extension_keys(old), extension_keys(new));
    if !matching.ambiguous && add_change_if_reordered(pointer, values, out) {
        return;
    }
    for index in matching.added {
        if let Some(value) = new.get(index) {
            let (class, reason) = match is_owner_proof(owner_extension, value) {
                Some(true) => (Low, "the owner's proof was added"),
                Some(false) => (Critical, "the owner's extension contains more than a proof"),
                None => (Critical, "a new extension"),
            };
            out.add(class, &pointer.element(index), (None, Some(value)), reason);
        }
    }
    for (old_index, new_index) in matching.matched {
        if let (Some(old), Some(new)) = (old.get(old_index), new.get(new_index))
            && !values_equal(old, new)
        {
            compare_changed_extension(owner_extension, &pointer.element(new_index), old, new, out);
        }
    }
    for index in matching.removed {
        if let Some(value) = old.get(index) {
            let (class, reason) = classify_removed_extension(owner_extension, value);
            out.add(class, &pointer.element(index), (Some(value), None), reason);
        }
    }
    if matching.reordered || out.count() == count_before {
        out.add(
            Low,
            pointer,
            values,
            "the same extensions in a different order, or still none",
        );
    }
}

/// Key by which an extension is matched: its URI, or the whole entry if clients may read its URI differently.
fn extension_key(value: &Value) -> (bool, String) {
    let uri = value.as_object().and_then(|members| {
        let fields = ObjectMembers::new(members, EXTENSION_MEMBERS);
        let uri = fields.get("uri")?.as_str()?;
        fields.ambiguous.is_empty().then(|| uri.to_owned())
    });
    match uri {
        Some(uri) => (true, uri),
        None => (false, canonical_text(value)),
    }
}

fn classify_removed_extension(
    owner_extension: Option<&str>,
    value: &Value,
) -> (ChangeClass, &'static str) {
    let is_owner_extension =
        owner_extension.is_some() && value.get("uri").and_then(Value::as_str) == owner_extension;
    if is_owner_extension {
        (Low, "the owner's proof was removed")
    } else if is_false_or_absent(value.get("required")) {
        (High, "an extension was removed")
    } else {
        (
            Critical,
            "an extension that was required of callers was removed",
        )
    }
}

/// Whether an extension whose URI is `owner_extension` contains only a proof; `None` for any other extension.
///
/// A proof only names an account. Further members could contain any text, and `"required": true` would exclude
/// callers that do not support the extension.
fn is_owner_proof(owner_extension: Option<&str>, value: &Value) -> Option<bool> {
    if owner_extension.is_none() || value.get("uri").and_then(Value::as_str) != owner_extension {
        return None;
    }
    let is_account_name = |value: &Value| {
        value.as_str().is_some_and(|text| {
            text.len() <= MAX_ACCOUNT_CHARS && text.bytes().all(|b| b.is_ascii_graphic())
        })
    };
    let mut members = value.as_object()?.iter();
    Some(members.all(|(name, value)| {
        match (name.as_str(), value) {
            ("uri", _) | ("required" | "description" | "params", Value::Null) => true,
            ("required", value) => *value == Value::Bool(false),
            ("description", value) => is_empty_or_null(Some(value), MemberType::Text),
            ("params", Value::Object(params)) => params
                .iter()
                .all(|(name, value)| name == "account" && is_account_name(value)),
            _ => false,
        }
    }))
}

fn compare_changed_extension(
    owner_extension: Option<&str>,
    pointer: &JsonPointer<'_>,
    old: &Value,
    new: &Value,
    out: &mut ChangeCollector,
) {
    if is_owner_proof(owner_extension, new) == Some(true) {
        out.add(
            Low,
            pointer,
            (Some(old), Some(new)),
            "the owner's proof changed",
        );
        return;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return;
    };
    let (old, new) = (
        ObjectMembers::new(before, EXTENSION_MEMBERS),
        ObjectMembers::new(after, EXTENSION_MEMBERS),
    );
    if let Some((name, values)) = new.changed_member(&old, "required") {
        let (class, reason) = if is_false_or_absent(values.0) && is_false_or_absent(values.1) {
            (Low, "the extension is still not required of callers")
        } else {
            (
                Critical,
                "whether the extension is required of callers changed",
            )
        };
        out.add(class, &pointer.member(name), values, reason);
    }
    if let Some((name, values)) = new.changed_member(&old, "description") {
        compare_wording(
            &pointer.member(name),
            values,
            MemberType::Text,
            "the description of an extension changed",
            out,
        );
    }
    if let Some((name, values)) = new.changed_member(&old, "params") {
        add_each_difference(
            High,
            &pointer.member(name),
            values,
            "the parameters of an extension changed",
            out,
        );
    }
    unknown_members::compare_unknown_members(pointer, &old, &new, out);
}

fn is_false_or_absent(required: Option<&Value>) -> bool {
    matches!(required, None | Some(Value::Null | Value::Bool(false)))
}
