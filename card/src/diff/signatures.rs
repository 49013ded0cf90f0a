//! Rules for signatures: whose keys vouch for a card, as far as this can be seen without keys.

use std::collections::BTreeSet;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::change::ChangeClass::{self, Critical, High, Low, None as Nothing};
use super::change::SignatureStates;
use super::changes::Changes;
use super::fields::Fields;
use super::tree::canonical;
use crate::SignatureState::{self, Invalid, Unknown, Unsigned, Untrusted, Valid};
use crate::pointer::Pointer;

/// The header members that identify the key and the algorithm (RFC 7515 §4.1).
const KEY_MEMBERS: [&str; 10] = [
    "alg", "kid", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64",
];

#[derive(Default)]
struct Signed {
    /// The signatures in JWS form: key and algorithm as a text, and their positions.
    keys: Vec<(String, usize)>,
    beside: BTreeSet<String>,
}

fn verifies(state: SignatureState) -> bool {
    matches!(state, Valid | Untrusted)
}

/// Compares the states of the signatures. A forged card may keep the old signatures unchanged, so that no member
/// differs; a key set that cannot be fetched means nothing while the card stays the same.
pub(super) fn compare_states(states: SignatureStates, same_content: bool, out: &mut Changes) {
    let (class, reason) = match (states.before, states.after) {
        (before, Invalid) if verifies(before) => (
            Critical,
            "the card's signature was valid, and is invalid now",
        ),
        (before, Unsigned) if verifies(before) => (
            Critical,
            "the card's signature was valid, and is missing now",
        ),
        (before, Unknown) if verifies(before) && !same_content => (
            Critical,
            "the card's signature was valid, and there is no key to verify the one it has now",
        ),
        (Unknown, Invalid) => (Critical, "the signature is invalid"),
        (Unsigned, Invalid) => (High, "the card is signed, and the signature is invalid"),
        (Invalid, Invalid) => (Nothing, "the signature is invalid, as before"),
        _ => return,
    };
    let root = Pointer::Root;
    out.add(class, &root.name("signatures"), (None, None), reason);
}

fn first(states: Option<SignatureStates>) -> (ChangeClass, &'static str) {
    match states.map(|states| (states.before, states.after)) {
        Some((Unsigned, Valid)) => (
            Low,
            "the card is signed for the first time, with a key that is bound to its domain",
        ),
        _ => (High, "the card is signed for the first time"),
    }
}

fn anew(states: Option<SignatureStates>) -> &'static str {
    match states.map(|states| states.after) {
        None => "signed again; the signatures name the same keys",
        Some(Valid | Untrusted) => "signed again with the same keys",
        Some(Invalid) => "the signatures were replaced, and are invalid",
        Some(Unknown) => "the signatures were replaced; there is no key to verify them with",
        Some(Unsigned) => "entries of `signatures` that are not signatures were replaced",
    }
}

pub(super) fn compare(
    old: &Fields<'_>,
    new: &Fields<'_>,
    states: Option<SignatureStates>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let Some((name, sides)) = new.changed(old, "signatures") else {
        return;
    };
    let at = at.name(name);
    let found = out.found();
    let (old, new) = (signed(sides.0), signed(sides.1));
    let keys = |signed: &Signed| -> BTreeSet<String> {
        signed.keys.iter().map(|(key, _)| key.clone()).collect()
    };
    let (known, kept) = (keys(&old), keys(&new));
    for (key, place) in &new.keys {
        if !known.contains(key) {
            let (class, reason) = if known.is_empty() {
                first(states)
            } else {
                (
                    Critical,
                    "signed with another key, algorithm or key set URL",
                )
            };
            let entry = sides.1.and_then(|list| list.get(*place));
            out.add(class, &at.index(*place), (None, entry), reason);
        }
    }
    for (key, place) in &old.keys {
        if !kept.contains(key) {
            let reason = if kept.is_empty() {
                "the card is no longer signed"
            } else {
                "a signature was removed"
            };
            let entry = sides.0.and_then(|list| list.get(*place));
            out.add(Critical, &at.index(*place), (entry, None), reason);
        }
    }
    if old.beside != new.beside {
        let reason = "content of `signatures` that does not belong to a signature changed";
        out.add(High, &at, sides, reason);
    }
    if out.found() == found {
        out.add(Nothing, &at, sides, anew(states));
    }
}

fn signed(value: Option<&Value>) -> Signed {
    let mut signed = Signed::default();
    let list = match value {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(list)) => list,
        Some(other) => std::slice::from_ref(other),
    };
    for (place, entry) in list.iter().enumerate() {
        let read = value
            .is_some_and(Value::is_array)
            .then(|| jws(entry))
            .flatten();
        match read {
            Some((key, beside)) => {
                signed.keys.push((key, place));
                signed.beside.extend(beside);
            }
            None => {
                signed.beside.insert(canonical(entry));
            }
        }
    }
    signed
}

/// An entry in JWS form (RFC 7515 §7.2.2): its key, and its other members.
fn jws(entry: &Value) -> Option<(String, Option<String>)> {
    let members = entry.as_object()?;
    let decoded = |name: &str| {
        let text = members
            .get(name)?
            .as_str()
            .filter(|text| !text.is_empty())?;
        BASE64URL_NOPAD.decode(text.as_bytes()).ok()
    };
    decoded("signature")?;
    let protected: Map<String, Value> = serde_json::from_slice(&decoded("protected")?).ok()?;
    let mut beside = members.clone();
    beside.retain(|name, _| name != "protected" && name != "signature");
    let unprotected = beside.get_mut("header").and_then(Value::as_object_mut);
    let mut open = Map::new();
    if let Some(header) = unprotected {
        for name in KEY_MEMBERS {
            open.extend(header.shift_remove_entry(name));
        }
        if header.is_empty() {
            beside.shift_remove("header");
        }
    }
    let of_key = |name: &str| KEY_MEMBERS.contains(&name);
    let own: Map<String, Value> = protected.into_iter().filter(|(n, _)| of_key(n)).collect();
    let key = canonical(&Value::from(vec![Value::from(own), Value::from(open)]));
    let beside = (!beside.is_empty()).then(|| canonical(&Value::from(beside)));
    Some((key, beside))
}
