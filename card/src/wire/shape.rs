//! Determines the family of a card from its form.

use serde_json::Value;

use super::names::protocol_version;
use crate::Family;
use crate::member::Members;

pub(super) struct CardShape {
    pub(super) family: Family,
    pub(super) reason: &'static str,
    /// As `Major.Minor`, where known.
    pub(super) flat_version: Option<String>,
    /// Whether the flat address's version comes from the family alone.
    pub(super) dated_by_form: bool,
    pub(super) entry_version: Option<String>,
}

/// Members whose `snake_case` spelling shows that a whole card is written so.
const SNAKE_MARKS: [&str; 7] = [
    "protocolVersion",
    "defaultInputModes",
    "defaultOutputModes",
    "preferredTransport",
    "additionalInterfaces",
    "securitySchemes",
    "documentationUrl",
];

/// Members that exist since 0.2 and show it without a declared version.
const SINCE_0_2: [&str; 5] = [
    "securitySchemes",
    "security",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
];

/// Determines the form; it counts more than the declared version, which real cards set carelessly.
pub(super) fn tell(members: &Members<'_>) -> CardShape {
    let declared = members
        .peek("protocolVersion")
        .and_then(version_text)
        .and_then(|text| protocol_version(&text));
    let (family, reason) = family(members, declared.as_deref());
    let flat = members.peek("url").is_some();
    let entry_version = declared
        .clone()
        .filter(|version| !flat || !version.starts_with("0."));
    let undeclared = declared.is_none();
    let flat_version = declared.or_else(|| match family {
        Family::V0_1 => Some("0.1".to_owned()),
        Family::V0_2 => Some("0.2".to_owned()),
        Family::V0_3 => Some("0.3".to_owned()),
        _ => None,
    });
    CardShape {
        family,
        reason,
        dated_by_form: undeclared && flat_version.is_some(),
        flat_version,
        entry_version,
    }
}

/// A version that may have been written as a number.
fn version_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn family(members: &Members<'_>, declared: Option<&str>) -> (Family, &'static str) {
    let flat = members
        .peek("url")
        .and_then(Value::as_str)
        .is_some_and(|url| !url.trim().is_empty());
    let entries = match members.peek("supportedInterfaces") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(entry @ Value::Object(_)) => std::slice::from_ref(entry),
        _ => &[],
    };
    let has = |name: &str| entries.iter().any(|entry| entry.get(name).is_some());
    let bound = has("protocolBinding") || has("protocol_binding");
    let snake = SNAKE_MARKS.iter().any(|name| members.is_snake(name));

    if bound && members.is_snake("supportedInterfaces") {
        (Family::Snake1, "`supported_interfaces` in snake_case")
    } else if bound && flat {
        (
            Family::Dual,
            "`supportedInterfaces` with `protocolBinding`, and `url`",
        )
    } else if bound {
        (
            Family::V1_0,
            "`supportedInterfaces` with `protocolBinding`, no `url`",
        )
    } else if entries.iter().any(is_entry) {
        (
            Family::OtherInterfaces,
            "`supportedInterfaces` without `protocolBinding`",
        )
    } else if !flat && !has_additional(members) {
        (Family::NoAddress, "neither `url` nor `supportedInterfaces`")
    } else if snake {
        (Family::Snake0, "`url`, and members in snake_case")
    } else {
        flat_family(members, declared)
    }
}

/// Whether an element of `supportedInterfaces` is an interface of some form, or an address alone.
fn is_entry(entry: &Value) -> bool {
    entry.is_object() || entry.as_str().is_some_and(|text| text.contains("://"))
}

/// Whether `additionalInterfaces` has an address; some cards have theirs nowhere else.
fn has_additional(members: &Members<'_>) -> bool {
    let list = members
        .peek("additionalInterfaces")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .any(|entry| entry.get("url").is_some_and(Value::is_string))
}

/// The family of a card that has only a flat address.
fn flat_family(members: &Members<'_>, declared: Option<&str>) -> (Family, &'static str) {
    if members.peek("url").is_none() {
        let family = match declared {
            Some("0.2") | None => Family::V0_2,
            Some(_) => Family::V0_3,
        };
        return (family, "`additionalInterfaces`, but no `url`");
    }
    match declared {
        Some("0.0" | "0.1") => (Family::V0_1, "`url`, and it declares 0.1"),
        Some("0.2") => (Family::V0_2, "`url`, and it declares 0.2"),
        Some(version) if version.starts_with("0.") => {
            (Family::V0_3, "`url`, and it declares 0.3 or a later 0.x")
        }
        Some(_) => (
            Family::Flat1,
            "`url` alone, though it declares 1.0 or later",
        ),
        None if members.peek("authentication").is_some() => {
            (Family::V0_1, "`authentication` beside `url`")
        }
        None if members.peek("signatures").is_some() => {
            (Family::V0_3, "`signatures` beside `url`, no version")
        }
        None if SINCE_0_2.iter().any(|name| members.peek(name).is_some()) => {
            (Family::V0_2, "members of 0.2 beside `url`, no version")
        }
        None => (Family::Undated, "`url`, and nothing that dates it"),
    }
}
