//! Signatures of a card: canonical forms, verification, and signing.
//!
//! The received bytes are verified. As the specification and the SDKs disagree about which of them are signed, every
//! [`CanonicalForm`] is tried and the one that matched is recorded.

mod algorithm;
mod canonical;
mod compact;
mod entry;
mod jws;
mod key_set;
mod project;
mod python;
mod schema;
mod sign;
mod signing_key;
mod state;
mod uncovered;
mod uncovered_list;
mod verify;

pub use algorithm::Algorithm;
pub use canonical::{CanonicalForm, canonical_payload};
pub use compact::{MAX_TOKEN_BYTES, SignedClaims, TokenFault};
pub use entry::{MAX_SIGNATURES, SignatureEntry, SignatureFault, VerificationResult};
pub use jws::signature_entries;
pub use key_set::{KeySet, KeySetError, MAX_KEY_SET_BYTES, MAX_KEYS};
pub use sign::{ProtectedHeader, SignError, sign};
pub use signing_key::{MAX_KEY_FILE_BYTES, SigningKey, SigningKeyError};
pub use state::{
    SignatureState, UnknownSignatureState, signature_state, signing_summary, verified_state,
    verified_summary,
};
pub(crate) use uncovered::SIGNATURE;
pub use uncovered::{uncovered, uncovered_findings};
pub use uncovered_list::{Concern, MAX_UNCOVERED, Uncovered};
pub use verify::{MAX_VERIFICATIONS, verify};
