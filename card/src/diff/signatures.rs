//! Rules for signatures: whose keys vouch for a card, as far as this is visible without keys.

use std::collections::BTreeSet;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::change::ChangeClass::{self, Critical, High, Low, None as Nothing};
use super::change::SignatureStateChange;
use super::change_collector::ChangeCollector;
use super::json_equality::canonical_text;
use super::object_members::ObjectMembers;
use crate::SignatureState::{self, Invalid, Unknown, Unsigned, Untrusted, Valid};
use crate::json_pointer::JsonPointer;

/// Header members that identify the key and the algorithm (RFC 7515 §4.1).
const KEY_HEADER_MEMBERS: [&str; 10] = [
    "alg", "kid", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64",
];

#[derive(Default)]
struct SignatureSummary {
    /// Signatures in JWS form: key and algorithm as a text, and their positions.
    keys: Vec<(String, usize)>,
    other_content: BTreeSet<String>,
}

fn is_verified_state(state: SignatureState) -> bool {
    matches!(state, Valid | Untrusted)
}

/// Compares the states of the signatures. A forged card may keep the old signatures unchanged, so that no member
/// differs; a key set that cannot be fetched means nothing while the card stays the same.
pub(super) fn compare_signature_states(
    states: SignatureStateChange,
    same_content: bool,
    out: &mut ChangeCollector,
) {
    let (class, reason) = match (states.before, states.after) {
        (before, Invalid) if is_verified_state(before) => (
            Critical,
            "the card's signature was valid and is now invalid",
        ),
        (before, Unsigned) if is_verified_state(before) => (
            Critical,
            "the card's signature was valid and is now missing",
        ),
        (before, Unknown) if is_verified_state(before) && !same_content => (
            Critical,
            "the card's signature was valid; there is no key to verify the current one",
        ),
        (Unknown, Invalid) => (Critical, "the signature is invalid"),
        (Unsigned, Invalid) => (High, "the card is signed, and the signature is invalid"),
        (Invalid, Invalid) => (Nothing, "the signature is invalid, as before"),
        _ => return,
    };
    let root = JsonPointer::Root;
    out.add(class, &root.member("signatures"), (None, None), reason);
}

fn classify_first_signature(states: Option<SignatureStateChange>) -> (ChangeClass, &'static str) {
    match states.map(|states| (states.before, states.after)) {
        Some((Unsigned, Valid)) => (
            Low,
            "the card is signed for the first time, with a key that is bound to its domain",
        ),
        _ => (High, "the card is signed for the first time"),
    }
}

fn signed_again_reason(states: Option<SignatureStateChange>) -> &'static str {
    match states.map(|states| states.after) {
        None => "signed again; the signatures name the same keys",
        Some(Valid | Untrusted) => "signed again with the same keys",
        Some(Invalid) => "the signatures were replaced, and are invalid",
        Some(Unknown) => "the signatures were replaced; there is no key to verify them with",
        Some(Unsigned) => "entries of `signatures` that are not signatures were replaced",
    }
}

pub(super) fn compare_signatures(
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    signature_states: Option<SignatureStateChange>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let Some((name, values)) = new.changed_member(old, "signatures") else {
        return;
    };
    let pointer = pointer.member(name);
    let count_before = out.count();
    let (old, new) = (
        summarize_signatures(values.0),
        summarize_signatures(values.1),
    );
    let key_texts = |summary: &SignatureSummary| -> BTreeSet<String> {
        summary.keys.iter().map(|(key, _)| key.clone()).collect()
    };
    let (old_keys, kept) = (key_texts(&old), key_texts(&new));
    for (key, index) in &new.keys {
        if !old_keys.contains(key) {
            let (class, reason) = if old_keys.is_empty() {
                classify_first_signature(signature_states)
            } else {
                (
                    Critical,
                    "signed with a different key, algorithm or key set URL",
                )
            };
            let entry = values.1.and_then(|list| list.get(*index));
            out.add(class, &pointer.element(*index), (None, entry), reason);
        }
    }
    for (key, index) in &old.keys {
        if !kept.contains(key) {
            let reason = if kept.is_empty() {
                "the card is no longer signed"
            } else {
                "a signature was removed"
            };
            let entry = values.0.and_then(|list| list.get(*index));
            out.add(Critical, &pointer.element(*index), (entry, None), reason);
        }
    }
    if old.other_content != new.other_content {
        let reason = "content of `signatures` that does not belong to a signature changed";
        out.add(High, &pointer, values, reason);
    }
    if out.count() == count_before {
        out.add(
            Nothing,
            &pointer,
            values,
            signed_again_reason(signature_states),
        );
    }
}

fn summarize_signatures(value: Option<&Value>) -> SignatureSummary {
    let mut summary = SignatureSummary::default();
    let list = match value {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(list)) => list,
        Some(other) => std::slice::from_ref(other),
    };
    for (index, entry) in list.iter().enumerate() {
        let parsed = value
            .is_some_and(Value::is_array)
            .then(|| parse_jws_entry(entry))
            .flatten();
        match parsed {
            Some((key, other_members)) => {
                summary.keys.push((key, index));
                summary.other_content.extend(other_members);
            }
            None => {
                summary.other_content.insert(canonical_text(entry));
            }
        }
    }
    summary
}

/// Parses an entry in JWS form (RFC 7515 §7.2.2) into its key and its other members.
fn parse_jws_entry(entry: &Value) -> Option<(String, Option<String>)> {
    let members = entry.as_object()?;
    let decode_member = |name: &str| {
        let text = members
            .get(name)?
            .as_str()
            .filter(|text| !text.is_empty())?;
        BASE64URL_NOPAD.decode(text.as_bytes()).ok()
    };
    decode_member("signature")?;
    let protected: Map<String, Value> =
        serde_json::from_slice(&decode_member("protected")?).ok()?;
    let mut other_members = members.clone();
    other_members.retain(|name, _| name != "protected" && name != "signature");
    let unprotected = other_members
        .get_mut("header")
        .and_then(Value::as_object_mut);
    let mut unprotected_key = Map::new();
    if let Some(header) = unprotected {
        for name in KEY_HEADER_MEMBERS {
            unprotected_key.extend(header.shift_remove_entry(name));
        }
        if header.is_empty() {
            other_members.shift_remove("header");
        }
    }
    let identifies_key = |name: &str| KEY_HEADER_MEMBERS.contains(&name);
    let protected_key: Map<String, Value> = protected
        .into_iter()
        .filter(|(n, _)| identifies_key(n))
        .collect();
    let key = canonical_text(&Value::from(vec![
        Value::from(protected_key),
        Value::from(unprotected_key),
    ]));
    let other_content =
        (!other_members.is_empty()).then(|| canonical_text(&Value::from(other_members)));
    Some((key, other_content))
}
