//! States of a card's signatures.

use super::text_enum::text_enum;

text_enum! {
    /// The state of one signature, or of all signatures of a card together, where the best one counts.
    SignatureState {
        /// No entry has the form of a JWS.
        Unsigned = "unsigned",
        /// Verified with an enrolled key, or with a key whose domain is proved.
        Valid = "valid",
        /// Verified, but the key is not bound to the domain.
        Untrusted = "untrusted",
        /// Wrong, malformed or rejected.
        Invalid = "invalid",
        /// The key could not be fetched.
        Unknown = "unknown",
    }
}

impl From<SignatureState> for a2a_card::SignatureState {
    fn from(state: SignatureState) -> Self {
        match state {
            SignatureState::Unsigned => Self::Unsigned,
            SignatureState::Valid => Self::Valid,
            SignatureState::Untrusted => Self::Untrusted,
            SignatureState::Invalid => Self::Invalid,
            SignatureState::Unknown => Self::Unknown,
        }
    }
}

impl From<a2a_card::SignatureState> for SignatureState {
    fn from(state: a2a_card::SignatureState) -> Self {
        match state {
            a2a_card::SignatureState::Unsigned => Self::Unsigned,
            a2a_card::SignatureState::Valid => Self::Valid,
            a2a_card::SignatureState::Untrusted => Self::Untrusted,
            a2a_card::SignatureState::Invalid => Self::Invalid,
            a2a_card::SignatureState::Unknown => Self::Unknown,
        }
    }
}
