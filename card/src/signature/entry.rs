//! What is known about one signature of a card.

use super::canonical::CanonicalForm;

/// At most this many entries of a card's `signatures` are looked at.
pub const MAX_SIGNATURES: usize = 16;

/// What is known about one signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerificationResult {
    /// It verifies.
    Valid {
        /// The form in which it covers the card.
        form: CanonicalForm,
        /// The RFC 7638 thumbprint of the key, with SHA-256, in base64url.
        thumbprint: String,
    },
    /// The key is there and the signature is not over this card.
    Invalid {
        /// Why.
        reason: SignatureFault,
    },
    /// No key that it could have been made with was handed in.
    KeyUnknown,
    /// Not in the form of a JWS (1.0 §8.4.2, RFC 7515 §7.2.2).
    Malformed {
        /// What is wrong with it.
        reason: SignatureFault,
    },
    /// A JWS that no key is tried on.
    Refused {
        /// Why.
        reason: SignatureFault,
    },
}

impl VerificationResult {
    /// The stable name: `valid`, `invalid`, `key-unknown`, `malformed`, `refused`.
    pub fn as_str(&self) -> &'static str {
        match self {
            VerificationResult::Valid { .. } => "valid",
            VerificationResult::Invalid { .. } => "invalid",
            VerificationResult::KeyUnknown => "key-unknown",
            VerificationResult::Malformed { .. } => "malformed",
            VerificationResult::Refused { .. } => "refused",
        }
    }

    /// Why it is no better; `None` for `valid` and `key-unknown`.
    pub fn reason(&self) -> Option<SignatureFault> {
        match self {
            VerificationResult::Invalid { reason }
            | VerificationResult::Malformed { reason }
            | VerificationResult::Refused { reason } => Some(*reason),
            VerificationResult::Valid { .. } | VerificationResult::KeyUnknown => None,
        }
    }
}

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignatureFault {
    /// `mismatch`: the card, the protected header or the signature was changed, or another key made it.
    Mismatch,
    /// `schemes-not-covered`: it is over the card without its `securitySchemes`, so anybody can change them.
    SchemesNotCovered,
    /// `not-i-json`: readers disagree about what the card says (RFC 7493), so nothing can be signed.
    NotIJson,
    /// `nested-card`: the card lies inside another document, which the signature does not cover.
    NestedCard,
    /// `too-many-tries`: [`super::MAX_VERIFICATIONS`] were made for this card already.
    TooManyTries,
    /// `not-jws`: `protected` or `signature` is missing or no base64url, or the header is no JSON object.
    NotJws,
    /// `header`: a header has a name twice, lacks `alg`, or has a member of the wrong type.
    Header,
    /// `algorithm`: `alg` is none of [`super::Algorithm`].
    Algorithm,
    /// `crit`: an extension that must be understood is not.
    Critical,
    /// `b64`: an unencoded payload (RFC 7797).
    Unencoded,
    /// `name-in-both-headers`: a name stands in the protected and in the unprotected header.
    NameInBothHeaders,
    /// `embedded-key`: `jwk`, `x5c` or `x5u` bring a key along.
    EmbeddedKey,
    /// `key-algorithm`: the key it names is of another type, or meant for something else.
    KeyAlgorithm,
}

impl SignatureFault {
    /// The stable name, as each variant's description gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            SignatureFault::Mismatch => "mismatch",
            SignatureFault::SchemesNotCovered => "schemes-not-covered",
            SignatureFault::NotIJson => "not-i-json",
            SignatureFault::NestedCard => "nested-card",
            SignatureFault::TooManyTries => "too-many-tries",
            SignatureFault::NotJws => "not-jws",
            SignatureFault::Header => "header",
            SignatureFault::Algorithm => "algorithm",
            SignatureFault::Critical => "crit",
            SignatureFault::Unencoded => "b64",
            SignatureFault::NameInBothHeaders => "name-in-both-headers",
            SignatureFault::EmbeddedKey => "embedded-key",
            SignatureFault::KeyAlgorithm => "key-algorithm",
        }
    }

    /// One sentence for the card's publisher and whoever decides on it: what is wrong with the signature.
    pub fn explanation(self) -> &'static str {
        match self {
            SignatureFault::Mismatch => {
                "The signature does not match: the card, its protected header or the signature was changed \
                 after signing, or another key made it."
            }
            SignatureFault::SchemesNotCovered => {
                "The signature covers the card without its `securitySchemes`, so anybody could change how \
                 callers authenticate."
            }
            SignatureFault::NotIJson => {
                "Readers of JSON disagree about what the card says (RFC 7493), so nothing can be signed."
            }
            SignatureFault::NestedCard => {
                "The card lies inside another document, which the signature does not cover."
            }
            SignatureFault::TooManyTries => {
                "Too many keys fit the card's signatures, and none of those that were tried verifies it."
            }
            SignatureFault::NotJws => {
                "The entry is no JWS: `protected` or `signature` is missing or malformed."
            }
            SignatureFault::Header => {
                "A header of the signature is malformed: it repeats a name, lacks `alg`, or has a member of \
                 the wrong type."
            }
            SignatureFault::Algorithm => {
                "The signature's algorithm is not accepted; EdDSA, ES256, ES384, PS256 and RS256 are."
            }
            SignatureFault::Critical => {
                "The header's `crit` names an extension that must be understood and is not."
            }
            SignatureFault::Unencoded => "The signature has an unencoded payload (RFC 7797).",
            SignatureFault::NameInBothHeaders => {
                "A name stands both in the protected and in the unprotected header."
            }
            SignatureFault::EmbeddedKey => {
                "The header brings its own key along (`jwk`, `x5c` or `x5u`), which proves nothing."
            }
            SignatureFault::KeyAlgorithm => {
                "The key that the signature names is of another type, or meant for another use."
            }
        }
    }
}

/// One entry of a card's `signatures`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignatureEntry {
    /// The key's identifier, from the protected header or else the unprotected one. A hint, up to 1 024
    /// characters of it.
    pub kid: Option<String>,
    /// The algorithm, from the protected header only.
    pub alg: Option<String>,
    /// Where the protected header says that keys are found. A claim: never fetched without a guard.
    pub jku: Option<String>,
    /// What is known about it.
    pub verdict: VerificationResult,
}
