//! Rules for declared protocol versions, and for members of other versions.

use serde_json::Value;

use super::subject::{Generation, Subject, member};
use crate::Family;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::wire::names::protocol_version;

const PUBLISHED: [&str; 4] = ["0.1", "0.2", "0.3", "1.0"];

pub(super) fn published(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let root = Pointer::Root;
    let mut visit = |value: &Value, at: &Pointer<'_>| {
        let text = value.as_str().unwrap_or_default();
        if protocol_version(text).is_some_and(|version| !PUBLISHED.contains(&version.as_str())) {
            out.add(rule, at, text);
        }
    };
    if let Some((spot, value)) = subject.find("protocolVersion") {
        visit(value, &spot.below(&root));
    }
    if let Some((spot, Value::Array(entries))) = subject.find("supportedInterfaces") {
        let list = spot.below(&root);
        for (index, entry) in entries.iter().take(MAX_LIST).enumerate() {
            if let Some(value) = member(entry, "protocolVersion") {
                visit(value, &list.index(index).name("protocolVersion"));
            }
        }
    }
}

pub(super) fn shape(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some((spot, Value::String(text))) = subject.find("protocolVersion") else {
        return;
    };
    let Some(version) = protocol_version(text) else {
        return;
    };
    let old = version.starts_with("0.");
    let labels = subject.find("authentication").is_some();
    let other = match subject.parsed.family {
        Family::V1_0 | Family::Snake1 | Family::OtherInterfaces if old => "supportedInterfaces",
        Family::Flat1 if !subject.is_converted() => "url",
        Family::V0_2 | Family::V0_3 if labels && subject.find("securitySchemes").is_none() => {
            "authentication"
        }
        _ => return,
    };
    let found = format!("`{text}`, and `{other}`");
    out.add(rule, &spot.below(&Pointer::Root), &found);
}

/// Every address of 0.3 names its transport (§5.6.1), though the schema has a default.
pub(super) fn unstated_transport(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if subject.parsed.family == Family::V0_3 && subject.find("preferredTransport").is_none() {
        out.add(rule, &Pointer::Root, "no `preferredTransport`");
    }
}

/// Members that 1.0 removed. `security` has its own rule.
const GONE_IN_1_0: [&str; 5] = [
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "authentication",
];

pub(super) fn other_members(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let foreign: &[&'static str] = match subject.parsed.family {
        Family::V0_1 | Family::V0_2 => &["signatures"],
        _ if Generation::of(subject) == Some(Generation::V1) => &GONE_IN_1_0,
        _ => &[],
    };
    let root = Pointer::Root;
    for name in foreign {
        if let Some((spot, value)) = subject.find(name) {
            out.add_value(rule, &spot.below(&root), value);
        }
    }
    let flag = match Generation::of(subject) {
        Some(Generation::V1) => "stateTransitionHistory",
        Some(Generation::V0) => "extendedAgentCard",
        None => return,
    };
    if let Some((spot, capabilities)) = subject.find("capabilities")
        && let Some(value) = member(capabilities, flag)
    {
        out.add_value(rule, &spot.below(&root).name(flag), value);
    }
}
