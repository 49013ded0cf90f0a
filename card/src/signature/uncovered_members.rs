//! Uncovered members of a card: anyone can change them without breaking its signature.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::canonical_form::{CanonicalForm, signature_covered_part};
use super::signature_result::{SignatureResult, VerificationResult};
use super::uncovered_collector::{UncoveredMember, UncoveredMemberCollector, UncoveredSubject};
use crate::finding::{Finding, FindingCollector, MAX_FINDINGS};
use crate::json_document::{self, NulHandling};
use crate::rule::rule_table;

/// The members of a card that a signature in that form does not cover, at most [`super::MAX_UNCOVERED`], in the card's
/// order. The top-level `signatures` is not listed, because no signature covers itself.
///
/// Empty if the form has no payload for the bytes (see [`canonical_payload`](super::canonical_payload)).
pub fn uncovered_members(bytes: &[u8], form: CanonicalForm) -> Vec<UncoveredMember> {
    match json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default()) {
        Ok(document) if document.exact => uncovered_document_members(&document.value, form),
        _ => Vec::new(),
    }
}

fn uncovered_document_members(document: &Value, form: CanonicalForm) -> Vec<UncoveredMember> {
    let mut collector = UncoveredMemberCollector::new();
    match signature_covered_part(document, form, &mut collector) {
        Some(_) => collector.into_members(),
        None => Vec::new(),
    }
}

rule_table! {
    /// The rules of this file. They concern verified signatures, so the linter does not check them.
    SIGNATURE:

    UNCOVERED_SECURITY = "signature.uncovered-security", Warning, "1.0 §8.4.1",
        "security members that the signature covers",
        "anyone can change or remove them without breaking this signature: write them in the form of 1.0, with scopes, or sign the card as it is served";
    UNCOVERED_ADDRESS = "signature.uncovered-address", Warning, "1.0 §8.4.1",
        "addresses that the signature covers",
        "add the address to `supportedInterfaces` too, or remove it: anyone can replace it without breaking this signature";
    UNCOVERED = "signature.uncovered", Info, "1.0 §8.4.1",
        "members that the signature covers",
        "do not rely on the member: anyone can change it without breaking this signature";
}

/// Findings about members that no valid signature of a card covers, the most important first: security members
/// (`signature.uncovered-security`), addresses of 0.x not among the covered interfaces
/// (`signature.uncovered-address`), and the rest (`signature.uncovered`), without members that mean the same as their
/// absence.
///
/// `entries` are results of [`super::verify_signatures`] for these bytes, possibly only the trusted ones. Without a
/// valid entry there are no findings. At most [`crate::MAX_FINDINGS`].
pub fn uncovered_findings(bytes: &[u8], entries: &[SignatureResult]) -> Vec<Finding> {
    let forms: BTreeSet<CanonicalForm> = entries
        .iter()
        .filter_map(|entry| match entry.result {
            VerificationResult::Valid { form, .. } => Some(form),
            _ => None,
        })
        .collect();
    let mut forms = forms.into_iter();
    let Some(first_form) = forms.next() else {
        return Vec::new();
    };
    let document =
        match json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
        {
            Ok(document) if document.exact => document.value,
            _ => return Vec::new(),
        };
    let mut uncovered = uncovered_document_members(&document, first_form);
    for form in forms {
        let other = uncovered_document_members(&document, form);
        let other: HashSet<String> = other.into_iter().map(|member| member.pointer).collect();
        uncovered.retain(|member| other.contains(&member.pointer));
    }
    uncovered.retain(|member| !member.empty);
    uncovered.sort_by_key(|member| member.subject);
    uncovered.truncate(MAX_FINDINGS);
    let finding = |member: UncoveredMember| {
        let rule = match member.subject {
            UncoveredSubject::Security => &UNCOVERED_SECURITY,
            UncoveredSubject::Address if !is_covered_address(&document, &member.pointer) => {
                &UNCOVERED_ADDRESS
            }
            UncoveredSubject::Address | UncoveredSubject::Other => &UNCOVERED,
        };
        Finding {
            rule: rule.id.to_owned(),
            severity: rule.severity,
            pointer: member.pointer,
            found: format!("not in the signed form `{first_form}`"),
            wanted: rule.summary.to_owned(),
            hint: rule.hint.to_owned(),
            section: rule.section.to_owned(),
        }
    };
    uncovered.into_iter().map(finding).collect()
}

/// Whether an address of 0.x only repeats a covered interface of 1.0. The preferred transport belongs to `url`.
fn is_covered_address(document: &Value, pointer: &str) -> bool {
    let interfaces = document
        .get("supportedInterfaces")
        .and_then(Value::as_array);
    let interface_urls: HashSet<&str> = interfaces
        .into_iter()
        .flatten()
        .filter_map(|interface| interface.get("url")?.as_str())
        .collect();
    match document.pointer(pointer) {
        Some(Value::String(url)) if pointer == "/url" => interface_urls.contains(url.as_str()),
        Some(Value::String(_)) => true,
        Some(Value::Array(list)) => list.iter().all(|interface| {
            let url = interface.get("url").and_then(Value::as_str);
            url.is_some_and(|url| interface_urls.contains(url))
        }),
        _ => false,
    }
}
