//! Signatures of a card: canonical forms, verification, and signing.
//!
//! Verification uses the received bytes. The specification and the SDKs disagree about which bytes are signed, so
//! every [`CanonicalForm`] is tried, and the one that matched is recorded.

mod algorithm;
mod canonical_form;
mod compact_jws;
mod jws;
mod key_set;
mod projection;
mod python_json;
mod schema;
mod sign;
mod signature_result;
mod signature_state;
mod signing_key;
mod uncovered_collector;
mod uncovered_members;
mod verify;

pub use algorithm::Algorithm;
pub use canonical_form::{CanonicalForm, canonical_payload};
pub use compact_jws::{CompactJws, MAX_TOKEN_BYTES, TokenError};
pub use jws::unverified_signatures;
pub use key_set::{KeySet, KeySetError, MAX_KEY_SET_BYTES, MAX_KEYS};
pub use sign::{ProtectedHeader, SignError, sign_card};
pub use signature_result::{MAX_SIGNATURES, SignatureFault, SignatureResult, VerificationResult};
pub use signature_state::{
    SignatureState, UnknownSignatureState, signature_state, signature_summary,
    verified_signature_state, verified_signature_summary,
};
pub use signing_key::{MAX_KEY_FILE_BYTES, SigningKey, SigningKeyError};
pub use uncovered_collector::{MAX_UNCOVERED, UncoveredMember, UncoveredSubject};
pub(crate) use uncovered_members::SIGNATURE;
pub use uncovered_members::{uncovered_findings, uncovered_members};
pub use verify::{MAX_VERIFICATIONS, verify_signatures};
