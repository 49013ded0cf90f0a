//! Classes of signature changes, once both cards' signatures are verified.

#![allow(clippy::unwrap_used)]

use a2a_card::SignatureState::{self, Invalid, Unknown, Unsigned, Untrusted, Valid};
use a2a_card::{CardDiff, ChangeClass, SignatureStateChange, diff_verified_cards};

const PLAIN: &str = r#"{"name": "Desk", "version": "1.0", "url": "https://desk.example/a2a"}"#;
/// A signature by the key `k1`, with `EdDSA`.
const SIGNED: &str = r#"{"name": "Desk", "version": "1.0", "url": "https://desk.example/a2a", "signatures": [{"protected": "eyJhbGciOiJFZERTQSIsImtpZCI6ImsxIn0", "signature": "AA"}]}"#;

fn diff_with_states(
    before: &str,
    after: &str,
    from: SignatureState,
    to: SignatureState,
) -> CardDiff {
    let states = SignatureStateChange {
        before: from,
        after: to,
    };
    diff_verified_cards(before.as_bytes(), after.as_bytes(), None, states).unwrap()
}

fn reasons(told: &CardDiff) -> String {
    let reasons: Vec<&str> = told
        .changes
        .iter()
        .map(|change| change.reason.as_str())
        .collect();
    reasons.join("; ")
}

/// A changed card with the old signature has no change in `signatures`, and the change is critical nevertheless.
#[test]
fn a_signature_that_no_longer_verifies_is_critical() {
    let changed = SIGNED.replace("\"1.0\"", "\"1.1\"");
    for before in [Valid, Untrusted] {
        for after in [Invalid, Unsigned, Unknown] {
            let told = diff_with_states(SIGNED, &changed, before, after);
            assert_eq!(told.class, ChangeClass::Critical, "{before} {after}");
            assert_eq!(told.changes[0].pointer, "/signatures");
        }
        assert_eq!(
            diff_with_states(SIGNED, &changed, before, before).class,
            ChangeClass::Low
        );
    }
    assert_eq!(
        diff_with_states(SIGNED, &changed, Unknown, Invalid).class,
        ChangeClass::Critical
    );
    assert_eq!(
        diff_with_states(SIGNED, &changed, Unknown, Unknown).class,
        ChangeClass::Low
    );
}

/// Missing keys are no change of an unchanged card; a signature that is found invalid is one.
#[test]
fn the_same_card_changes_only_with_an_invalid_signature() {
    assert_eq!(diff_with_states(SIGNED, SIGNED, Valid, Unknown).changes, []);
    assert_eq!(diff_with_states(SIGNED, SIGNED, Unknown, Valid).changes, []);
    assert_eq!(
        diff_with_states(SIGNED, SIGNED, Unknown, Invalid).class,
        ChangeClass::Critical
    );
    assert_eq!(
        diff_with_states(SIGNED, SIGNED, Invalid, Invalid).class,
        ChangeClass::None
    );
}

/// `signed anew with the same keys` appears only if the signatures verify.
#[test]
fn signed_anew_is_said_of_signatures_that_verify() {
    let anew = SIGNED.replace("\"AA\"", "\"AQ\"");
    for (after, known) in [
        (Valid, true),
        (Untrusted, true),
        (Invalid, false),
        (Unknown, false),
    ] {
        let told = diff_with_states(SIGNED, &anew, after, after);
        assert_eq!(
            reasons(&told).contains("signed again with the same keys"),
            known,
            "{told:?}"
        );
    }
    let unverified = a2a_card::diff_cards(SIGNED.as_bytes(), anew.as_bytes(), None).unwrap();
    assert!(
        !reasons(&unverified).contains("with the same keys"),
        "{unverified:?}"
    );
}

/// A first signature is of class low with a key that is bound to the domain, and of class high with any other key.
#[test]
fn a_first_signature_is_low_with_a_bound_key() {
    for (after, class) in [
        (Valid, ChangeClass::Low),
        (Untrusted, ChangeClass::High),
        (Unknown, ChangeClass::High),
        (Invalid, ChangeClass::High),
    ] {
        assert_eq!(
            diff_with_states(PLAIN, SIGNED, Unsigned, after).class,
            class,
            "{after}"
        );
    }
    // A change that the old card had no signature for is judged by its own class.
    let also = SIGNED.replace("desk.example/a2a", "desk.example.evil/a2a");
    assert_eq!(
        diff_with_states(PLAIN, &also, Unsigned, Valid).class,
        ChangeClass::Critical
    );
}
