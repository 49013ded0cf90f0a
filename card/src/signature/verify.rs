//! Verifies each entry with the keys that fit it, over each canonical form.

use std::ops::ControlFlow;

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

use super::canonical::{CanonicalForm, covered, without_schemes, written};
use super::entry::{MAX_SIGNATURES, SignatureEntry, SignatureFault, VerificationResult};
use super::jws::{self, Jws};
use super::key_set::{Key, KeySet};
use super::uncovered_list::UncoveredList;
use crate::document::{self, Nul};
use crate::finding::Findings;
use crate::{Family, Parsed};

/// Most attempts to verify with a key and a payload for one card. It is enough for every signature that a card may
/// have, in every form, with the key that it names, and limits the cost of a hostile card with a hostile key set.
pub const MAX_VERIFICATIONS: usize = 128;

/// Verifies the first [`MAX_SIGNATURES`] signatures of a card, in its order.
///
/// `bytes` are those that `parsed` was read from. A key is tried if its type, `use`, `key_ops` and `alg` allow the
/// signature's algorithm; those that the signature names by `kid` are tried first, and the name has no other effect.
/// If none verifies, the signature is `invalid` if the set has the key that it names (or a key without a name, or it
/// names none), and `key-unknown` otherwise.
///
/// ```
/// use a2a_card::{KeySet, parse, verify};
///
/// let bytes = br#"{"name": "Echo", "signatures": [{"protected": "eyJhbGciOiJub25lIn0", "signature": "AA"}]}"#;
/// let entries = verify(&parse(bytes)?, bytes, &KeySet::default());
/// assert_eq!(entries[0].verdict.as_str(), "refused");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn verify(parsed: &Parsed, bytes: &[u8], keys: &KeySet) -> Vec<SignatureEntry> {
    let mut card = Card {
        parsed,
        bytes,
        document: None,
        payloads: None,
        tries: 0,
    };
    let entries = parsed.card.signatures.iter().take(MAX_SIGNATURES);
    entries
        .map(|value| {
            let (mut entry, jws) = jws::read(value);
            if let Some(jws) = jws {
                entry.verdict = card.judge(&jws, keys);
            }
            entry
        })
        .collect()
}

struct Payload {
    /// The form, or `None` for the SDK's without `securitySchemes`.
    form: Option<CanonicalForm>,
    /// In base64url, as it is signed.
    encoded: String,
}

/// The card whose signatures are verified. Its forms are computed on first use: most cards need none.
struct Card<'c> {
    parsed: &'c Parsed,
    bytes: &'c [u8],
    document: Option<Result<Value, SignatureFault>>,
    payloads: Option<Vec<Payload>>,
    tries: usize,
}

impl Card<'_> {
    fn judge(&mut self, jws: &Jws<'_>, keys: &KeySet) -> VerificationResult {
        let read = || signable(self.parsed, self.bytes);
        let document = match self.document.get_or_insert_with(read) {
            Ok(document) => &*document,
            Err(reason) => return VerificationResult::Invalid { reason: *reason },
        };
        let named = |key: &&Key| key.kid.is_some() && key.kid == jws.kid;
        let fitting = || keys.keys().iter().filter(|key| key.fits(jws.algorithm));
        if fitting().next().is_some() {
            let payloads = self.payloads.get_or_insert_with(|| payloads(document));
            let first = fitting().filter(named);
            let others = fitting().filter(|key| !named(key));
            let outcome = tried(jws, payloads, first.chain(others), &mut self.tries);
            if let ControlFlow::Break(verdict) = outcome {
                return verdict;
            }
        }
        let meant = |key: &Key| jws.kid.is_none() || key.kid.is_none() || named(&key);
        if fitting().any(meant) {
            let reason = SignatureFault::Mismatch;
            VerificationResult::Invalid { reason }
        } else if keys.keys().iter().any(|key| named(&key)) {
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

fn tried<'k>(
    jws: &Jws<'_>,
    payloads: &[Payload],
    keys: impl Iterator<Item = &'k Key>,
    tries: &mut usize,
) -> ControlFlow<VerificationResult> {
    for key in keys {
        for payload in payloads {
            if *tries == MAX_VERIFICATIONS {
                return ControlFlow::Break(VerificationResult::Invalid {
                    reason: SignatureFault::TooManyTries,
                });
            }
            *tries += 1;
            let message = format!("{}.{}", jws.protected, payload.encoded);
            if key.verifies(jws.algorithm, message.as_bytes(), &jws.signature) {
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
fn signable(parsed: &Parsed, bytes: &[u8]) -> Result<Value, SignatureFault> {
    // The bytes were read before, so they are JSON within the bounds.
    let document = document::read(bytes, Nul::Keep, &mut Findings::default())
        .map_err(|_| SignatureFault::NotIJson)?;
    if !document.exact {
        return Err(SignatureFault::NotIJson);
    }
    if parsed.family == Family::Nested {
        return Err(SignatureFault::NestedCard);
    }
    Ok(document.value)
}

/// The payloads of a card in the order in which they are tried, without duplicates.
fn payloads(document: &Value) -> Vec<Payload> {
    let mut parts: Vec<(Option<CanonicalForm>, Value)> = Vec::new();
    for form in CanonicalForm::ALL {
        // Equal parts give the same bytes, except in the 0.3 form, which is written differently.
        let differs = |part: &Value| {
            form == CanonicalForm::V0_3 || parts.iter().all(|(_, known)| known != part)
        };
        if let Some(part) = covered(document, form, &mut UncoveredList::none()).filter(differs) {
            parts.push((Some(form), part));
        }
    }
    if let Some((Some(CanonicalForm::Sdk), part)) = parts.first()
        && let Some(part) = without_schemes(part.clone())
    {
        parts.push((None, part));
    }
    let payload = |(form, part): (Option<CanonicalForm>, Value)| {
        let bytes = written(&part, form.unwrap_or(CanonicalForm::Sdk))?;
        let encoded = BASE64URL_NOPAD.encode(&bytes);
        Some(Payload { form, encoded })
    };
    parts.into_iter().filter_map(payload).collect()
}
