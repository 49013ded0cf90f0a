//! Verification results: which signatures verify, in which form, why others do not, and what a signature leaves uncovered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use a2a_card::{
    CanonicalForm, KeySet, MAX_SIGNATURES, MAX_UNCOVERED, MAX_VERIFICATIONS, Severity,
    SignatureState, UncoveredSubject, VerificationResult, canonical_payload, uncovered_findings,
    uncovered_members, verified_signature_state, verified_signature_summary,
};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use support::{HEADER, describe, entry, judged, jwk, keys, set, shared, verdict, with};

/// A card of 1.0 whose canonical forms all differ: it has required, optional and other empty values, and an unknown
/// member.
const CARD: &str = r#"{"name":"A","description":"","version":"1","iconUrl":"","x-else":{"n":1.0},
    "supportedInterfaces":[{"url":"https://a.io","protocolBinding":"JSONRPC","tenant":"","protocolVersion":"1.0"}],
    "capabilities":{"streaming":false,"extensions":[{"uri":"u:x","required":false,"params":{"e":"","n":2.50}}]},
    "securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}},"m":{"mtlsSecurityScheme":{}}},
    "securityRequirements":[{"schemes":{"k":{"list":[]}}}],"defaultInputModes":[],"defaultOutputModes":["text/plain"],
    "skills":[{"id":"s","name":"S","description":"","tags":[],"examples":[]}]}"#;

const SDK: &str = r#"{"capabilities":{"extensions":[{"params":{"n":2.5},"uri":"u:x"}],"streaming":false},"defaultOutputModes":["text/plain"],"name":"A","securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}}},"skills":[{"id":"s","name":"S"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a.io"}],"version":"1"}"#;

const STRICT: &str = r#"{"capabilities":{"extensions":[{"params":{"e":"","n":2.5},"uri":"u:x"}],"streaming":false},"defaultInputModes":[],"defaultOutputModes":["text/plain"],"description":"","iconUrl":"","name":"A","securityRequirements":[{"schemes":{"k":{}}}],"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}},"m":{"mtlsSecurityScheme":{}}},"skills":[{"description":"","id":"s","name":"S","tags":[]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a.io"}],"version":"1"}"#;

const PLAIN: &str = r#"{"capabilities":{"extensions":[{"params":{"e":"","n":2.5},"required":false,"uri":"u:x"}],"streaming":false},"defaultInputModes":[],"defaultOutputModes":["text/plain"],"description":"","iconUrl":"","name":"A","securityRequirements":[{"schemes":{"k":{"list":[]}}}],"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}},"m":{"mtlsSecurityScheme":{}}},"skills":[{"description":"","examples":[],"id":"s","name":"S","tags":[]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"","url":"https://a.io"}],"version":"1","x-else":{"n":1}}"#;

/// A card of 0.3, and its payload as Python writes it.
const CARD_0_3: &str = r#"{"name":"Zoë","description":"","version":"1","url":"https://a.io","protocolVersion":"0.3.0","preferredTransport":"JSONRPC",
    "capabilities":{"streaming":false,"extensions":[{"uri":"u:x","required":false,"params":{"i":1,"f":1.0}}]},"x-else":1,
    "securitySchemes":{"k":{"type":"apiKey","in":"header","name":"X"}},"security":[{"k":[]}],
    "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[]}"#;

const PYTHON: &str = r#"{"capabilities":{"extensions":[{"params":{"f":1.0,"i":1},"required":false,"uri":"u:x"}],"streaming":false},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"name":"Zo\u00eb","securitySchemes":{"k":{"in":"header","name":"X"}},"url":"https://a.io","version":"1"}"#;

/// The card signed over exactly these bytes.
fn signed(card: &str, payload: &str) -> String {
    with(card, &[entry(HEADER, payload.as_bytes())])
}

/// The result for the card with this entry and the fixed key.
fn alone(entry: Value) -> String {
    verdict(&with(CARD, &[entry]), &keys())
}

