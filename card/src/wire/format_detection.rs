//! Detection of a card's family from its form.

use serde_json::Value;

use super::value_spellings::parse_protocol_version;
use crate::CardFamily;
use crate::member_reader::MemberReader;

pub(super) struct DetectedFormat {
    pub(super) family: CardFamily,
    pub(super) reason: &'static str,
    /// Version as `Major.Minor`, if known.
    pub(super) flat_version: Option<String>,
    /// Whether the flat address's version comes only from the family.
    pub(super) version_from_format: bool,
    pub(super) interface_version: Option<String>,
}

/// Members whose `snake_case` spelling indicates that the whole card uses it.
const SNAKE_CASE_INDICATORS: [&str; 7] = [
    "protocolVersion",
    "defaultInputModes",
    "defaultOutputModes",
    "preferredTransport",
    "additionalInterfaces",
    "securitySchemes",
    "documentationUrl",
];

/// Members that exist since 0.2, and so indicate it in a card that declares no version.
const MEMBERS_SINCE_0_2: [&str; 5] = [
    "securitySchemes",
    "security",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
];

/// Detects the form. It counts more than the declared version, which real cards set carelessly.
pub(super) fn detect_card_format(members: &MemberReader<'_>) -> DetectedFormat {
    let declared_version = members
        .peek_member("protocolVersion")
        .and_then(version_as_text)
        .and_then(|text| parse_protocol_version(&text));
    let (family, reason) = detect_card_family(members, declared_version.as_deref());
    let has_flat_url = members.peek_member("url").is_some();
    let interface_version = declared_version
        .clone()
        .filter(|version| !has_flat_url || !version.starts_with("0."));
    let is_undeclared = declared_version.is_none();
    let flat_version = declared_version.or_else(|| match family {
        CardFamily::V0_1 => Some("0.1".to_owned()),
        CardFamily::V0_2 => Some("0.2".to_owned()),
        CardFamily::V0_3 => Some("0.3".to_owned()),
        _ => None,
    });
    DetectedFormat {
        family,
        reason,
        version_from_format: is_undeclared && flat_version.is_some(),
        flat_version,
        interface_version,
    }
}

/// The version as text, which some cards write as a number.
fn version_as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn detect_card_family(
    members: &MemberReader<'_>,
    declared_version: Option<&str>,
) -> (CardFamily, &'static str) {
    let has_flat_url = members
        .peek_member("url")
        .and_then(Value::as_str)
        .is_some_and(|url| !url.trim().is_empty());
    let entries = match members.peek_member("supportedInterfaces") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(entry @ Value::Object(_)) => std::slice::from_ref(entry),
        _ => &[],
    };
    let has_in_any_entry = |name: &str| entries.iter().any(|entry| entry.get(name).is_some());
    let has_binding = has_in_any_entry("protocolBinding") || has_in_any_entry("protocol_binding");
    let is_snake_case = SNAKE_CASE_INDICATORS
        .iter()
        .any(|name| members.has_snake_case_spelling(name));

    if has_binding && members.has_snake_case_spelling("supportedInterfaces") {
        (CardFamily::Snake1, "`supported_interfaces` in snake_case")
    } else if has_binding && has_flat_url {
        (
            CardFamily::Dual,
            "`supportedInterfaces` with `protocolBinding`, and `url`",
        )
    } else if has_binding {
        (
            CardFamily::V1_0,
            "`supportedInterfaces` with `protocolBinding`, no `url`",
        )
    } else if entries.iter().any(is_interface_entry) {
        (
            CardFamily::OtherInterfaces,
            "`supportedInterfaces` without `protocolBinding`",
        )
    } else if !has_flat_url && !has_additional_address(members) {
        (
            CardFamily::NoAddress,
            "neither `url` nor `supportedInterfaces`",
        )
    } else if is_snake_case {
        (CardFamily::Snake0, "`url`, and members in snake_case")
    } else {
        detect_flat_card_family(members, declared_version)
    }
}

/// Whether an element of `supportedInterfaces` is an interface of some form, or only an address.
fn is_interface_entry(entry: &Value) -> bool {
    entry.is_object() || entry.as_str().is_some_and(|text| text.contains("://"))
}

/// Whether `additionalInterfaces` has an address; some cards have no other.
fn has_additional_address(members: &MemberReader<'_>) -> bool {
    let list = members
        .peek_member("additionalInterfaces")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .any(|entry| entry.get("url").is_some_and(Value::is_string))
}

/// The family of a card that has only a flat address.
fn detect_flat_card_family(
    members: &MemberReader<'_>,
    declared_version: Option<&str>,
) -> (CardFamily, &'static str) {
    if members.peek_member("url").is_none() {
        let family = match declared_version {
            Some("0.2") | None => CardFamily::V0_2,
            Some(_) => CardFamily::V0_3,
        };
        return (family, "`additionalInterfaces`, but no `url`");
    }
    match declared_version {
        Some("0.0" | "0.1") => (CardFamily::V0_1, "`url`, and it declares 0.1"),
        Some("0.2") => (CardFamily::V0_2, "`url`, and it declares 0.2"),
        Some(version) if version.starts_with("0.") => (
            CardFamily::V0_3,
            "`url`, and it declares 0.3 or a later 0.x",
        ),
        Some(_) => (
            CardFamily::Flat1,
            "`url` alone, though it declares 1.0 or later",
        ),
        None if members.peek_member("authentication").is_some() => {
            (CardFamily::V0_1, "`authentication` beside `url`")
        }
        None if members.peek_member("signatures").is_some() => {
            (CardFamily::V0_3, "`signatures` beside `url`, no version")
        }
        None if MEMBERS_SINCE_0_2
            .iter()
            .any(|name| members.peek_member(name).is_some()) =>
        {
            (CardFamily::V0_2, "members of 0.2 beside `url`, no version")
        }
        None => (CardFamily::Undated, "`url`, and nothing that dates it"),
    }
}
