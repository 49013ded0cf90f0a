//! A hundred thousand mutants of signed cards: the signed content or the signature itself differs, and no mutant is
//! valid.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::LazyLock;

use a2a_card::{
    CanonicalForm, KeySet, UncoveredSubject, VerificationResult, canonical_payload, parse_card,
    uncovered_findings, uncovered_members, verify_signatures,
};
use serde_json::{Value, json};
use support::{Dice, HEADER, entry, judged, keys, verdict, with};

/// A card of 1.0 in which everything reaches the payload of every form.
const FULL: &str = r#"{"name":"Zoë","description":"Echo","version":"1","documentationUrl":"https://a.io/d","iconUrl":"https://a.io/i",
    "supportedInterfaces":[{"url":"https://a.io","protocolBinding":"JSONRPC","tenant":"t","protocolVersion":"1.0"}],
    "provider":{"organization":"O","url":"https://o.io"},
    "capabilities":{"streaming":true,"pushNotifications":false,"extensions":[
        {"uri":"u:x","description":"e","required":true,"params":{"n":2.5,"list":[1,true,"x"],"o":{"p":-7}}}]},
    "securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}}},
    "securityRequirements":[{"schemes":{"k":{"list":["a"]}}}],
    "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","a/b"],
    "skills":[{"id":"s","name":"S","description":"d","tags":["t","u"],"examples":["e"],
        "securityRequirements":[{"schemes":{"k":{"list":["b"]}}}]}]}"#;

/// The smallest card.
const SMALL: &str = r#"{"name":"Zoë","supportedInterfaces":[{"url":"https://a.io"}]}"#;

/// The full card with empty values and members that some forms leave out.
const LOOSE: &str = r#"{"name":"Zoë","description":"","version":"1","x-else":{"a":1},"url":"https://a.io",
    "supportedInterfaces":[{"url":"https://a.io","protocolBinding":"JSONRPC","tenant":"","protocolVersion":"1.0"}],
    "capabilities":{"extensions":[{"uri":"u:x","required":false,"params":{"n":2.5,"e":""}}]},
    "securityRequirements":[{"schemes":{"k":{}}}],"security":[{"k":[]}],
    "defaultInputModes":[],"defaultOutputModes":["text/plain"],"skills":[{"id":"s","name":"S","tags":[]}]}"#;

/// A card of 0.3.
const OLD: &str = r#"{"name":"Zoë","description":"","version":"1","url":"https://a.io","protocolVersion":"0.3.0","preferredTransport":"JSONRPC",
    "capabilities":{"streaming":true,"extensions":[{"uri":"u:x","required":false,"params":{"i":1,"f":1.5}}]},
    "additionalInterfaces":[{"url":"https://b.io","transport":"GRPC"}],
    "securitySchemes":{"k":{"type":"apiKey","in":"header","name":"X"}},"security":[{"k":["a"]}],
    "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"s","name":"S","description":"d","tags":["t"]}]}"#;

static KEYS: LazyLock<KeySet> = LazyLock::new(keys);

/// A card signed over its payload in one form.
struct Signed {
    text: String,
    form: CanonicalForm,
    payload: Vec<u8>,
}

fn signed(card: &str, form: CanonicalForm) -> Signed {
    let payload = canonical_payload(card.as_bytes(), form).unwrap();
    let text = with(card, &[entry(HEADER, &payload)]);
    assert!(verdict(&text, &KEYS).starts_with("valid"));
    Signed {
        text,
        form,
        payload,
    }
}

/// Whether any signature of the bytes is valid; bytes that are not a card have none.
fn is_valid(bytes: &[u8]) -> bool {
    parse_card(bytes).is_ok_and(|parsed| {
        verify_signatures(&parsed, bytes, &KEYS)
            .iter()
            .any(|entry| matches!(entry.result, VerificationResult::Valid { .. }))
    })
}

/// Changes one to three places in the bytes: replaces, inserts, removes, or moves bytes.
fn mutate_bytes(bytes: &mut Vec<u8>, dice: &mut Dice) {
    const LIKELY: &[u8] = br#"{}[],:"\0123456789.eE-+truefalsn/ aZ_"#;
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        let byte = LIKELY[dice.below(LIKELY.len())];
        match dice.below(5) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = byte,
            2 => bytes.insert(at, byte),
            3 => {
                bytes.remove(at);
            }
            _ => {
                let end = (at + dice.below(24)).min(bytes.len());
                let piece: Vec<u8> = bytes.drain(at..end).collect();
                let place = dice.below(bytes.len() + 1);
                bytes.splice(place..place, piece);
            }
        }
    }
}

