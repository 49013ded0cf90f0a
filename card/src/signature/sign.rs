//! Signing of cards.

use data_encoding::BASE64URL_NOPAD;
use ring::rand::SecureRandom;
use serde_json::{Map, Value, json};

use super::canonical_form::{CanonicalForm, has_supported_interfaces, signing_payload};
use super::signature_result::MAX_SIGNATURES;
use super::signing_key::SigningKey;
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};
use crate::{CardFamily, MAX_CARD_BYTES, ParseError, parse_card};

/// The protected header, besides `alg` and `typ`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedHeader {
    /// The key's identifier, by which verifiers find the key.
    pub kid: String,
    /// URL at which the key set is published.
    pub jku: Option<String>,
}

/// Why a card cannot be signed. Each error displays as one line for the card's publisher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The bytes are not a card.
    #[error(transparent)]
    Card(#[from] ParseError),
    /// JSON parsers read the card differently (RFC 7493).
    #[error(
        "the card has a name twice, half a surrogate pair or a number that a double does not hold as written; such a card cannot be signed"
    )]
    NotIJson,
    /// A member has another type than the protocol allows, so that no verifier could read the card.
    #[error(
        "a member of the card has the wrong type, two spellings, or two alternatives at once; run the linter first"
    )]
    WrongMembers,
    /// `signatures` is not a list.
    #[error("`signatures` is not a list")]
    Signatures,
    /// The card already has [`MAX_SIGNATURES`] signatures, or would become larger than [`MAX_CARD_BYTES`].
    #[error(
        "no room for another signature: a card has at most {MAX_SIGNATURES}, and at most {MAX_CARD_BYTES} bytes"
    )]
    NoRoom,
    /// The header names no key.
    #[error("a signature needs the identifier of its key, `kid`")]
    Kid,
    /// The key or the random number generator failed.
    #[error("signing failed")]
    Failed,
}

/// Signs a card and returns it with one more entry at the end of `signatures`. Members, their order and their values
/// stay the same; a card with several lines is formatted again.
///
/// A card with `supportedInterfaces` is signed in the form [`CanonicalForm::Sdk`], any other in
/// [`CanonicalForm::V0_3`], which the Python SDK 0.3 verifies. [`super::uncovered_members`] lists the members that the
/// signature does not cover. ECDSA and RSA use `random`.
pub fn sign_card(
    bytes: &[u8],
    key: &SigningKey,
    header: &ProtectedHeader,
    random: &dyn SecureRandom,
) -> Result<Vec<u8>, SignError> {
    let parsed = parse_card(bytes)?;
    let document =
        json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())?;
    if !document.exact {
        return Err(SignError::NotIJson);
    }
    if header.kid.is_empty() {
        return Err(SignError::Kid);
    }
    let mut card = document.value;
    let form = if has_supported_interfaces(&card) {
        CanonicalForm::Sdk
    } else {
        CanonicalForm::V0_3
    };
    let payload = signing_payload(&card, form).filter(|_| parsed.family != CardFamily::Nested);
    let payload = payload.ok_or(SignError::WrongMembers)?;
    let protected = encode_protected_header(key, header);
    let message = format!("{protected}.{}", BASE64URL_NOPAD.encode(&payload));
    let signature = key
        .sign_message(message.as_bytes(), random)
        .ok_or(SignError::Failed)?;
    let entry = json!({"protected": protected, "signature": signature});
    append_signature(&mut card, entry)?;
    let several_lines = bytes.trim_ascii().contains(&b'\n');
    let signed_bytes = if several_lines {
        serde_json::to_vec_pretty(&card)
    } else {
        serde_json::to_vec(&card)
    };
    signed_bytes
        .ok()
        .filter(|signed| signed.len() <= MAX_CARD_BYTES)
        .ok_or(SignError::NoRoom)
}

/// The protected header in base64url. It has `typ` because the JavaScript SDK rejects signatures without it.
fn encode_protected_header(key: &SigningKey, header: &ProtectedHeader) -> String {
    let mut members = Map::new();
    members.insert("alg".to_owned(), key.algorithm().as_str().into());
    if let Some(jku) = &header.jku {
        members.insert("jku".to_owned(), jku.as_str().into());
    }
    members.insert("kid".to_owned(), header.kid.as_str().into());
    members.insert("typ".to_owned(), "JOSE".into());
    BASE64URL_NOPAD.encode(Value::Object(members).to_string().as_bytes())
}

fn append_signature(card: &mut Value, entry: Value) -> Result<(), SignError> {
    let members = card.as_object_mut().ok_or(SignError::Signatures)?;
    let signatures = members.entry("signatures").or_insert(Value::Null);
    if signatures.is_null() {
        *signatures = Value::Array(Vec::new());
    }
    let list = signatures.as_array_mut().ok_or(SignError::Signatures)?;
    if list.len() >= MAX_SIGNATURES {
        return Err(SignError::NoRoom);
    }
    list.push(entry);
    Ok(())
}
