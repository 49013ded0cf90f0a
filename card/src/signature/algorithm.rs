//! Accepted signature algorithms.

use std::fmt;

/// A signature algorithm (RFC 7518 §3.1, RFC 8037 §3.1).
///
/// Nothing else is accepted: no `none`, nothing with a shared secret. The key's type determines which of them it may
/// verify, never the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// `EdDSA`, with Ed25519 alone.
    EdDsa,
    /// `ES256`: ECDSA on P-256 with SHA-256.
    Es256,
    /// `ES384`: ECDSA on P-384 with SHA-384.
    Es384,
    /// `PS256`: RSASSA-PSS with SHA-256, from 2048 bits.
    Ps256,
    /// `RS256`: RSASSA-PKCS1-v1_5 with SHA-256, from 2048 bits.
    Rs256,
}

impl Algorithm {
    /// Every algorithm that is accepted.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::EdDsa,
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Ps256,
        Algorithm::Rs256,
    ];

    /// The name in the header `alg`.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::EdDsa => "EdDSA",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Ps256 => "PS256",
            Algorithm::Rs256 => "RS256",
        }
    }

    /// The algorithm of that name, with regard to case.
    pub(super) fn named(name: &str) -> Option<Self> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.as_str() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
