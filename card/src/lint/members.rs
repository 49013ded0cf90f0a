//! Rules for members that no version of the specification knows.
//!
//! The conformance kit of 1.0 refuses a card for each of them, on every level; clients ignore them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use url::Url;

use super::subject::Subject;
use crate::Family;
use crate::finding::Findings;
use crate::member::{MAX_LIST, is_spelling};
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::wire::members::CARD_MEMBERS;

/// The objects in a card, or lists of objects, with the members that they have in any version.
const PARTS: [(&str, &[&str]); 5] = [
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
    (
        "skills",
        &[
            "id",
            "name",
            "description",
            "tags",
            "examples",
            "inputModes",
            "outputModes",
            "security",
            "securityRequirements",
        ],
    ),
];

const MAX_NAMES: usize = 50;

/// Reports unknown members: one finding for the card, and one for each part that has some.
pub(super) fn unknown(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let root = Pointer::Root;
    // The document around a nested card is not a card, which another rule reports.
    if subject.parsed.family != Family::Nested {
        let mut names = BTreeSet::new();
        collect(subject.document, &CARD_MEMBERS, &mut names);
        report(&names, &root, rule, out);
    }
    for (part, known) in PARTS {
        let Some((spot, value)) = subject.find(part) else {
            continue;
        };
        let mut names = BTreeSet::new();
        match value {
            Value::Array(list) => {
                for element in list.iter().take(MAX_LIST) {
                    collect(element, known, &mut names);
                }
            }
            other => collect(other, known, &mut names),
        }
        report(&names, &spot.below(&root), rule, out);
    }
}

fn collect<'v>(object: &'v Value, known: &[&str], names: &mut BTreeSet<&'v str>) {
    for name in object.as_object().into_iter().flat_map(Map::keys) {
        let is_known = known.contains(&name.as_str())
            || (name.contains('_') && known.iter().any(|known| is_spelling(name, known)));
        if !is_known && names.len() < MAX_NAMES {
            names.insert(name);
        }
    }
}

fn report(names: &BTreeSet<&str>, at: &Pointer<'_>, rule: &Rule, out: &mut Findings) {
    if !names.is_empty() {
        let names: Vec<&str> = names.iter().copied().collect();
        out.add(rule, at, &names.join(", "));
    }
}

pub(super) fn extension_uri(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let root = Pointer::Root;
    let spot = subject.spot("capabilities");
    let capabilities = spot.below(&root);
    let at = capabilities.name("extensions");
    for extension in &subject.parsed.card.capabilities.extensions {
        if Url::parse(&extension.uri).is_err() {
            out.add(rule, &at, &extension.uri);
        }
    }
}
