//! Parser of one entry of `signatures` as a JWS (RFC 7515 §7.2.2, detached payload), before any key is looked up.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::signature_result::{
    MAX_SIGNATURES, SignatureFault, SignatureResult, VerificationResult,
};
use crate::AgentCard;
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};

const MAX_HEADER_TEXT_CHARS: usize = 1_024;

/// Header members that supply a key. The signer chooses the key, so it proves nothing.
const EMBEDDED_KEY_MEMBERS: [&str; 3] = ["jwk", "x5c", "x5u"];

/// An entry that can be verified with a key.
#[derive(Debug)]
pub(super) struct DetachedJws<'v> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    /// `protected` as received, which is the signed text.
    pub(super) protected: &'v str,
    pub(super) signature: Vec<u8>,
}

/// The first [`MAX_SIGNATURES`] entries of the card's `signatures`, in its order, with the results that
/// [`super::verify_signatures`] gives without keys: `malformed`, `refused` or `key-unknown`.
pub fn unverified_signatures(card: &AgentCard) -> Vec<SignatureResult> {
    let entries = card.signatures.iter().take(MAX_SIGNATURES);
    entries
        .map(|value| parse_signature_entry(value).0)
        .collect()
}

/// Parses an entry: its result, [`VerificationResult::KeyUnknown`] so far, and the JWS if a key can be tried.
pub(super) fn parse_signature_entry(value: &Value) -> (SignatureResult, Option<DetachedJws<'_>>) {
    let mut entry = SignatureResult {
        kid: None,
        alg: None,
        jku: None,
        result: VerificationResult::KeyUnknown,
    };
    let unprotected = value.get("header").filter(|header| !header.is_null());
    let (protected, signature, header) = match decode_signature_entry(value) {
        Ok(parts) => parts,
        Err(reason) => {
            entry.kid = jws_header_text(unprotected, "kid").map(shorten_jws_header_text);
            entry.result = VerificationResult::Malformed { reason };
            return (entry, None);
        }
    };
    let kid = jws_header_text(Some(&header), "kid").or_else(|| jws_header_text(unprotected, "kid"));
    entry.kid = kid.map(shorten_jws_header_text);
    entry.alg = jws_header_text(Some(&header), "alg").map(shorten_jws_header_text);
    entry.jku = jws_header_text(Some(&header), "jku").map(shorten_jws_header_text);
    match accepted_algorithm(&header, unprotected) {
        Ok(algorithm) => {
            let jws = DetachedJws {
                algorithm,
                kid: kid.map(str::to_owned),
                protected,
                signature,
            };
            (entry, Some(jws))
        }
        Err(verdict) => {
            entry.result = verdict;
            (entry, None)
        }
    }
}

/// Decodes `protected` as text, the signature's bytes and the protected header. In a JWS `protected` is the base64url
/// of a JSON object and `signature` is non-empty base64url, both without padding.
fn decode_signature_entry(value: &Value) -> Result<(&str, Vec<u8>, Value), SignatureFault> {
    let decode_member = |name: &str| -> Option<(&str, Vec<u8>)> {
        let text = value.get(name)?.as_str().filter(|text| !text.is_empty())?;
        Some((text, BASE64URL_NOPAD.decode(text.as_bytes()).ok()?))
    };
    let (protected, json) = decode_member("protected").ok_or(SignatureFault::NotJws)?;
    let (_, signature) = decode_member("signature").ok_or(SignatureFault::NotJws)?;
    let header =
        json_document::parse_json(&json, NulHandling::Keep, &mut FindingCollector::default())
            .ok()
            .filter(|header| header.value.is_object())
            .ok_or(SignatureFault::NotJws)?;
    if !header.exact {
        return Err(SignatureFault::Header);
    }
    Ok((protected, signature, header.value))
}

/// The algorithm, unless the headers forbid trying it.
pub(super) fn accepted_algorithm(
    protected: &Value,
    unprotected: Option<&Value>,
) -> Result<Algorithm, VerificationResult> {
    let malformed = Err(VerificationResult::Malformed {
        reason: SignatureFault::Header,
    });
    let refused = |reason| Err(VerificationResult::Refused { reason });
    let empty_header = Map::new();
    let (Some(protected), Some(unprotected)) = (
        protected.as_object(),
        unprotected.map_or(Some(&empty_header), Value::as_object),
    ) else {
        return malformed;
    };
    if unprotected.keys().any(|name| protected.contains_key(name)) {
        return refused(SignatureFault::NameInBothHeaders);
    }
    let find_in_headers = |name: &str| protected.get(name).or_else(|| unprotected.get(name));
    if EMBEDDED_KEY_MEMBERS
        .iter()
        .any(|name| find_in_headers(name).is_some())
    {
        return refused(SignatureFault::EmbeddedKey);
    }
    if find_in_headers("b64").is_some_and(|b64| *b64 != Value::Bool(true)) {
        return refused(SignatureFault::Unencoded);
    }
    // `b64` is the only supported extension (RFC 7797), and must be in the same header as `crit`.
    let is_crit_supported = match find_in_headers("crit") {
        None => true,
        Some(_) => protected
            .get("crit")
            .and_then(Value::as_array)
            .is_some_and(|names| {
                names.len() == 1 && names[0] == "b64" && protected.contains_key("b64")
            }),
    };
    if !is_crit_supported {
        return refused(SignatureFault::Critical);
    }
    let text_members = ["kid", "jku"];
    if text_members
        .iter()
        .any(|name| find_in_headers(name).is_some_and(|value| !value.is_string()))
    {
        return malformed;
    }
    match protected.get("alg").map(Value::as_str) {
        Some(Some(name)) => Algorithm::from_name(name).ok_or(VerificationResult::Refused {
            reason: SignatureFault::Algorithm,
        }),
        _ => malformed,
    }
}

fn jws_header_text<'v>(header: Option<&'v Value>, name: &str) -> Option<&'v str> {
    header?.get(name)?.as_str()
}

fn shorten_jws_header_text(text: &str) -> String {
    text.chars().take(MAX_HEADER_TEXT_CHARS).collect()
}
