//! Reads one entry of `signatures` as a JWS (RFC 7515 §7.2.2, detached payload), before any key is looked up.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::entry::{MAX_SIGNATURES, SignatureEntry, SignatureFault, VerificationResult};
use crate::AgentCard;
use crate::document::{self, Nul};
use crate::finding::Findings;

const MAX_HEADER_CHARS: usize = 1_024;

/// Header members that supply a key. The signer chooses it, so it proves nothing.
const EMBEDDED: [&str; 3] = ["jwk", "x5c", "x5u"];

/// An entry that can be verified with a key.
#[derive(Debug)]
pub(super) struct Jws<'v> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    /// `protected` as received, which is the signed text.
    pub(super) protected: &'v str,
    pub(super) signature: Vec<u8>,
}

/// The first [`MAX_SIGNATURES`] entries of the card's `signatures`, in its order, as [`super::verify`] judges them
/// without keys: `malformed`, `refused` or `key-unknown`.
pub fn signature_entries(card: &AgentCard) -> Vec<SignatureEntry> {
    let entries = card.signatures.iter().take(MAX_SIGNATURES);
    entries.map(|value| read(value).0).collect()
}

/// Reads an entry: its result, [`VerificationResult::KeyUnknown`] so far, and the JWS if a key can be tried.
pub(super) fn read(value: &Value) -> (SignatureEntry, Option<Jws<'_>>) {
    let mut entry = SignatureEntry {
        kid: None,
        alg: None,
        jku: None,
        verdict: VerificationResult::KeyUnknown,
    };
    let unprotected = value.get("header").filter(|header| !header.is_null());
    let (protected, signature, header) = match parts(value) {
        Ok(parts) => parts,
        Err(reason) => {
            entry.kid = text(unprotected, "kid").map(shortened);
            entry.verdict = VerificationResult::Malformed { reason };
            return (entry, None);
        }
    };
    let kid = text(Some(&header), "kid").or_else(|| text(unprotected, "kid"));
    entry.kid = kid.map(shortened);
    entry.alg = text(Some(&header), "alg").map(shortened);
    entry.jku = text(Some(&header), "jku").map(shortened);
    match algorithm(&header, unprotected) {
        Ok(algorithm) => {
            let jws = Jws {
                algorithm,
                kid: kid.map(str::to_owned),
                protected,
                signature,
            };
            (entry, Some(jws))
        }
        Err(verdict) => {
            entry.verdict = verdict;
            (entry, None)
        }
    }
}

/// `protected` as text, the signature's bytes and the protected header. In a JWS `protected` is the base64url of a
/// JSON object and `signature` is non-empty base64url, both without padding.
fn parts(value: &Value) -> Result<(&str, Vec<u8>, Value), SignatureFault> {
    let encoded = |name: &str| -> Option<(&str, Vec<u8>)> {
        let text = value.get(name)?.as_str().filter(|text| !text.is_empty())?;
        Some((text, BASE64URL_NOPAD.decode(text.as_bytes()).ok()?))
    };
    let (protected, json) = encoded("protected").ok_or(SignatureFault::NotJws)?;
    let (_, signature) = encoded("signature").ok_or(SignatureFault::NotJws)?;
    let header = document::read(&json, Nul::Keep, &mut Findings::default())
        .ok()
        .filter(|header| header.value.is_object())
        .ok_or(SignatureFault::NotJws)?;
    if !header.exact {
        return Err(SignatureFault::Header);
    }
    Ok((protected, signature, header.value))
}

/// The algorithm, unless the headers forbid trying it.
pub(super) fn algorithm(
    protected: &Value,
    unprotected: Option<&Value>,
) -> Result<Algorithm, VerificationResult> {
    let malformed = Err(VerificationResult::Malformed {
        reason: SignatureFault::Header,
    });
    let refused = |reason| Err(VerificationResult::Refused { reason });
    let none = Map::new();
    let (Some(protected), Some(unprotected)) = (
        protected.as_object(),
        unprotected.map_or(Some(&none), Value::as_object),
    ) else {
        return malformed;
    };
    if unprotected.keys().any(|name| protected.contains_key(name)) {
        return refused(SignatureFault::NameInBothHeaders);
    }
    let either = |name: &str| protected.get(name).or_else(|| unprotected.get(name));
    if EMBEDDED.iter().any(|name| either(name).is_some()) {
        return refused(SignatureFault::EmbeddedKey);
    }
    if either("b64").is_some_and(|b64| *b64 != Value::Bool(true)) {
        return refused(SignatureFault::Unencoded);
    }
    // `b64` is the one supported extension (RFC 7797), and must be in the same header as `crit`.
    let understood = match either("crit") {
        None => true,
        Some(_) => protected
            .get("crit")
            .and_then(Value::as_array)
            .is_some_and(|names| {
                names.len() == 1 && names[0] == "b64" && protected.contains_key("b64")
            }),
    };
    if !understood {
        return refused(SignatureFault::Critical);
    }
    let texts = ["kid", "jku"];
    if texts
        .iter()
        .any(|name| either(name).is_some_and(|value| !value.is_string()))
    {
        return malformed;
    }
    match protected.get("alg").map(Value::as_str) {
        Some(Some(name)) => Algorithm::named(name).ok_or(VerificationResult::Refused {
            reason: SignatureFault::Algorithm,
        }),
        _ => malformed,
    }
}

fn text<'v>(header: Option<&'v Value>, name: &str) -> Option<&'v str> {
    header?.get(name)?.as_str()
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_HEADER_CHARS).collect()
}