#[test]
fn each_form_is_verified_and_recorded() {
    for (card, payload, form) in [
        (CARD, SDK, "sdk"),
        (CARD, STRICT, "strict"),
        (CARD, PLAIN, "plain"),
        (CARD_0_3, PYTHON, "0.3"),
    ] {
        let card = signed(card, payload);
        assert_eq!(verdict(&card, &keys()), format!("valid {form}"));
        let entries = judged(&card, &keys());
        let VerificationResult::Valid { thumbprint, .. } = &entries[0].result else {
            unreachable!()
        };
        assert_eq!(keys().thumbprints().collect::<Vec<_>>(), [thumbprint]);
    }
    let other = SDK.replace("2.5", "2.50");
    assert_eq!(verdict(&signed(CARD, &other), &keys()), "invalid mismatch");
    // The form of 0.3 leaves out the interfaces of 1.0, so it is not used for a card that has them.
    let both = CARD_0_3.replacen('{', r#"{"supportedInterfaces":[],"#, 1);
    assert_eq!(verdict(&signed(&both, PYTHON), &keys()), "invalid mismatch");
}

#[test]
fn payloads_are_told_byte_for_byte() {
    let payload = |card: &str, form| canonical_payload(card.as_bytes(), form);
    let wanted = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(payload(CARD, CanonicalForm::Sdk), wanted(SDK));
    assert_eq!(payload(CARD, CanonicalForm::Strict), wanted(STRICT));
    assert_eq!(payload(CARD, CanonicalForm::Plain), wanted(PLAIN));
    assert_eq!(payload(CARD, CanonicalForm::V0_3), None);
    assert_eq!(payload(CARD_0_3, CanonicalForm::V0_3), wanted(PYTHON));
    let signed = signed(CARD, SDK);
    assert_eq!(payload(&signed, CanonicalForm::Plain), wanted(PLAIN));
}

#[test]
fn a_form_is_not_there_where_nobody_could_have_signed_it() {
    for (found, instead) in [
        (r#""name":"A""#, r#""name":1"#),
        (r#""streaming":false"#, r#""streaming":"false""#),
        (r#""skills":[{"#, r#""skills":[null,{"#),
        (r#""version":"1""#, r#""version":["1"]"#),
        (
            r#""iconUrl":"""#,
            r#""iconUrl":"","icon_url":"https://a.io""#,
        ),
        (
            r#""m":{"#,
            r#""m":{"httpAuthSecurityScheme":{"scheme":"basic"},"#,
        ),
    ] {
        let odd = CARD.replacen(found, instead, 1);
        assert_ne!(odd, CARD);
        for form in [CanonicalForm::Sdk, CanonicalForm::Strict] {
            assert_eq!(canonical_payload(odd.as_bytes(), form), None, "{instead}");
        }
        assert!(canonical_payload(odd.as_bytes(), CanonicalForm::Plain).is_some());
    }
    for (found, instead) in [
        (r#""type":"apiKey","#, ""),
        (r#""type":"apiKey""#, r#""type":"magic""#),
        (r#""security":[{"#, r#""security":[[],{"#),
    ] {
        let odd = CARD_0_3.replacen(found, instead, 1);
        let payload = canonical_payload(odd.as_bytes(), CanonicalForm::V0_3);
        assert_eq!(payload, None, "{instead}");
    }
}

#[test]
fn snake_case_is_covered_as_it_is_read() {
    let snake = CARD
        .replace("supportedInterfaces", "supported_interfaces")
        .replace("securitySchemes", "security_schemes")
        .replace("apiKeySecurityScheme", "api_key_security_scheme");
    assert_eq!(verdict(&signed(&snake, SDK), &keys()), "valid sdk");
    let added = r#"{"provider":null,"documentation_url":"https://b.io","#;
    let added = signed(CARD, SDK).replacen('{', added, 1);
    assert_eq!(verdict(&added, &keys()), "invalid mismatch");
}

#[test]
fn a_payload_without_the_schemes_is_never_valid() {
    let mut without: Value = serde_json::from_str(SDK).unwrap();
    without
        .as_object_mut()
        .unwrap()
        .shift_remove("securitySchemes");
    let card = signed(CARD, &without.to_string());
    assert_eq!(verdict(&card, &keys()), "invalid schemes-not-covered");
    assert_eq!(verdict(&card, &KeySet::default()), "key-unknown");
    // The same for a card without schemes when it was signed.
    let none = r#"{"name":"A","supportedInterfaces":[{"url":"https://a.io"}]}"#;
    let payload = canonical_payload(none.as_bytes(), CanonicalForm::Sdk).unwrap();
    let card = with(none, &[entry(HEADER, &payload)]);
    assert_eq!(verdict(&card, &keys()), "valid sdk");
    let scheme = r#"{"securitySchemes":{"k":{"httpAuthSecurityScheme":{"scheme":"basic"}}},"#;
    let added = card.replacen('{', scheme, 1);
    assert_eq!(verdict(&added, &keys()), "invalid schemes-not-covered");
}

#[test]
fn what_readers_disagree_about_is_not_i_json() {
    for odd in [
        r#"{"name":"A","name":"A"}"#,
        r#"{"name":"A","x":{"y":1,"y":1}}"#,
        r#"{"name":"A","x":"\ud800"}"#,
        r#"{"name":"A","x":1e999}"#,
        r#"{"name":"A","x":9007199254740993}"#,
    ] {
        let card = signed(odd, r#"{"name":"A"}"#);
        assert_eq!(verdict(&card, &keys()), "invalid not-i-json", "{odd}");
        for form in CanonicalForm::ALL {
            assert_eq!(canonical_payload(odd.as_bytes(), form), None, "{odd}");
        }
    }
    let twice = signed(CARD, SDK);
    let twice = with(&twice, &[entry(HEADER, SDK.as_bytes())]);
    assert_eq!(verdict(&twice, &keys()), "invalid not-i-json");
}

#[test]
fn a_card_inside_another_document_is_not_signed() {
    let inner = r#"{"name":"A","url":"https://a.io"}"#;
    let entry = entry(HEADER, inner.as_bytes());
    let outer = json!({"agent": {"name": "A", "url": "https://a.io", "signatures": [entry]}});
    let outer = outer.to_string();
    assert_eq!(verdict(&outer, &keys()), "invalid nested-card");
}

#[test]
fn headers_that_change_the_rules_are_refused() {
    for (header, wanted) in [
        (r#"{"alg":"none","kid":"k1"}"#, "refused algorithm"),
        (r#"{"alg":"None","kid":"k1"}"#, "refused algorithm"),
        (r#"{"alg":"HS256","kid":"k1"}"#, "refused algorithm"),
        (r#"{"alg":"ES512","kid":"k1"}"#, "refused algorithm"),
        (r#"{"alg":"eddsa","kid":"k1"}"#, "refused algorithm"),
        (r#"{"alg":"","kid":"k1"}"#, "refused algorithm"),
        (
            r#"{"alg":"EdDSA","kid":"k1","crit":["exp"],"exp":1}"#,
            "refused crit",
        ),
        (r#"{"alg":"EdDSA","kid":"k1","crit":[]}"#, "refused crit"),
        (
            r#"{"alg":"EdDSA","kid":"k1","crit":"b64","b64":true}"#,
            "refused crit",
        ),
        (
            r#"{"alg":"EdDSA","kid":"k1","crit":["b64"]}"#,
            "refused crit",
        ),
        (
            r#"{"alg":"EdDSA","kid":"k1","crit":["b64","b64"],"b64":true}"#,
            "refused crit",
        ),
        (
            r#"{"alg":"EdDSA","kid":"k1","crit":["b64"],"b64":false}"#,
            "refused b64",
        ),
        (r#"{"alg":"EdDSA","kid":"k1","b64":false}"#, "refused b64"),
        (r#"{"alg":"EdDSA","kid":"k1","b64":null}"#, "refused b64"),
        (
            r#"{"alg":"EdDSA","kid":"k1","jwk":{"kty":"OKP"}}"#,
            "refused embedded-key",
        ),
        (
            r#"{"alg":"EdDSA","kid":"k1","x5c":[]}"#,
            "refused embedded-key",
        ),
        (
            r#"{"alg":"EdDSA","kid":"k1","x5u":"https://a.io"}"#,
            "refused embedded-key",
        ),
        (r#"{"kid":"k1"}"#, "malformed header"),
        (r#"{"alg":null,"kid":"k1"}"#, "malformed header"),
        (r#"{"alg":"EdDSA","kid":1}"#, "malformed header"),
        (r#"{"alg":"EdDSA","kid":"k1","jku":[]}"#, "malformed header"),
        (
            r#"{"alg":"none","alg":"EdDSA","kid":"k1"}"#,
            "malformed header",
        ),
        (r#"["EdDSA"]"#, "malformed not-jws"),
        ("EdDSA", "malformed not-jws"),
        ("", "malformed not-jws"),
        (
            r#"{"alg":"EdDSA","kid":"k1","crit":["b64"],"b64":true}"#,
            "valid sdk",
        ),
        (
            r#"{"alg":"EdDSA","kid":"k1","x5t":"a","typ":"JWT","cty":1}"#,
            "valid sdk",
        ),
        (r#"{ "typ" : "JOSE", "alg" : "EdDSA" }"#, "valid sdk"),
    ] {
        assert_eq!(alone(entry(header, SDK.as_bytes())), wanted, "{header}");
        // No key changes this result, and no key is needed for it.
        let card = with(CARD, &[entry(header, SDK.as_bytes())]);
        let keyless = verdict(&card, &KeySet::default());
        let wanted = if wanted.starts_with("valid") {
            "key-unknown"
        } else {
            wanted
        };
        assert_eq!(keyless, wanted, "{header}");
    }
}

#[test]
fn the_unprotected_header_adds_nothing_that_counts() {
    for (unprotected, wanted) in [
        (json!(null), "valid sdk"),
        (json!({}), "valid sdk"),
        (json!({"note": 1}), "valid sdk"),
        (json!({"kid": "k1"}), "refused name-in-both-headers"),
        (json!({"typ": "JOSE"}), "refused name-in-both-headers"),
        (json!({"crit": ["exp"]}), "refused crit"),
        (json!({"crit": ["b64"], "b64": true}), "refused crit"),
        (json!({"b64": false}), "refused b64"),
        (json!({"jwk": jwk()}), "refused embedded-key"),
        (json!({"jku": 1}), "malformed header"),
        (json!("kid"), "malformed header"),
        (json!([]), "malformed header"),
    ] {
        let mut entry = entry(HEADER, SDK.as_bytes());
        entry["header"] = unprotected.clone();
        assert_eq!(alone(entry), wanted, "{unprotected}");
    }
    let mut named = entry(r#"{"alg":"EdDSA"}"#, SDK.as_bytes());
    named["header"] = json!({"kid": "other"});
    assert_eq!(
        alone(named),
        "valid sdk",
        "a kid is a hint wherever it stands"
    );
    let mut moved = entry(r#"{"kid":"k1"}"#, SDK.as_bytes());
    moved["header"] = json!({"alg": "EdDSA"});
    assert_eq!(alone(moved), "malformed header", "nobody signed that `alg`");
}

#[test]
fn base64url_is_read_strictly() {
    let good = entry(HEADER, SDK.as_bytes());
    let text = |name: &str| good[name].as_str().unwrap().to_owned();
    for name in ["protected", "signature"] {
        for spoilt in [
            json!(format!("{}=", text(name))),
            json!(format!("{}\n", text(name))),
            json!(format!(" {}", text(name))),
            json!(format!("{}!", text(name))),
            json!(""),
            json!(null),
            json!([text(name)]),
        ] {
            let mut entry = good.clone();
            entry[name] = spoilt;
            assert_eq!(alone(entry.clone()), "malformed not-jws", "{entry}");
        }
    }
    // 64 bytes leave four bits of the last character unused: only one of its sixteen spellings is canonical.
    let signature = text("signature");
    let (body, last) = signature.split_at(signature.len() - 1);
    let mut spellings = 0;
    for other in 'A'..='Z' {
        let mut entry = good.clone();
        entry["signature"] = json!(format!("{body}{other}"));
        let told = alone(entry);
        assert_eq!(told == "valid sdk", last.starts_with(other), "{other}");
        spellings += usize::from(told == "malformed not-jws");
    }
    assert!(spellings > 20);
}

#[test]
fn a_kid_is_a_hint_and_a_type_is_the_law() {
    let card = signed(CARD, SDK);
    let named = |kid: &str| {
        let mut key = jwk();
        key["kid"] = kid.into();
        key
    };
    let nameless = {
        let mut key = jwk();
        key.as_object_mut().unwrap().remove("kid");
        key
    };
    let stranger = |kid: Value| json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": kid});
    let p256 = json!({"kty": "EC", "crv": "P-256", "kid": "k1", "x": "RirszBfDAUIEPXR8OgS9SgRh-qGF8tXsveDHrFPA1hU", "y": "GiROHGnMjPz-TkFO2Rnn6q_IR-n_JW-i1cF1BjpDBHE"});
    let with_member = |member: &str, value: Value| {
        let mut key = named("k1");
        key[member] = value;
        key
    };
    let other_use = with_member("use", json!("enc"));
    let nameless_stranger = {
        let mut key = stranger(json!("x"));
        key.as_object_mut().unwrap().remove("kid");
        key
    };
    for (keys, wanted) in [
        (vec![named("other")], "valid sdk"),
        (vec![nameless], "valid sdk"),
        (vec![stranger(json!("k1")), named("other")], "valid sdk"),
        (vec![stranger(json!("k1"))], "invalid mismatch"),
        (vec![nameless_stranger], "invalid mismatch"),
        (vec![stranger(json!("other"))], "key-unknown"),
        (vec![p256.clone()], "refused key-algorithm"),
        (vec![p256.clone(), named("other")], "valid sdk"),
        (vec![other_use.clone()], "refused key-use"),
        (vec![with_member("use", json!(["sig"]))], "refused key-use"),
        (
            vec![with_member("key_ops", json!(["encrypt"]))],
            "refused key-use",
        ),
        (vec![with_member("key_ops", json!([]))], "refused key-use"),
        (vec![with_member("alg", json!("ES256"))], "refused key-use"),
        (
            vec![with_member("alg", json!("RSA-OAEP"))],
            "refused key-use",
        ),
        // Another key of the set may have made it; a key that it does not name has no effect.
        (vec![other_use.clone(), named("other")], "valid sdk"),
        (vec![other_use, stranger(json!("k1"))], "invalid mismatch"),
        (
            vec![{
                let mut key = with_member("use", json!("enc"));
                key["kid"] = json!("other");
                key
            }],
            "key-unknown",
        ),
        (vec![], "key-unknown"),
    ] {
        assert_eq!(verdict(&card, &set(&keys)), wanted, "{keys:?}");
    }
    let es256 = entry(r#"{"alg":"ES256","kid":"k1"}"#, SDK.as_bytes());
    assert_eq!(alone(es256), "refused key-algorithm");
}

#[test]
fn every_signature_has_its_own_verdict_and_the_best_one_counts() {
    let wrong = entry(HEADER, PYTHON.as_bytes());
    let foreign = json!({"proofValue": "z3Fx"});
    let card = with(CARD, &[foreign, wrong, entry(HEADER, STRICT.as_bytes())]);
    let entries = judged(&card, &keys());
    let told: Vec<String> = entries.iter().map(describe).collect();
    assert_eq!(
        told,
        ["malformed not-jws", "invalid mismatch", "valid strict"]
    );
    assert_eq!(
        verified_signature_state(&entries, |_| true),
        SignatureState::Valid
    );
    assert_eq!(
        verified_signature_state(&entries, |_| false),
        SignatureState::Untrusted
    );
    assert_eq!(
        verified_signature_state(&entries[..2], |_| true),
        SignatureState::Invalid
    );
    let again = with(CARD, &[entry(HEADER, STRICT.as_bytes())]);
    let later = judged(&again, &KeySet::default());
    assert_eq!(
        verified_signature_summary(&entries[2..]),
        verified_signature_summary(&later),
        "a key set that is away does not change the summary"
    );
}

#[test]
fn sixteen_signatures_are_judged() {
    let wrong = entry(HEADER, b"{}");
    let good = entry(HEADER, SDK.as_bytes());
    for (before, wanted) in [
        (MAX_SIGNATURES - 1, SignatureState::Valid),
        (MAX_SIGNATURES, SignatureState::Invalid),
    ] {
        let mut signatures = vec![wrong.clone(); before];
        signatures.push(good.clone());
        let entries = judged(&with(CARD, &signatures), &keys());
        assert_eq!(entries.len(), MAX_SIGNATURES);
        assert_eq!(verified_signature_state(&entries, |_| true), wanted);
    }
}

#[test]
fn tries_end_at_their_bound() {
    // The card has four payloads: three forms, and the SDK's without the schemes.
    let keys: Vec<Value> = (0..32)
        .map(|number| {
            let x = BASE64URL_NOPAD.encode(&[number; 32]);
            json!({"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": x})
        })
        .collect();
    assert_eq!(4 * keys.len(), MAX_VERIFICATIONS);
    let wrong = entry(HEADER, b"{}");
    let entries = judged(&with(CARD, &[wrong.clone(), wrong]), &set(&keys));
    let told: Vec<String> = entries.iter().map(describe).collect();
    assert_eq!(told, ["invalid mismatch", "invalid too-many-tries"]);
}

#[test]
fn uncovered_members_are_listed_by_form() {
    let list = |form| -> Vec<(String, bool)> {
        let list = uncovered_members(CARD.as_bytes(), form);
        list.into_iter()
            .map(|place| (place.pointer, place.empty))
            .collect()
    };
    let wanted = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
        list.iter()
            .map(|(at, empty)| ((*at).to_owned(), *empty))
            .collect()
    };
    assert_eq!(
        list(CanonicalForm::Sdk),
        wanted(&[
            ("/description", true),
            ("/iconUrl", true),
            ("/x-else", false),
            ("/supportedInterfaces/0/tenant", true),
            ("/capabilities/extensions/0/required", true),
            ("/capabilities/extensions/0/params/e", false),
            ("/securitySchemes/m", false),
            ("/securityRequirements", false),
            ("/defaultInputModes", true),
            ("/skills/0/description", true),
            ("/skills/0/tags", true),
            ("/skills/0/examples", true),
        ])
    );
    assert_eq!(
        list(CanonicalForm::Strict),
        wanted(&[
            ("/x-else", false),
            ("/supportedInterfaces/0/tenant", true),
            ("/capabilities/extensions/0/required", true),
            ("/securityRequirements/0/schemes/k/list", true),
            ("/skills/0/examples", true),
        ])
    );
    assert_eq!(list(CanonicalForm::Plain), []);
    assert_eq!(list(CanonicalForm::V0_3), [], "no such payload");
    let python = uncovered_members(CARD_0_3.as_bytes(), CanonicalForm::V0_3);
    let pointers: Vec<(&str, UncoveredSubject, bool)> = python
        .iter()
        .map(|place| (place.pointer.as_str(), place.subject, place.empty))
        .collect();
    assert_eq!(
        pointers,
        [
            ("/description", UncoveredSubject::Other, true),
            ("/protocolVersion", UncoveredSubject::Other, true),
            ("/preferredTransport", UncoveredSubject::Address, true),
            ("/x-else", UncoveredSubject::Other, false),
            ("/securitySchemes/k/type", UncoveredSubject::Security, true),
            ("/security", UncoveredSubject::Security, false),
            ("/skills", UncoveredSubject::Other, true),
        ]
    );
}

#[test]
fn uncovered_members_are_listed_up_to_their_bound() {
    let card = |unknown: usize| {
        let members: String = (0..unknown).map(|n| format!(r#""u{n}":1,"#)).collect();
        format!(r#"{{{members}"name":"A"}}"#)
    };
    let count = |unknown| uncovered_members(card(unknown).as_bytes(), CanonicalForm::Sdk).len();
    assert_eq!(count(MAX_UNCOVERED), MAX_UNCOVERED);
    assert_eq!(count(MAX_UNCOVERED + 1), MAX_UNCOVERED);
}

#[test]
fn findings_tell_security_and_addresses_from_the_rest() {
    let found = |card: &str, payloads: &[&str]| -> Vec<(String, Severity, String)> {
        let entries: Vec<Value> = payloads
            .iter()
            .map(|p| entry(HEADER, p.as_bytes()))
            .collect();
        let card = with(card, &entries);
        let entries = judged(&card, &keys());
        uncovered_findings(card.as_bytes(), &entries)
            .into_iter()
            .map(|finding| (finding.rule, finding.severity, finding.pointer))
            .collect()
    };
    let (security, rest) = ("signature.uncovered-security", "signature.uncovered");
    let sdk = [
        (security, Severity::Warning, "/securitySchemes/m"),
        (security, Severity::Warning, "/securityRequirements"),
        (rest, Severity::Info, "/x-else"),
        (rest, Severity::Info, "/capabilities/extensions/0/params/e"),
    ]
    .map(|(rule, severity, at)| (rule.to_owned(), severity, at.to_owned()));
    assert_eq!(found(CARD, &[SDK]), sdk);
    assert_eq!(
        found(CARD, &[PYTHON]),
        [],
        "no valid signature, no findings"
    );
    assert_eq!(
        found(CARD, &[SDK, PLAIN]),
        [],
        "the second one covers it all"
    );
    assert_eq!(found(CARD, &[STRICT, SDK]).len(), 1);

    let dual = |flat: &str, other: &str| {
        let members = format!(
            r#"{{"url":"{flat}","preferredTransport":"JSONRPC","additionalInterfaces":[{{"url":"{other}","transport":"GRPC"}}],"#
        );
        let list = found(&CARD.replacen('{', &members, 1), &[SDK]);
        let address = list
            .into_iter()
            .filter(|(rule, ..)| rule == "signature.uncovered-address");
        address.map(|(.., at)| at).collect::<Vec<_>>()
    };
    assert!(dual("https://a.io", "https://a.io").is_empty());
    assert_eq!(dual("https://b.io", "https://a.io"), ["/url"]);
    assert_eq!(
        dual("https://a.io", "https://b.io"),
        ["/additionalInterfaces"]
    );
    for rule in [security, rest, "signature.uncovered-address"] {
        assert!(a2a_card::all_rules().iter().any(|known| known.id == rule));
    }
}

#[test]
fn recorded_cards_are_judged_as_their_folder_says() {
    let Some(folder) = shared("signed") else {
        return;
    };
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    let keys = KeySet::from_jwks(&read("jwks.json")).unwrap();
    assert_eq!(keys.kids().collect::<Vec<_>>(), ["zoo-es256"]);
    let verdicts = |name: &str, keys: &KeySet| -> Vec<String> {
        judged(&text(name), keys).iter().map(describe).collect()
    };
    for (name, wanted) in [
        ("py1-signed.json", "valid sdk"),
        ("py03-signed.json", "valid 0.3"),
        ("py1-tampered.json", "invalid mismatch"),
    ] {
        assert_eq!(verdicts(name, &keys), [wanted], "{name}");
        assert_eq!(
            verdicts(name, &KeySet::default()),
            ["key-unknown"],
            "{name}"
        );
    }
    for name in [
        "py1-multi.json",
        "py1-dual.json",
        "js1-dual.json",
        "py03-multi.json",
        "py02-jsonrpc.json",
    ] {
        assert!(verdicts(name, &keys).is_empty(), "{name}");
    }
    for (name, form) in [
        ("py1-signed", CanonicalForm::Sdk),
        ("py03-signed", CanonicalForm::V0_3),
    ] {
        let payload = canonical_payload(&read(&format!("{name}.json")), form).unwrap();
        let recorded = text(&format!("canonical/{name}.txt"));
        assert_eq!(
            String::from_utf8(payload).unwrap(),
            recorded.trim_end(),
            "{name}"
        );
    }
}
