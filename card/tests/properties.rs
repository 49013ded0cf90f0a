//! Properties that hold for any bytes and any JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use a2a_card::{
    CanonicalForm, CardFamily, ConversionTarget, KeySet, all_findings, auth_labels, bytes_digest,
    canonical_payload, content_digest, convert_card, parse_card, security_sentences,
    signature_summary, uncovered_findings, uncovered_members, verify_signatures,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Member names that the reader knows, in both spellings, so that arbitrary JSON reaches every part of it.
const NAMES: [&str; 44] = [
    "name",
    "description",
    "version",
    "url",
    "provider",
    "organization",
    "supportedInterfaces",
    "supported_interfaces",
    "protocolBinding",
    "transport",
    "type",
    "protocolVersion",
    "protocol_version",
    "tenant",
    "preferredTransport",
    "additionalInterfaces",
    "capabilities",
    "streaming",
    "push_notifications",
    "extensions",
    "uri",
    "params",
    "tools",
    "skills",
    "id",
    "tags",
    "examples",
    "inputModes",
    "defaultInputModes",
    "default_output_modes",
    "securitySchemes",
    "security",
    "securityRequirements",
    "schemes",
    "list",
    "scheme",
    "httpAuthSecurityScheme",
    "authentication",
    "credentials",
    "signatures",
    "protected",
    "signature",
    "agent",
    "x-else",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(&NAMES[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        // Integers that a double represents exactly; for any other the digest is of the bytes themselves.
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        proptest::sample::select(vec![
            "JSONRPC",
            "1.0",
            "0.3.0",
            "https://a.io",
            "bearer",
            "true",
            "text",
            "e30",
            "\u{0}",
            "",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((name(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A JSON object with a name.
fn card() -> impl Strategy<Value = Value> {
    (
        json_value(),
        proptest::collection::vec((name(), json_value()), 0..10),
    )
        .prop_map(|(first, members)| {
            let mut card: Map<String, Value> = members.into_iter().collect();
            card.insert("skills".to_owned(), first);
            card.insert("name".to_owned(), json!("A"));
            Value::Object(card)
        })
}

/// Writes JSON with its members in reverse order and white space in every possible place.
fn reversed(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            text.push_str(" {\n");
            for (index, (name, value)) in members.iter().rev().enumerate() {
                text.push_str(if index == 0 { "" } else { " ,\t" });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push_str(" :\r\n");
                reversed(value, text);
            }
            text.push_str(" } ");
        }
        Value::Array(list) => {
            text.push_str("[ ");
            for (index, value) in list.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { " , " });
                reversed(value, text);
            }
            text.push_str("\n]");
        }
        leaf => text.push_str(&leaf.to_string()),
    }
}

/// Runs every function on the bytes, to show that none panics.
fn exercise(bytes: &[u8]) {
    let _ = (bytes_digest(bytes), content_digest(bytes));
    let Ok(parsed) = parse_card(bytes) else {
        return;
    };
    assert!(!parsed.card.name.trim().is_empty());
    assert_eq!(
        parsed.family.as_str().parse::<CardFamily>(),
        Ok(parsed.family)
    );
    let findings = all_findings(&parsed, bytes);
    for finding in &findings {
        assert!(finding.found.chars().count() <= 200, "{finding:?}");
        assert!(
            a2a_card::all_rules()
                .iter()
                .any(|rule| rule.id == finding.rule)
        );
    }
    assert!(!security_sentences(&parsed.card).is_empty());
    let _ = (auth_labels(&parsed.card), signature_summary(&parsed.card));
    let entries = verify_signatures(&parsed, bytes, &KeySet::default());
    assert!(uncovered_findings(bytes, &entries).is_empty());
    for form in CanonicalForm::ALL {
        let none = canonical_payload(bytes, form).is_none();
        assert!(!none || uncovered_members(bytes, form).is_empty());
    }
    let stored = serde_json::to_string(&parsed.card).unwrap();
    let again: a2a_card::AgentCard = serde_json::from_str(&stored).unwrap();
    assert_eq!(again, parsed.card);
    assert!(!stored.contains("\\u0000"), "databases refuse U+0000");
    assert_eq!(parse_card(bytes).as_ref(), Ok(&parsed));
    for target in ConversionTarget::ALL {
        let converted = convert_card(&parsed, target);
        let written = serde_json::to_vec(&converted.card).unwrap();
        let once_more = convert_card(&parse_card(&written).unwrap(), target);
        assert_eq!(once_more.card, converted.card, "to {target}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn arbitrary_text_in_a_card_never_panics(text in r#"[\[\]{}",:\\ud8defnt0-9\.\-e ]{0,60}"#) {
        exercise(format!(r#"{{"name":"A","skills":{text}}}"#).as_bytes());
    }

    #[test]
    fn every_object_with_a_name_is_read(card in card()) {
        let bytes = card.to_string();
        prop_assert!(parse_card(bytes.as_bytes()).is_ok(), "{bytes}");
        exercise(bytes.as_bytes());
    }

    #[test]
    fn content_does_not_depend_on_order_and_white_space(card in card()) {
        let plain = card.to_string();
        let mut other = String::new();
        reversed(&card, &mut other);
        prop_assert_eq!(content_digest(plain.as_bytes()), content_digest(other.as_bytes()));
        for form in CanonicalForm::ALL {
            let payload = canonical_payload(plain.as_bytes(), form);
            prop_assert_eq!(payload, canonical_payload(other.as_bytes(), form), "{}", form);
        }
    }

    #[test]
    fn every_signed_form_is_covered_by_itself(card in card()) {
        // The plain form covers every member, so the payload of each form can be computed from it.
        let bytes = card.to_string();
        let payload = |bytes: &[u8], form| canonical_payload(bytes, form);
        let plain = payload(bytes.as_bytes(), CanonicalForm::Plain).unwrap();
        for form in [CanonicalForm::Sdk, CanonicalForm::Strict, CanonicalForm::Plain] {
            let once = payload(bytes.as_bytes(), form);
            prop_assert_eq!(&payload(&plain, form), &once, "{}", form);
            if let Some(once) = once {
                let twice = payload(&once, form);
                prop_assert_eq!(twice.as_ref(), Some(&once), "{}", form);
                let left = uncovered_members(&once, form);
                prop_assert!(left.is_empty(), "{}: {:?}", form, left);
            }
        }
    }

    #[test]
    fn a_changed_member_is_another_content(
        card in card(), name in name(), value in json_value(),
    ) {
        prop_assume!(name != "signatures");
        let mut changed = card.clone();
        changed[&name] = value;
        let (before, after) = (card.to_string(), changed.to_string());
        // Numbers that are equal as doubles are the same content: 0 and -0, 1 and 1.0.
        let same_content = serde_json_canonicalizer::to_vec(&card).unwrap()
            == serde_json_canonicalizer::to_vec(&changed).unwrap();
        let same_digest = content_digest(before.as_bytes()) == content_digest(after.as_bytes());
        prop_assert_eq!(same_digest, same_content);
    }

    #[test]
    fn signatures_do_not_reach_the_content(card in card(), signatures in json_value()) {
        let mut signed = card.clone();
        signed["signatures"] = signatures;
        let mut plain = card;
        plain.as_object_mut().unwrap().remove("signatures");
        prop_assert_eq!(
            content_digest(signed.to_string().as_bytes()),
            content_digest(plain.to_string().as_bytes())
        );
    }
}
