//! Rules for declared protocol versions, and for members of other versions.

use serde_json::Value;

use super::target::{LintTarget, ProtocolGeneration, member_in_either_spelling};
use crate::CardFamily;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::MAX_LIST_ELEMENTS;
use crate::rule::Rule;
use crate::wire::value_spellings::parse_protocol_version;

const PUBLISHED_VERSIONS: [&str; 4] = ["0.1", "0.2", "0.3", "1.0"];

pub(super) fn check_published_protocol_version(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let root = JsonPointer::Root;
    let mut check_version = |value: &Value, pointer: &JsonPointer<'_>| {
        let text = value.as_str().unwrap_or_default();
        if parse_protocol_version(text)
            .is_some_and(|version| !PUBLISHED_VERSIONS.contains(&version.as_str()))
        {
            out.add(rule, pointer, text);
        }
    };
    if let Some((position, value)) = target.find_member("protocolVersion") {
        check_version(value, &position.pointer_in(&root));
    }
    if let Some((position, Value::Array(entries))) = target.find_member("supportedInterfaces") {
        let list = position.pointer_in(&root);
        for (index, entry) in entries.iter().take(MAX_LIST_ELEMENTS).enumerate() {
            if let Some(value) = member_in_either_spelling(entry, "protocolVersion") {
                check_version(value, &list.element(index).member("protocolVersion"));
            }
        }
    }
}

pub(super) fn check_contradicted_version(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let Some((position, Value::String(text))) = target.find_member("protocolVersion") else {
        return;
    };
    let Some(version) = parse_protocol_version(text) else {
        return;
    };
    let is_0_x = version.starts_with("0.");
    let has_authentication = target.find_member("authentication").is_some();
    let contradicting_member = match target.parsed.family {
        CardFamily::V1_0 | CardFamily::Snake1 | CardFamily::OtherInterfaces if is_0_x => {
            "supportedInterfaces"
        }
        CardFamily::Flat1 if !target.is_converted() => "url",
        CardFamily::V0_2 | CardFamily::V0_3
            if has_authentication && target.find_member("securitySchemes").is_none() =>
        {
            "authentication"
        }
        _ => return,
    };
    let found = format!("`{text}`, and `{contradicting_member}`");
    out.add(rule, &position.pointer_in(&JsonPointer::Root), &found);
}

/// Checks that an address of 0.3 names its transport (§5.6.1), though the schema has a default.
pub(super) fn check_preferred_transport(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    if target.parsed.family == CardFamily::V0_3
        && target.find_member("preferredTransport").is_none()
    {
        out.add(rule, &JsonPointer::Root, "no `preferredTransport`");
    }
}

/// Members that 1.0 removed. `security` has its own rule.
const REMOVED_IN_1_0: [&str; 5] = [
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "authentication",
];

pub(super) fn check_other_version_members(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let foreign_members: &[&'static str] = match target.parsed.family {
        CardFamily::V0_1 | CardFamily::V0_2 => &["signatures"],
        _ if ProtocolGeneration::from_target(target) == Some(ProtocolGeneration::V1) => {
            &REMOVED_IN_1_0
        }
        _ => &[],
    };
    let root = JsonPointer::Root;
    for name in foreign_members {
        if let Some((position, value)) = target.find_member(name) {
            out.add_with_value(rule, &position.pointer_in(&root), value);
        }
    }
    let foreign_capability = match ProtocolGeneration::from_target(target) {
        Some(ProtocolGeneration::V1) => "stateTransitionHistory",
        Some(ProtocolGeneration::V0) => "extendedAgentCard",
        None => return,
    };
    if let Some((position, capabilities)) = target.find_member("capabilities")
        && let Some(value) = member_in_either_spelling(capabilities, foreign_capability)
    {
        out.add_with_value(
            rule,
            &position.pointer_in(&root).member(foreign_capability),
            value,
        );
    }
}
