//! Keys that sign cards.

use a2a_card::{ProtectedHeader, SigningKey};
use a2a_crawler::ReferencedKeySet;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::Value;

/// A key with its key set.
pub struct CardSigner {
    key: SigningKey,
    jku: String,
    jwks: String,
}

impl CardSigner {
    /// A new key, whose key set is at this URL.
    pub fn new(jku: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let key = SigningKey::from_bytes(pkcs8.as_ref(), &random).unwrap();
        let jwks = key.public_jwks("k1");
        Self {
            key,
            jku: jku.to_owned(),
            jwks,
        }
    }

    /// The card with a signature by this key.
    pub fn sign(&self, card: &[u8]) -> Vec<u8> {
        self.sign_with_kid("k1", card)
    }

    /// The card with a signature by this key and this key identifier.
    pub fn sign_with_kid(&self, kid: &str, card: &[u8]) -> Vec<u8> {
        let header = ProtectedHeader {
            kid: kid.into(),
            jku: Some(self.jku.clone()),
        };
        a2a_card::sign_card(card, &self.key, &header, &SystemRandom::new()).unwrap()
    }

    /// The public key as JWK.
    pub fn jwk(&self) -> Value {
        let jwks: Value = serde_json::from_str(&self.jwks).unwrap();
        jwks["keys"][0].clone()
    }

    /// The fetched key set that a signature names, with the key identifier `kid`.
    pub fn fetched_key_set_as(&self, kid: &str) -> ReferencedKeySet {
        ReferencedKeySet {
            result: Ok(self.key.public_jwks(kid).into_bytes()),
            ..self.fetched_key_set()
        }
    }

    /// The fetched key set that a signature names.
    pub fn fetched_key_set(&self) -> ReferencedKeySet {
        ReferencedKeySet {
            url: self.jku.clone(),
            is_foreign: false,
            result: Ok(self.jwks.clone().into_bytes()),
        }
    }
}
