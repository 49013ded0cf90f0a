//! Results of verifying the signatures of a card.

use super::canonical_form::CanonicalForm;
use crate::named_enum;

/// Maximum number of entries of a card's `signatures` that are read.
pub const MAX_SIGNATURES: usize = 16;

/// The result of verifying one signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerificationResult {
    /// The signature verifies with a key.
    Valid {
        /// The form of the card that it covers.
        form: CanonicalForm,
        /// The RFC 7638 thumbprint of the key, with SHA-256, in base64url.
        thumbprint: String,
    },
    /// A key was tried, and the signature does not verify.
    Invalid {
        /// Why it does not verify.
        reason: SignatureFault,
    },
    /// No given key could have made the signature.
    KeyUnknown,
    /// The entry is not a JWS (1.0 §8.4.2, RFC 7515 §7.2.2).
    Malformed {
        /// What is wrong with it.
        reason: SignatureFault,
    },
    /// The entry is a JWS, but no key is tried on it.
    Refused {
        /// Why no key is tried.
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

    /// The fault; `None` for `valid` and `key-unknown`.
    pub fn fault(&self) -> Option<SignatureFault> {
        match self {
            VerificationResult::Invalid { reason }
            | VerificationResult::Malformed { reason }
            | VerificationResult::Refused { reason } => Some(*reason),
            VerificationResult::Valid { .. } | VerificationResult::KeyUnknown => None,
        }
    }
}

named_enum! {
    /// A fault of a signature.
    pub enum SignatureFault {
        /// `mismatch`: the card, the protected header or the signature was changed, or another key made it.
        Mismatch = "mismatch",
        /// `schemes-not-covered`: it covers the card without its `securitySchemes`, so anyone can change them.
        SchemesNotCovered = "schemes-not-covered",
        /// `not-i-json`: JSON parsers read the card differently (RFC 7493), so nothing can be signed.
        NotIJson = "not-i-json",
        /// `nested-card`: the card is part of another document, which the signature does not cover.
        NestedCard = "nested-card",
        /// `too-many-tries`: [`super::MAX_VERIFICATIONS`] verifications were already tried for this card.
        TooManyTries = "too-many-tries",
        /// `not-jws`: `protected` or `signature` is missing or not base64url, or the header is not a JSON object.
        NotJws = "not-jws",
        /// `header`: a header has a name twice, lacks `alg`, or has a member of the wrong type.
        Header = "header",
        /// `algorithm`: `alg` is not one of [`super::Algorithm`].
        Algorithm = "algorithm",
        /// `crit`: an unsupported extension is marked as critical.
        Critical = "crit",
        /// `b64`: an unencoded payload (RFC 7797).
        Unencoded = "b64",
        /// `name-in-both-headers`: a name is both in the protected and in the unprotected header.
        NameInBothHeaders = "name-in-both-headers",
        /// `embedded-key`: `jwk`, `x5c` or `x5u` supply a key.
        EmbeddedKey = "embedded-key",
        /// `key-algorithm`: the key that the signature names has another type or use.
        KeyAlgorithm = "key-algorithm",
        /// `key-use`: the key that the signature names is not for verifying signatures, by its `use`, `key_ops` or
        /// `alg`.
        KeyUse = "key-use",
    }
}

impl SignatureFault {
    /// One sentence about the fault, for the card's publisher and its reviewers.
    pub fn explanation(self) -> &'static str {
        match self {
            SignatureFault::Mismatch => {
                "The signature does not match: the card, its protected header or the signature was changed \
                 after signing, or another key made it."
            }
            SignatureFault::SchemesNotCovered => {
                "The signature covers the card without its `securitySchemes`, so anyone could change how \
                 callers authenticate."
            }
            SignatureFault::NotIJson => {
                "JSON parsers read the card differently (RFC 7493), so it cannot be signed."
            }
            SignatureFault::NestedCard => {
                "The card is part of another document, which the signature does not cover."
            }
            SignatureFault::TooManyTries => {
                "Too many keys fit the card's signatures, and none of those tried verifies this one."
            }
            SignatureFault::NotJws => {
                "The entry is not a JWS: `protected` or `signature` is missing or malformed."
            }
            SignatureFault::Header => {
                "A header of the signature is malformed: it repeats a name, lacks `alg`, or has a member of \
                 the wrong type."
            }
            SignatureFault::Algorithm => {
                "The signature's algorithm is not accepted; use EdDSA, ES256, ES384, PS256 or RS256."
            }
            SignatureFault::Critical => {
                "The header's `crit` names an extension that is not supported."
            }
            SignatureFault::Unencoded => {
                "The signature has an unencoded payload (RFC 7797), which is not supported."
            }
            SignatureFault::NameInBothHeaders => {
                "The protected and the unprotected header have a name in common."
            }
            SignatureFault::EmbeddedKey => {
                "The header supplies its own key (`jwk`, `x5c` or `x5u`), which proves nothing."
            }
            SignatureFault::KeyAlgorithm => {
                "The key that the signature names has another type, or is meant for another use."
            }
            SignatureFault::KeyUse => {
                "The key that the signature names is not for verifying signatures: its `use` is not `sig`, its \
                 `key_ops` lack `verify`, or its `alg` does not fit it (RFC 7517)."
            }
        }
    }
}

/// One entry of a card's `signatures`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignatureResult {
    /// The key's identifier, from the protected header or else the unprotected one, at most 1 024 characters.
    pub kid: Option<String>,
    /// The algorithm, from the protected header only.
    pub alg: Option<String>,
    /// URL of the key set, according to the protected header. Untrusted: must not be fetched without a guard.
    pub jku: Option<String>,
    /// The result of verifying the entry.
    pub result: VerificationResult,
}
