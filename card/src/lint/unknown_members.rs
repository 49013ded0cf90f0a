//! Rules for members that no version of the specification defines.
//!
//! The conformance kit of 1.0 rejects a card for each of them, on every level; clients ignore them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use url::Url;

use super::target::LintTarget;
use crate::CardFamily;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{MAX_LIST_ELEMENTS, is_spelling_of};
use crate::rule::Rule;
use crate::wire::member_names::{CARD_MEMBERS, SKILL_MEMBERS};

/// Objects in a card, or lists of objects, with the members that they have in any version.
const PART_MEMBERS: [(&str, &[&str]); 5] = [
    ("provider", &["organization", "url"]),
    (
        "supportedInterfaces",
        &["url", "protocolBinding", "protocolVersion", "tenant"],
    ),
    ("additionalInterfaces", &["url", "transport"]),
    (
        "capabilities",
        &[
            "streaming",
            "pushNotifications",
            "stateTransitionHistory",
            "extensions",
            "extendedAgentCard",
        ],
    ),
    ("skills", &SKILL_MEMBERS),
];

const MAX_REPORTED_NAMES: usize = 50;

/// Reports unknown members: one finding for the card, and one for each part that has some.
pub(super) fn check_unknown_members(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let root = JsonPointer::Root;
    // The document around a nested card is not a card; another rule reports it.
    if target.parsed.family != CardFamily::Nested {
        let mut names = BTreeSet::new();
        collect_unknown_member_names(target.document, &CARD_MEMBERS, &mut names);
        report_unknown_members(&names, &root, rule, out);
    }
    for (part, known) in PART_MEMBERS {
        let Some((position, value)) = target.find_member(part) else {
            continue;
        };
        let mut names = BTreeSet::new();
        match value {
            Value::Array(list) => {
                for element in list.iter().take(MAX_LIST_ELEMENTS) {
                    collect_unknown_member_names(element, known, &mut names);
                }
            }
            other => collect_unknown_member_names(other, known, &mut names),
        }
        report_unknown_members(&names, &position.pointer_in(&root), rule, out);
    }
}

fn collect_unknown_member_names<'v>(
    object: &'v Value,
    known_names: &[&str],
    names: &mut BTreeSet<&'v str>,
) {
    for name in object.as_object().into_iter().flat_map(Map::keys) {
        let is_known = known_names.contains(&name.as_str())
            || (name.contains('_') && known_names.iter().any(|known| is_spelling_of(name, known)));
        if !is_known && names.len() < MAX_REPORTED_NAMES {
            names.insert(name);
        }
    }
}

fn report_unknown_members(
    names: &BTreeSet<&str>,
    pointer: &JsonPointer<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    if !names.is_empty() {
        let names: Vec<&str> = names.iter().copied().collect();
        out.add(rule, pointer, &names.join(", "));
    }
}

pub(super) fn check_extension_uri(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let root = JsonPointer::Root;
    let position = target.position_of("capabilities");
    let capabilities = position.pointer_in(&root);
    let pointer = capabilities.member("extensions");
    for extension in &target.parsed.card.capabilities.extensions {
        if Url::parse(&extension.uri).is_err() {
            out.add(rule, &pointer, &extension.uri);
        }
    }
}
