//! Tests of the state and the summary of signatures.

use data_encoding::BASE64URL_NOPAD;
use serde_json::json;

use super::super::CanonicalForm;
use super::*;

fn jws(header: &Value, signature: &str) -> Value {
    let protected = BASE64URL_NOPAD.encode(header.to_string().as_bytes());
    json!({"protected": protected, "signature": signature})
}

fn card(signatures: Vec<Value>) -> AgentCard {
    AgentCard {
        name: "A".into(),
        signatures,
        ..AgentCard::default()
    }
}

#[test]
fn signature_bytes_and_order_do_not_change_the_summary() {
    let one = json!({"alg": "ES256", "kid": "k 1", "jku": "https://a.example/keys"});
    let two = json!({"alg": "EdDSA", "kid": "k2"});
    let first = signature_summary(&card(vec![jws(&one, "AAAA"), jws(&two, "BBBB")]));
    let again = signature_summary(&card(vec![jws(&two, "CCCC"), jws(&one, "DDDD")]));
    assert_eq!(first, again);
    assert_eq!(first, "sound \"ES256\" \"k 1\"\nsound \"EdDSA\" \"k2\"");
    let other = signature_summary(&card(vec![jws(&one, "AAAA")]));
    assert_ne!(first, other);
    assert_eq!(signature_summary(&card(vec![])), "");
}

#[test]
fn what_is_no_jws_leaves_the_card_unsigned() {
    for entry in [
        json!({"proofValue": "z3Fx"}),
        json!("text"),
        json!({"protected": "!", "signature": "AAAA"}),
        json!({"protected": BASE64URL_NOPAD.encode(b"[]"), "signature": "AAAA"}),
        jws(&json!({"alg": "ES256"}), ""),
        jws(&json!({"alg": "ES256"}), "AA=="),
    ] {
        let card = card(vec![entry.clone()]);
        assert_eq!(signature_state(&card), SignatureState::Unsigned, "{entry}");
        assert!(signature_summary(&card).starts_with("unsound "), "{entry}");
    }
    assert_eq!(signature_state(&card(vec![])), SignatureState::Unsigned);
    let signed = card(vec![json!(1), jws(&json!({"alg": "ES256"}), "AAAA")]);
    assert_eq!(signature_state(&signed), SignatureState::Unknown);
}

#[test]
fn the_key_may_be_named_in_the_unprotected_header() {
    let mut entry = jws(&json!({"alg": "ES256"}), "AAAA");
    entry["header"] = json!({"kid": "k", "jku": "https://a.example/keys"});
    let read = unverified_signatures(&card(vec![entry]));
    assert_eq!(read[0].kid.as_deref(), Some("k"));
    assert_eq!(read[0].alg.as_deref(), Some("ES256"));
    assert_eq!(read[0].jku, None, "nobody signed it");
}

#[test]
fn states_are_named_as_the_contract_names_them() {
    for state in SignatureState::ALL {
        assert_eq!(state.as_str().parse(), Ok(state));
    }
    assert!("Valid".parse::<SignatureState>().is_err());
}

/// An entry with that result.
fn judged(verdict: VerificationResult) -> SignatureResult {
    SignatureResult {
        kid: Some("k".into()),
        alg: Some("ES256".into()),
        jku: None,
        result: verdict,
    }
}

fn valid(thumbprint: &str) -> SignatureResult {
    judged(VerificationResult::Valid {
        form: CanonicalForm::Sdk,
        thumbprint: thumbprint.into(),
    })
}

fn every_other() -> [SignatureResult; 5] {
    let (wrong, algorithm) = (SignatureFault::Mismatch, SignatureFault::Algorithm);
    [
        judged(VerificationResult::KeyUnknown),
        judged(VerificationResult::Invalid { reason: wrong }),
        judged(VerificationResult::Refused { reason: algorithm }),
        judged(VerificationResult::Malformed {
            reason: SignatureFault::Header,
        }),
        judged(VerificationResult::Malformed {
            reason: SignatureFault::NotJws,
        }),
    ]
}

#[test]
fn the_best_entry_counts_wherever_it_stands() {
    let bound = |entry: &SignatureResult| matches!(&entry.result, VerificationResult::Valid { thumbprint, .. } if thumbprint == "ours");
    let state = |entries: &[SignatureResult]| verified_signature_state(entries, bound);
    let [unknown, wrong, refused, header, foreign] = every_other();
    assert_eq!(state(&[]), SignatureState::Unsigned);
    assert_eq!(
        state(std::slice::from_ref(&foreign)),
        SignatureState::Unsigned
    );
    assert_eq!(
        state(std::slice::from_ref(&unknown)),
        SignatureState::Unknown
    );
    for bad in [&wrong, &refused, &header] {
        assert_eq!(state(std::slice::from_ref(bad)), SignatureState::Invalid);
        for other in every_other() {
            assert_eq!(
                state(&[other.clone(), bad.clone()]),
                SignatureState::Invalid
            );
            assert_eq!(state(&[bad.clone(), other]), SignatureState::Invalid);
        }
    }
    assert_eq!(state(&[foreign, unknown]), SignatureState::Unknown);
    for other in every_other() {
        let (ours, theirs) = (valid("ours"), valid("theirs"));
        assert_eq!(
            state(&[other.clone(), theirs.clone()]),
            SignatureState::Untrusted
        );
        assert_eq!(
            state(&[theirs.clone(), other.clone()]),
            SignatureState::Untrusted
        );
        assert_eq!(state(&[theirs, other, ours]), SignatureState::Valid);
    }
}

#[test]
fn the_summary_tells_only_whether_something_speaks_against_a_signature() {
    let line = |entry: SignatureResult| verified_signature_summary(&[entry]);
    let [unknown, bad @ ..] = every_other();
    assert_eq!(line(unknown), r#"sound "ES256" "k""#);
    assert_eq!(line(valid("a")), r#"sound "ES256" "k""#);
    for entry in bad {
        assert_eq!(line(entry), r#"unsound "ES256" "k""#);
    }
}