/// Mutates bytes anywhere in the card. A mutant is skipped only if the signed form has the very same payload and the
/// signature entry is unchanged; every other mutant must be invalid.
fn bytes_of(card: &str, form: CanonicalForm, count: usize, seed: u64) {
    let signed = signed(card, form);
    let signature = signed.text.find(r#","signatures":"#).unwrap();
    let entries = &signed.text.as_bytes()[signature..];
    let mut dice = Dice(seed);
    let (mut tried, mut read) = (0, 0);
    while tried < count {
        let mut mutant = signed.text.clone().into_bytes();
        mutate_bytes(&mut mutant, &mut dice);
        if mutant == signed.text.as_bytes() {
            continue;
        }
        let payload = canonical_payload(&mutant, signed.form);
        if payload.as_ref() == Some(&signed.payload) && mutant.ends_with(entries) {
            continue;
        }
        tried += 1;
        read += usize::from(parse_card(&mutant).is_ok());
        if is_valid(&mutant) {
            // The content is the same and the signature entry is only formatted differently.
            let entry = |bytes: &[u8]| {
                let card: Value = serde_json::from_slice(bytes).unwrap();
                let entry = &card["signatures"][0];
                (entry["protected"].clone(), entry["signature"].clone())
            };
            let same = payload.as_ref() == Some(&signed.payload)
                && entry(&mutant) == entry(signed.text.as_bytes());
            assert!(same, "{}", String::from_utf8_lossy(&mutant));
        }
    }
    assert!(
        read * 4 > count,
        "a fair share of the mutants are cards: {read}"
    );
}

#[test]
fn no_mutant_of_the_bytes_of_a_full_card_is_valid() {
    bytes_of(FULL, CanonicalForm::Sdk, 20_000, 1);
}

#[test]
fn no_mutant_of_the_bytes_of_a_loose_card_is_valid() {
    bytes_of(LOOSE, CanonicalForm::Sdk, 5_000, 2);
    bytes_of(LOOSE, CanonicalForm::Strict, 5_000, 3);
    bytes_of(LOOSE, CanonicalForm::Plain, 5_000, 4);
    bytes_of(OLD, CanonicalForm::V0_3, 5_000, 5);
}

/// All places in a tree, as JSON pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                places(value, &format!("{at}/{name}"), all);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                places(value, &format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
}

/// Replaces the value in that place by one with another meaning.
fn mutate_value(value: &mut Value, dice: &mut Dice) {
    let letter = char::from(b'a' + u8::try_from(dice.below(26)).unwrap());
    match value {
        Value::Object(map) => {
            let (name, first) = map
                .iter()
                .next()
                .map(|(n, v)| (n.clone(), v.clone()))
                .unwrap();
            let chosen = map.keys().nth(dice.below(map.len())).unwrap().clone();
            match dice.below(3) {
                0 => drop(map.shift_remove(&chosen)),
                1 => {
                    let value = map.shift_remove(&chosen).unwrap();
                    map.insert(format!("{chosen}{letter}"), value);
                }
                _ => {
                    map.shift_remove(&name);
                    map.insert(name, json!([first, letter.to_string()]));
                }
            }
        }
        Value::Array(list) => {
            let at = dice.below(list.len());
            match dice.below(3) {
                0 => drop(list.remove(at)),
                1 => list.insert(at, list[at].clone()),
                _ => list.push(json!(letter.to_string())),
            }
        }
        Value::String(text) => {
            let end = text
                .char_indices()
                .nth(dice.below(text.chars().count()))
                .unwrap()
                .0;
            match dice.below(3) {
                0 => text.insert(end, letter),
                1 => drop(text.remove(end)),
                _ => *value = json!(["", 0, false, null, [], {}])[dice.below(6)].take(),
            }
        }
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) => {
            let double = number.as_f64().unwrap();
            *value = json!(double + 1.0 + f64::from(u8::try_from(dice.below(100)).unwrap()));
        }
        Value::Null => *value = json!(0),
    }
}

#[test]
fn no_mutant_of_the_content_is_valid() {
    content(10_000, 6);
}

/// Second half of the previous test, so that it runs on another core.
#[test]
fn no_other_mutant_of_the_content_is_valid() {
    content(10_000, 8);
}

