//! Verification: each entry against the keys that fit it, over each canonical form.

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::canonical::{CanonicalForm, payload, payload_without_schemes};
use super::jws::{self, Jws};
use super::key_set::Key;
use super::{KeySet, MAX_SIGNATURES, Reason, SignatureEntry, Verdict};
use crate::document::{self, Nul};
use crate::finding::Findings;
use crate::{Family, Parsed};

/// At most this many times a key is tried on a payload for one card. It is enough for every signature a card
/// may have in every form with the key it names, and bounds what a hostile card with a hostile key set costs.
pub const MAX_VERIFICATIONS: usize = 128;

/// Judges the first [`MAX_SIGNATURES`] signatures of a card, in its order.
///
/// `bytes` are those that `parsed` was read from. A key is tried where its type, `use`, `key_ops` and `alg`
/// allow the signature's algorithm; those that the signature names by `kid` go first, and the name decides
/// nothing else. Where none verifies, the signature is `invalid` if the set has the key it names (or a key
/// without a name, or it names none) and `key-unknown` otherwise.
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

/// What a signature may be over.
struct Payload {
    /// The form, or `None` for the SDK's without `securitySchemes`.
    form: Option<CanonicalForm>,
    /// In base64url, as it is signed.
    encoded: String,
}

/// The card whose signatures are judged.
struct Card<'c> {
    parsed: &'c Parsed,
    bytes: &'c [u8],
    payloads: Option<Result<Vec<Payload>, Reason>>,
    tries: usize,
}

impl Card<'_> {
    fn judge(&mut self, jws: &Jws<'_>, keys: &KeySet) -> Verdict {
        let made = &*self
            .payloads
            .get_or_insert_with(|| payloads(self.parsed, self.bytes));
        let payloads = match made {
            Ok(payloads) => payloads,
            Err(reason) => return Verdict::Invalid { reason: *reason },
        };
        let named = |key: &&Key| key.kid.is_some() && key.kid == jws.kid;
        let fitting = || keys.keys().iter().filter(|key| key.fits(jws.algorithm));
        let first = fitting().filter(named);
        let others = fitting().filter(|key| !named(key));
        match tried(jws, payloads, first.chain(others), &mut self.tries) {
            ControlFlow::Break(verdict) => verdict,
            ControlFlow::Continue(()) => {
                let meant = |key: &Key| jws.kid.is_none() || key.kid.is_none() || named(&key);
                if fitting().any(meant) {
                    let reason = Reason::Mismatch;
                    Verdict::Invalid { reason }
                } else if keys.keys().iter().any(|key| named(&key)) {
                    let reason = Reason::KeyAlgorithm;
                    Verdict::Refused { reason }
                } else {
                    Verdict::KeyUnknown
                }
            }
        }
    }
}

/// Tries the keys in turn until one settles the matter.
fn tried<'k>(
    jws: &Jws<'_>,
    payloads: &[Payload],
    keys: impl Iterator<Item = &'k Key>,
    tries: &mut usize,
) -> ControlFlow<Verdict> {
    for key in keys {
        for payload in payloads {
            if *tries == MAX_VERIFICATIONS {
                return ControlFlow::Break(Verdict::Invalid {
                    reason: Reason::TooManyTries,
                });
            }
            *tries += 1;
            let message = format!("{}.{}", jws.protected, payload.encoded);
            if key.verifies(jws.algorithm, message.as_bytes(), &jws.signature) {
                return ControlFlow::Break(match payload.form {
                    Some(form) => Verdict::Valid {
                        form,
                        thumbprint: key.thumbprint.clone(),
                    },
                    None => Verdict::Invalid {
                        reason: Reason::SchemesNotCovered,
                    },
                });
            }
        }
    }
    ControlFlow::Continue(())
}

/// The payloads of a card in the order in which they are tried, each once.
fn payloads(parsed: &Parsed, bytes: &[u8]) -> Result<Vec<Payload>, Reason> {
    // The bytes were read before, so they are JSON within the bounds.
    let document =
        document::read(bytes, Nul::Keep, &mut Findings::default()).map_err(|_| Reason::NotIJson)?;
    if !document.exact {
        return Err(Reason::NotIJson);
    }
    if parsed.family == Family::Nested {
        return Err(Reason::NestedCard);
    }
    Ok(distinct(&document.value))
}

fn distinct(document: &Value) -> Vec<Payload> {
    let mut payloads: Vec<Payload> = Vec::new();
    let forms = CanonicalForm::ALL.map(|form| (Some(form), payload(document, form)));
    let without_schemes = (None, payload_without_schemes(document));
    for (form, bytes) in forms.into_iter().chain([without_schemes]) {
        let Some(bytes) = bytes else { continue };
        let encoded = URL_SAFE_NO_PAD.encode(bytes);
        if payloads.iter().all(|payload| payload.encoded != encoded) {
            payloads.push(Payload { form, encoded });
        }
    }
    payloads
}
