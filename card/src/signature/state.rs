//! Combines the results of all signatures of a card into one state and one summary.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::entry::{SignatureEntry, SignatureFault, VerificationResult};
use super::jws::signature_entries;
use crate::AgentCard;

/// The state of a card's signatures as a whole; the best entry counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureState {
    /// No entry is a JWS.
    Unsigned,
    /// One verifies with a key that is bound to the domain or enrolled.
    Valid,
    /// One verifies, but with a key that is not bound to the domain.
    Untrusted,
    /// None verifies, and at least one is invalid, malformed or refused.
    Invalid,
    /// There are signatures, but no keys to verify them with.
    Unknown,
}

impl SignatureState {
    /// Every state, in order of declaration.
    pub const ALL: [SignatureState; 5] = [
        SignatureState::Unsigned,
        SignatureState::Valid,
        SignatureState::Untrusted,
        SignatureState::Invalid,
        SignatureState::Unknown,
    ];

    /// The name used in JSON, such as `unsigned`.
    pub fn as_str(self) -> &'static str {
        match self {
            SignatureState::Unsigned => "unsigned",
            SignatureState::Valid => "valid",
            SignatureState::Untrusted => "untrusted",
            SignatureState::Invalid => "invalid",
            SignatureState::Unknown => "unknown",
        }
    }
}

impl fmt::Display for SignatureState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text is not the name of a signature state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no signature state is called {0:?}")]
pub struct UnknownSignatureState(pub String);

impl FromStr for SignatureState {
    type Err = UnknownSignatureState;

    fn from_str(name: &str) -> Result<Self, UnknownSignatureState> {
        SignatureState::ALL
            .into_iter()
            .find(|state| state.as_str() == name)
            .ok_or_else(|| UnknownSignatureState(name.to_owned()))
    }
}

/// The state of the entries that [`super::verify`] returned. `bound` decides for a valid entry whether its key is
/// bound to the card's domain or enrolled; the thumbprint in its verdict identifies the key.
///
/// The best valid entry counts. Otherwise one invalid entry makes the whole `invalid`, even beside others whose keys
/// are unknown. Entries that are not a JWS at all are not signatures and do not count.
pub fn verified_state(
    entries: &[SignatureEntry],
    bound: impl Fn(&SignatureEntry) -> bool,
) -> SignatureState {
    let mut state = SignatureState::Unsigned;
    for entry in entries {
        let here = match &entry.verdict {
            VerificationResult::Valid { .. } if bound(entry) => return SignatureState::Valid,
            VerificationResult::Valid { .. } => SignatureState::Untrusted,
            VerificationResult::Malformed {
                reason: SignatureFault::NotJws,
            } => SignatureState::Unsigned,
            VerificationResult::Invalid { .. }
            | VerificationResult::Malformed { .. }
            | VerificationResult::Refused { .. } => SignatureState::Invalid,
            VerificationResult::KeyUnknown => SignatureState::Unknown,
        };
        if weight(here) > weight(state) {
            state = here;
        }
    }
    state
}

fn weight(state: SignatureState) -> u8 {
    match state {
        SignatureState::Unsigned => 0,
        SignatureState::Unknown => 1,
        SignatureState::Invalid => 2,
        SignatureState::Untrusted => 3,
        SignatureState::Valid => 4,
    }
}

/// Summary of the signatures, apart from their bytes: one line `class alg kid` for each entry, sorted and without
/// duplicates, with `alg` and `kid` as JSON texts or `null`. Empty if there are none.
///
/// The class is `sound` for valid signatures and for those whose key is unknown, `unsound` for all others. So a key
/// set that cannot be fetched for a while neither makes another version nor voids a decision, while a signature that
/// turns out invalid, or is repaired, does both. Cards that an agent signs again at every start have equal summaries.
pub fn verified_summary(entries: &[SignatureEntry]) -> String {
    let lines: BTreeSet<String> = entries
        .iter()
        .map(|entry| {
            let class = match entry.verdict {
                VerificationResult::Valid { .. } | VerificationResult::KeyUnknown => "sound",
                VerificationResult::Invalid { .. }
                | VerificationResult::Malformed { .. }
                | VerificationResult::Refused { .. } => "unsound",
            };
            let text = |member: &Option<String>| Value::from(member.as_deref());
            format!("{class} {} {}", text(&entry.alg), text(&entry.kid))
        })
        .collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// Summary of the signatures like [`verified_summary`], as far as it can be known without keys.
pub fn signing_summary(card: &AgentCard) -> String {
    verified_summary(&signature_entries(card))
}

/// State of the signatures like [`verified_state`], as far as it can be known without keys: never
/// [`SignatureState::Valid`] or [`SignatureState::Untrusted`].
pub fn signature_state(card: &AgentCard) -> SignatureState {
    verified_state(&signature_entries(card), |_| false)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
