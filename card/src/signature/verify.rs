//! Verification of each entry with the keys that fit it, over each canonical form.

use std::ops::ControlFlow;

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

use super::canonical_form::{
    CanonicalForm, signature_covered_part, without_security_schemes, write_canonical_bytes,
};
use super::jws::{self, DetachedJws};
use super::key_set::{KeySet, VerificationKey};
use super::signature_result::{
    MAX_SIGNATURES, SignatureFault, SignatureResult, VerificationResult,
};
use super::uncovered_collector::UncoveredMemberCollector;
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};
use crate::{CardFamily, ParsedCard};

/// Maximum number of attempts for one card, each with one key and one payload. It suffices for every signature that a
/// card may have, in every form, with the key that it names, and limits the cost of a hostile card with a hostile key
/// set.
pub const MAX_VERIFICATIONS: usize = 128;

/// Verifies the first [`MAX_SIGNATURES`] signatures of a card, in its order.
///
/// `bytes` must be those from which `parsed` was read. A key is tried if its type, `use`, `key_ops` and `alg` allow
/// the signature's algorithm. Keys that the signature names by `kid` are tried first; the name has no other effect. If
/// no key verifies, the signature is `invalid` if the set has the key that it names (or a key without a name, or it
/// names none), and `key-unknown` otherwise.
///
/// ```
/// use a2a_card::{KeySet, parse_card, verify_signatures};
///
/// let bytes = br#"{"name": "Echo", "signatures": [{"protected": "eyJhbGciOiJub25lIn0", "signature": "AA"}]}"#;
/// let entries = verify_signatures(&parse_card(bytes)?, bytes, &KeySet::default());
/// assert_eq!(entries[0].result.as_str(), "refused");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn verify_signatures(parsed: &ParsedCard, bytes: &[u8], keys: &KeySet) -> Vec<SignatureResult> {
    let mut verifier = CardSignatureVerifier {
        parsed,
        bytes,
        document: None,
        payloads: None,
        attempts: 0,
    };
    let entries = parsed.card.signatures.iter().take(MAX_SIGNATURES);
    entries
        .map(|value| {
            let (mut entry, jws) = jws::parse_signature_entry(value);
            if let Some(jws) = jws {
                entry.result = verifier.verify_entry(&jws, keys);
            }
            entry
        })
        .collect()
}

struct CandidatePayload {
    /// The form, or `None` for the SDK's without `securitySchemes`.
    form: Option<CanonicalForm>,
    /// Payload in base64url, as it is signed.
    encoded: String,
}

/// Verifier of one card's signatures. It computes the forms of the card on first use: most cards need none.
struct CardSignatureVerifier<'c> {
    parsed: &'c ParsedCard,
    bytes: &'c [u8],
    document: Option<Result<Value, SignatureFault>>,
    payloads: Option<Vec<CandidatePayload>>,
    attempts: usize,
}

impl CardSignatureVerifier<'_> {
    fn verify_entry(&mut self, jws: &DetachedJws<'_>, keys: &KeySet) -> VerificationResult {
        let read_signable = || signable_document(self.parsed, self.bytes);
        let document = match self.document.get_or_insert_with(read_signable) {
            Ok(document) => &*document,
            Err(reason) => return VerificationResult::Invalid { reason: *reason },
        };
        let is_named_key = |key: &&VerificationKey| key.kid.is_some() && key.kid == jws.kid;
        let supporting_keys = || keys.keys().iter().filter(|key| key.supports(jws.algorithm));
        if supporting_keys().next().is_some() {
            let payloads = self
                .payloads
                .get_or_insert_with(|| candidate_payloads(document));
            let named_keys = supporting_keys().filter(is_named_key);
            let other_keys = supporting_keys().filter(|key| !is_named_key(key));
            let attempt_outcome = verify_jws_with_keys(
                jws,
                payloads,
                named_keys.chain(other_keys),
                &mut self.attempts,
            );
            if let ControlFlow::Break(result) = attempt_outcome {
                return result;
            }
        }
        let could_have_signed =
            |key: &VerificationKey| jws.kid.is_none() || key.kid.is_none() || is_named_key(&key);
        if supporting_keys().any(could_have_signed) {
            let reason = SignatureFault::Mismatch;
            VerificationResult::Invalid { reason }
        } else if keys.keys().iter().any(|key| is_named_key(&key)) {
            let reason = SignatureFault::KeyAlgorithm;
            VerificationResult::Refused { reason }
        } else if jws
            .kid
            .as_deref()
            .is_some_and(|kid| keys.has_key_of_other_use(kid))
        {
            let reason = SignatureFault::KeyUse;
            VerificationResult::Refused { reason }
        } else {
            VerificationResult::KeyUnknown
        }
    }
}

fn verify_jws_with_keys<'k>(
    jws: &DetachedJws<'_>,
    payloads: &[CandidatePayload],
    keys: impl Iterator<Item = &'k VerificationKey>,
    attempts: &mut usize,
) -> ControlFlow<VerificationResult> {
    for key in keys {
        for payload in payloads {
            if *attempts == MAX_VERIFICATIONS {
                return ControlFlow::Break(VerificationResult::Invalid {
                    reason: SignatureFault::TooManyTries,
                });
            }
            *attempts += 1;
            let message = format!("{}.{}", jws.protected, payload.encoded);
            if key.verify_signature(jws.algorithm, message.as_bytes(), &jws.signature) {
                return ControlFlow::Break(match payload.form {
                    Some(form) => VerificationResult::Valid {
                        form,
                        thumbprint: key.thumbprint.clone(),
                    },
                    None => VerificationResult::Invalid {
                        reason: SignatureFault::SchemesNotCovered,
                    },
                });
            }
        }
    }
    ControlFlow::Continue(())
}

/// The document, unless it cannot be signed.
fn signable_document(parsed: &ParsedCard, bytes: &[u8]) -> Result<Value, SignatureFault> {
    // The bytes were read before, so they are JSON within the limits.
    let document =
        json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
            .map_err(|_| SignatureFault::NotIJson)?;
    if !document.exact {
        return Err(SignatureFault::NotIJson);
    }
    if parsed.family == CardFamily::Nested {
        return Err(SignatureFault::NestedCard);
    }
    Ok(document.value)
}

/// The payloads of a card in the order of trying, without duplicates.
fn candidate_payloads(document: &Value) -> Vec<CandidatePayload> {
    let mut parts: Vec<(Option<CanonicalForm>, Value)> = Vec::new();
    for form in CanonicalForm::ALL {
        // Equal parts give the same bytes, except in the 0.3 form, which is written differently.
        let is_new_part = |part: &Value| {
            form == CanonicalForm::V0_3 || parts.iter().all(|(_, other_part)| other_part != part)
        };
        if let Some(part) =
            signature_covered_part(document, form, &mut UncoveredMemberCollector::disabled())
                .filter(is_new_part)
        {
            parts.push((Some(form), part));
        }
    }
    if let Some((Some(CanonicalForm::Sdk), part)) = parts.first()
        && let Some(part) = without_security_schemes(part.clone())
    {
        parts.push((None, part));
    }
    let encode_payload = |(form, part): (Option<CanonicalForm>, Value)| {
        let bytes = write_canonical_bytes(&part, form.unwrap_or(CanonicalForm::Sdk))?;
        let encoded = BASE64URL_NOPAD.encode(&bytes);
        Some(CandidatePayload { form, encoded })
    };
    parts.into_iter().filter_map(encode_payload).collect()
}