/// Changes one place of the card's content at a time into a value that a reader would notice.
fn content(count: usize, seed: u64) {
    let full: Value = serde_json::from_str(&signed(FULL, CanonicalForm::Sdk).text).unwrap();
    let mut all = Vec::new();
    places(&serde_json::from_str(FULL).unwrap(), "", &mut all);
    let mut dice = Dice(seed);
    for _ in 0..count {
        let mut mutant = full.clone();
        let place = &all[dice.below(all.len())];
        let value = mutant.pointer_mut(place).unwrap();
        let before = value.clone();
        if place.is_empty() {
            let signatures = value.as_object_mut().unwrap().shift_remove("signatures");
            mutate_value(value, &mut dice);
            value["signatures"] = signatures.unwrap();
        } else {
            mutate_value(value, &mut dice);
        }
        assert_ne!(*value, before);
        let text = mutant.to_string();
        assert!(!is_valid(text.as_bytes()), "{place}: {text}");
    }
}

/// Changes one to three characters in each part of the signature entry.
#[test]
fn no_mutant_of_header_or_signature_is_valid() {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/. ";
    let signed = signed(SMALL, CanonicalForm::Sdk);
    let card: Value = serde_json::from_str(&signed.text).unwrap();
    let mut dice = Dice(7);
    let mut tried = 0;
    while tried < 40_000 {
        let name = ["protected", "signature"][tried % 2];
        let good = card["signatures"][0][name].as_str().unwrap();
        let mut mutant = good.as_bytes().to_vec();
        for _ in 0..=dice.below(3) {
            let at = dice.below(mutant.len());
            let letter = LETTERS[dice.below(LETTERS.len())];
            match dice.below(4) {
                0 => mutant.insert(at, letter),
                1 => drop(mutant.remove(at)),
                _ => mutant[at] = letter,
            }
        }
        let mutant = String::from_utf8(mutant).unwrap();
        if mutant == good {
            continue;
        }
        tried += 1;
        let mut changed = card.clone();
        changed["signatures"][0][name] = mutant.into();
        let text = changed.to_string();
        assert!(!is_valid(text.as_bytes()), "{text}");
    }
}

/// Members that no form of 1.0 knows do not break the signature, and are listed as uncovered at every place.
#[test]
fn what_is_added_without_breaking_a_signature_is_listed() {
    let signed: Value = serde_json::from_str(&signed(FULL, CanonicalForm::Sdk).text).unwrap();
    let mut all = Vec::new();
    places(&serde_json::from_str(FULL).unwrap(), "", &mut all);
    let additions = [
        ("x-else", json!({"a": [1]})),
        ("authentication", json!({"schemes": ["none"]})),
        ("security", json!([{}])),
        ("preferredTransport", json!("GRPC")),
        ("$ref", json!("")),
    ];
    let mut listed = 0;
    for place in all.iter().filter(|place| !place.contains("/params")) {
        for (name, value) in &additions {
            let mut mutant = signed.clone();
            let Some(object) = mutant.pointer_mut(place).unwrap().as_object_mut() else {
                continue;
            };
            object.insert((*name).to_owned(), value.clone());
            let text = mutant.to_string();
            // In a map with free names, a value of another type is not a card of 1.0; a value that reads as
            // empty leaves the card valid.
            let free = ["/securitySchemes", "/schemes"];
            if free.iter().any(|end| place.ends_with(end)) && !is_valid(text.as_bytes()) {
                continue;
            }
            let pointer = format!("{place}/{name}");
            assert_eq!(verdict(&text, &KEYS), "valid sdk", "{pointer}");
            let list = uncovered_members(text.as_bytes(), CanonicalForm::Sdk);
            assert_eq!(list.len(), 1, "{pointer}: {list:?}");
            assert_eq!(list[0].pointer, pointer);
            let findings = uncovered_findings(text.as_bytes(), &judged(&text, &KEYS));
            assert_eq!(findings.len(), 1);
            let security = list[0].subject == UncoveredSubject::Security;
            let warned = findings[0].rule == "signature.uncovered-security";
            assert_eq!(security, warned, "{pointer}");
            let at_home = ["", "/skills/0"].contains(&place.as_str());
            assert!(security || *name != "security" || !at_home, "{pointer}");
            listed += 1;
        }
    }
    assert!(listed > 50, "{listed}");
}
