//! The states of a card's signatures.

use super::text_enum::text_enum;

text_enum! {
    /// The state of a signature, or of all signatures of a card together, of which the best one counts.
    SignatureState {
        /// No entry in the form of a JWS.
        Unsigned = "unsigned",
        /// It verifies with a key that is enrolled, or whose domain is proved.
        Valid = "valid",
        /// It verifies, but its key is not bound to the domain.
        Untrusted = "untrusted",
        /// It is wrong, malformed or refused.
        Invalid = "invalid",
        /// Its key could not be fetched.
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
