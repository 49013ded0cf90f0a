//! Shared helpers of the signature tests: fixed keys, a signer without canonical forms, and random numbers.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use a2a_card::{KeySet, SignatureResult, SigningKey, parse_card, verify_signatures};
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

/// The key identifier under which the fixed keys are published.
pub const KID: &str = "k1";

/// The header that the SDKs would write for the fixed Ed25519 key.
pub const HEADER: &str = r#"{"alg":"EdDSA","kid":"k1","typ":"JOSE"}"#;

/// The path of a file in `tests/keys`.
pub fn key_path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/keys")
        .join(file)
}

/// The private key in that file.
pub fn key(file: &str) -> SigningKey {
    let bytes = std::fs::read(key_path(file)).unwrap();
    SigningKey::from_bytes(&bytes, &SystemRandom::new()).unwrap()
}

/// The public half of a private key.
pub fn published(key: &SigningKey) -> KeySet {
    KeySet::from_jwks(key.public_jwks(KID).as_bytes()).unwrap()
}

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

/// The JWK of the fixed Ed25519 key.
pub fn jwk() -> Value {
    let x = BASE64URL_NOPAD.encode(pair().public_key().as_ref());
    json!({"kty": "OKP", "crv": "Ed25519", "kid": KID, "x": x})
}

/// A key set of these JWKs.
pub fn set(keys: &[Value]) -> KeySet {
    KeySet::from_jwks(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

/// The key set with the fixed Ed25519 key.
pub fn keys() -> KeySet {
    set(&[jwk()])
}

/// An entry of `signatures` by the fixed Ed25519 key over exactly this payload.
pub fn entry(header: &str, payload: &[u8]) -> Value {
    let protected = BASE64URL_NOPAD.encode(header.as_ref());
    let message = format!("{protected}.{}", BASE64URL_NOPAD.encode(payload.as_ref()));
    let signature = BASE64URL_NOPAD.encode(pair().sign(message.as_bytes()).as_ref());
    json!({"protected": protected, "signature": signature})
}

/// The card with these `signatures`, its text otherwise untouched.
pub fn with(card: &str, signatures: &[Value]) -> String {
    let body = card.trim_end().strip_suffix('}').unwrap();
    format!("{body},\"signatures\":{}}}", Value::from(signatures))
}

/// The signature results of a card.
pub fn judged(card: &str, keys: &KeySet) -> Vec<SignatureResult> {
    verify_signatures(&parse_card(card.as_bytes()).unwrap(), card.as_bytes(), keys)
}

/// The first result as text: its name and the form or the reason.
pub fn verdict(card: &str, keys: &KeySet) -> String {
    describe(&judged(card, keys)[0])
}

/// A result as text: its name and the form or the reason.
pub fn describe(entry: &SignatureResult) -> String {
    let name = entry.result.as_str();
    match &entry.result {
        a2a_card::VerificationResult::Valid { form, .. } => format!("{name} {form}"),
        other => match other.fault() {
            Some(reason) => format!("{name} {}", reason.as_str()),
            None => name.to_owned(),
        },
    }
}

/// The folder of that name outside the repository; `None`, with a loud note, if it is missing.
pub fn shared(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("A2A_REGISTRY_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let folder = shared.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "SKIPPED: no folder {}; set A2A_REGISTRY_SHARED to read real cards",
        folder.display()
    );
    None
}

/// Seeded random numbers (`SplitMix64`).
pub struct Dice(pub u64);

impl Dice {
    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(end).unwrap()).unwrap()
    }
}
