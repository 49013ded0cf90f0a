//! Accepted signature algorithms.

use crate::named_enum;

named_enum! {
    /// An accepted signature algorithm (RFC 7518 §3.1, RFC 8037 §3.1).
    ///
    /// Other algorithms are rejected, in particular `none` and those with a shared secret. The key's type, never the
    /// signature, determines which algorithms the key may verify.
    pub enum Algorithm {
        /// `EdDSA`, with Ed25519 alone.
        EdDsa = "EdDSA",
        /// `ES256`: ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// `ES384`: ECDSA on P-384 with SHA-384.
        Es384 = "ES384",
        /// `PS256`: RSASSA-PSS with SHA-256, from 2048 bits.
        Ps256 = "PS256",
        /// `RS256`: RSASSA-PKCS1-v1_5 with SHA-256, from 2048 bits.
        Rs256 = "RS256",
    }
}
