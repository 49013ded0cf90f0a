//! Members of a card that its signature does not cover: anybody can change them without breaking it.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::canonical::{CanonicalForm, covered};
use super::entry::{SignatureEntry, VerificationResult};
use super::uncovered_list::{Concern, Uncovered, UncoveredList};
use crate::document::{self, Nul};
use crate::finding::{Finding, Findings, MAX_FINDINGS};
use crate::rule::Rule;
use crate::rule::Severity::{Info, Warning};

/// The members of a card that a signature in that form does not cover, at most [`super::MAX_UNCOVERED`], in the
/// card's order. The top-level `signatures` is not listed, since no signature covers itself.
///
/// Empty if the form has no payload for the bytes, as [`canonical_payload`](super::canonical_payload) says.
pub fn uncovered(bytes: &[u8], form: CanonicalForm) -> Vec<Uncovered> {
    match document::read(bytes, Nul::Keep, &mut Findings::default()) {
        Ok(document) if document.exact => uncovered_of(&document.value, form),
        _ => Vec::new(),
    }
}

fn uncovered_of(document: &Value, form: CanonicalForm) -> Vec<Uncovered> {
    let mut left = UncoveredList::bounded();
    match covered(document, form, &mut left) {
        Some(_) => left.into_list(),
        None => Vec::new(),
    }
}

/// The rules of this file. They concern verified signatures, so the linter does not check them.
pub(crate) static SIGNATURE: &[Rule] = &[UNCOVERED_SECURITY, UNCOVERED_ADDRESS, UNCOVERED];

const UNCOVERED_SECURITY: Rule = Rule {
    id: "signature.uncovered-security",
    severity: Warning,
    section: "1.0 §8.4.1",
    summary: "security members that the signature covers",
    hint: "anybody can change or remove them without breaking this signature: write them in the form of 1.0, with scopes, or sign the card as it is served",
};

const UNCOVERED_ADDRESS: Rule = Rule {
    id: "signature.uncovered-address",
    severity: Warning,
    section: "1.0 §8.4.1",
    summary: "addresses that the signature covers",
    hint: "add the address to `supportedInterfaces` too, or remove it: anybody can replace it without breaking this signature",
};

const UNCOVERED: Rule = Rule {
    id: "signature.uncovered",
    severity: Info,
    section: "1.0 §8.4.1",
    summary: "members that the signature covers",
    hint: "do not rely on the member: anybody can change it without breaking this signature",
};

/// Findings about members that no valid signature of a card covers, the most important first: security members
/// (`signature.uncovered-security`), addresses of 0.x not among the covered interfaces (`signature.uncovered-address`),
/// and the rest (`signature.uncovered`), without members that mean the same as their absence.
///
/// `entries` are results of [`super::verify`] for these bytes, perhaps only the trusted ones. Without a valid one
/// there are no findings. At most [`crate::MAX_FINDINGS`].
pub fn uncovered_findings(bytes: &[u8], entries: &[SignatureEntry]) -> Vec<Finding> {
    let forms: BTreeSet<CanonicalForm> = entries
        .iter()
        .filter_map(|entry| match entry.verdict {
            VerificationResult::Valid { form, .. } => Some(form),
            _ => None,
        })
        .collect();
    let mut forms = forms.into_iter();
    let Some(first) = forms.next() else {
        return Vec::new();
    };
    let document = match document::read(bytes, Nul::Keep, &mut Findings::default()) {
        Ok(document) if document.exact => document.value,
        _ => return Vec::new(),
    };
    let mut list = uncovered_of(&document, first);
    for form in forms {
        let other = uncovered_of(&document, form);
        let other: HashSet<String> = other.into_iter().map(|place| place.pointer).collect();
        list.retain(|place| other.contains(&place.pointer));
    }
    list.retain(|place| !place.empty);
    list.sort_by_key(|place| place.concern);
    list.truncate(MAX_FINDINGS);
    let finding = |place: Uncovered| {
        let rule = match place.concern {
            Concern::Security => &UNCOVERED_SECURITY,
            Concern::Address if !repeats_interfaces(&document, &place.pointer) => {
                &UNCOVERED_ADDRESS
            }
            Concern::Address | Concern::Other => &UNCOVERED,
        };
        Finding {
            rule: rule.id.to_owned(),
            severity: rule.severity,
            pointer: place.pointer,
            found: format!("not in the signed form `{first}`"),
            wanted: rule.summary.to_owned(),
            hint: rule.hint.to_owned(),
            section: rule.section.to_owned(),
        }
    };
    list.into_iter().map(finding).collect()
}

/// Whether an address of 0.x only repeats a covered interface of 1.0. The preferred transport belongs to `url`.
fn repeats_interfaces(document: &Value, pointer: &str) -> bool {
    let interfaces = document
        .get("supportedInterfaces")
        .and_then(Value::as_array);
    let known: HashSet<&str> = interfaces
        .into_iter()
        .flatten()
        .filter_map(|interface| interface.get("url")?.as_str())
        .collect();
    match document.pointer(pointer) {
        Some(Value::String(url)) if pointer == "/url" => known.contains(url.as_str()),
        Some(Value::String(_)) => true,
        Some(Value::Array(list)) => list.iter().all(|interface| {
            let url = interface.get("url").and_then(Value::as_str);
            url.is_some_and(|url| known.contains(url))
        }),
        _ => false,
    }
}
