//! State and summary of a card's signatures, combined from the results of all entries.

use std::collections::BTreeSet;

use serde_json::Value;

use super::jws::unverified_signatures;
use super::signature_result::{SignatureFault, SignatureResult, VerificationResult};
use crate::{AgentCard, named_enum};

named_enum! {
    /// State of a card's signatures as a whole, determined by the best entry.
    pub enum SignatureState {
        /// No entry is a JWS.
        Unsigned = "unsigned",
        /// One entry verifies with a key that is bound to the domain or enrolled.
        Valid = "valid",
        /// One entry verifies, but with a key that is not bound to the domain.
        Untrusted = "untrusted",
        /// No entry verifies, and at least one is invalid, malformed or refused.
        Invalid = "invalid",
        /// There are signatures, but no keys to verify them with.
        Unknown = "unknown",
    }

    /// Error for a text that is not the name of a signature state.
    error UnknownSignatureState = "no signature state is called {0:?}";
}

/// The state of the entries that [`super::verify_signatures`] returned. `is_bound` decides for a valid entry whether
/// its key is bound to the card's domain or enrolled; the thumbprint in its result identifies the key.
///
/// The best valid entry counts. Otherwise one invalid entry makes the state `invalid`, even beside entries whose keys
/// are unknown. Entries that are not a JWS are not signatures and do not count.
pub fn verified_signature_state(
    entries: &[SignatureResult],
    is_bound: impl Fn(&SignatureResult) -> bool,
) -> SignatureState {
    let mut state = SignatureState::Unsigned;
    for entry in entries {
        let entry_state = match &entry.result {
            VerificationResult::Valid { .. } if is_bound(entry) => return SignatureState::Valid,
            VerificationResult::Valid { .. } => SignatureState::Untrusted,
            VerificationResult::Malformed {
                reason: SignatureFault::NotJws,
            } => SignatureState::Unsigned,
            VerificationResult::Invalid { .. }
            | VerificationResult::Malformed { .. }
            | VerificationResult::Refused { .. } => SignatureState::Invalid,
            VerificationResult::KeyUnknown => SignatureState::Unknown,
        };
        if signature_state_rank(entry_state) > signature_state_rank(state) {
            state = entry_state;
        }
    }
    state
}

fn signature_state_rank(state: SignatureState) -> u8 {
    match state {
        SignatureState::Unsigned => 0,
        SignatureState::Unknown => 1,
        SignatureState::Invalid => 2,
        SignatureState::Untrusted => 3,
        SignatureState::Valid => 4,
    }
}

/// Summary of the signatures, without their bytes: one line `class alg kid` for each entry, sorted and without
/// duplicates, with `alg` and `kid` as JSON texts or `null`. Empty if there are none.
///
/// The class is `sound` for valid signatures and for those whose key is unknown, `unsound` for all others. So a key
/// set that temporarily cannot be fetched neither makes another version nor voids a decision, while a signature that
/// turns out invalid, or is repaired, does both. Cards that an agent signs again at every start have equal summaries.
pub fn verified_signature_summary(entries: &[SignatureResult]) -> String {
    let lines: BTreeSet<String> = entries
        .iter()
        .map(|entry| {
            let soundness = match entry.result {
                VerificationResult::Valid { .. } | VerificationResult::KeyUnknown => "sound",
                VerificationResult::Invalid { .. }
                | VerificationResult::Malformed { .. }
                | VerificationResult::Refused { .. } => "unsound",
            };
            let json_text = |member: &Option<String>| Value::from(member.as_deref());
            format!(
                "{soundness} {} {}",
                json_text(&entry.alg),
                json_text(&entry.kid)
            )
        })
        .collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// Summary of the signatures like [`verified_signature_summary`], as far as it can be known without keys.
pub fn signature_summary(card: &AgentCard) -> String {
    verified_signature_summary(&unverified_signatures(card))
}

/// State of the signatures like [`verified_signature_state`], as far as it can be known without keys: never
/// [`SignatureState::Valid`] or [`SignatureState::Untrusted`].
pub fn signature_state(card: &AgentCard) -> SignatureState {
    verified_signature_state(&unverified_signatures(card), |_| false)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
