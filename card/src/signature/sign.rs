//! Signing a card.

use data_encoding::BASE64URL_NOPAD;
use ring::rand::SecureRandom;
use serde_json::{Map, Value, json};

use super::canonical::{CanonicalForm, has_interfaces, payload};
use super::entry::MAX_SIGNATURES;
use super::signing_key::SigningKey;
use crate::document::{self, Nul};
use crate::finding::Findings;
use crate::{Family, MAX_CARD_BYTES, ParseError, parse};

/// What the protected header says beside `alg` and `typ`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedHeader {
    /// The key's identifier, under which verifiers look for it.
    pub kid: String,
    /// Where the key set is published.
    pub jku: Option<String>,
}

/// Why a card cannot be signed. Each displays as one line for the card's publisher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The bytes are no card.
    #[error(transparent)]
    Card(#[from] ParseError),
    /// Readers of JSON disagree about what the card says (RFC 7493).
    #[error(
        "the card has a name twice, half a surrogate pair or a number that a double does not hold as written; such a card cannot be signed"
    )]
    NotIJson,
    /// A member is not of the type that the protocol gives it, so that no verifier could read the card.
    #[error(
        "the card has a member of another type than the protocol gives it, in two spellings, or with two alternatives at once; lint it first"
    )]
    WrongMembers,
    /// `signatures` is no list.
    #[error("`signatures` is no list")]
    Signatures,
    /// The card has [`MAX_SIGNATURES`] already, or would become larger than [`MAX_CARD_BYTES`].
    #[error(
        "no room for another signature: a card has at most {MAX_SIGNATURES}, and at most {MAX_CARD_BYTES} bytes"
    )]
    NoRoom,
    /// The header names no key.
    #[error("a signature needs the identifier of its key, `kid`")]
    Kid,
    /// The key or the random source failed.
    #[error("signing failed")]
    Failed,
}

/// Signs a card: gives it with one more entry at the end of `signatures`. Members, their order and their
/// values stay as they are; lines are broken anew where the card had several.
///
/// A card that names `supportedInterfaces` is signed in the form [`CanonicalForm::Sdk`], any other in
/// [`CanonicalForm::V0_3`], which the Python SDK 0.3 verifies. What the signature does not cover is told by
/// [`super::uncovered`]. `random` is used by ECDSA and RSA.
///
/// # Errors
///
/// Every variant of [`SignError`].
pub fn sign(
    bytes: &[u8],
    key: &SigningKey,
    header: &ProtectedHeader,
    random: &dyn SecureRandom,
) -> Result<Vec<u8>, SignError> {
    let parsed = parse(bytes)?;
    let document = document::read(bytes, Nul::Keep, &mut Findings::default())?;
    if !document.exact {
        return Err(SignError::NotIJson);
    }
    if header.kid.is_empty() {
        return Err(SignError::Kid);
    }
    let mut card = document.value;
    let form = if has_interfaces(&card) {
        CanonicalForm::Sdk
    } else {
        CanonicalForm::V0_3
    };
    let payload = payload(&card, form).filter(|_| parsed.family != Family::Nested);
    let payload = payload.ok_or(SignError::WrongMembers)?;
    let protected = protected(key, header);
    let message = format!("{protected}.{}", BASE64URL_NOPAD.encode(&payload));
    let signature = key
        .signature(message.as_bytes(), random)
        .ok_or(SignError::Failed)?;
    let entry = json!({"protected": protected, "signature": signature});
    append(&mut card, entry)?;
    let several_lines = bytes.trim_ascii().contains(&b'\n');
    let written = if several_lines {
        serde_json::to_vec_pretty(&card)
    } else {
        serde_json::to_vec(&card)
    };
    written
        .ok()
        .filter(|signed| signed.len() <= MAX_CARD_BYTES)
        .ok_or(SignError::NoRoom)
}

/// The protected header in base64url. `typ` is there because the JavaScript SDK refuses signatures without.
fn protected(key: &SigningKey, header: &ProtectedHeader) -> String {
    let mut members = Map::new();
    members.insert("alg".to_owned(), key.algorithm().as_str().into());
    if let Some(jku) = &header.jku {
        members.insert("jku".to_owned(), jku.as_str().into());
    }
    members.insert("kid".to_owned(), header.kid.as_str().into());
    members.insert("typ".to_owned(), "JOSE".into());
    BASE64URL_NOPAD.encode(Value::Object(members).to_string().as_bytes())
}

/// Puts the entry behind those that are there.
fn append(card: &mut Value, entry: Value) -> Result<(), SignError> {
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
