//! A JWS in the compact form with a detached payload (RFC 7515 appendix F), `header..signature`, as manifests of AI Catalog
//! carry it. Which header members are allowed is the profile's matter, and so of the caller.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::compact::MAX_TOKEN_BYTES;
use super::key_set::Key;
use crate::exact_json::exact_json;

/// A detached JWS whose form is in order. It says nothing before [`DetachedJws::is_es256_by`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedJws {
    header: Map<String, Value>,
    /// The header as received, which is signed text.
    encoded: String,
    signature: Vec<u8>,
}

impl DetachedJws {
    /// Reads `header..signature`, both in base64url without padding; the header is a JSON object that every parser reads
    /// alike. `None` for anything else, and for more than [`MAX_TOKEN_BYTES`].
    pub fn read(text: &str) -> Option<Self> {
        let (encoded, rest) = text.split_once('.')?;
        let signature = rest.strip_prefix('.')?;
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
        let json = BASE64URL_NOPAD.decode(encoded.as_bytes()).ok()?;
        let Value::Object(header) = exact_json(&json)? else {
            return None;
        };
        let fits = text.len() <= MAX_TOKEN_BYTES && !signature.is_empty();
        fits.then(|| Self {
            header,
            encoded: encoded.to_owned(),
            signature,
        })
    }

    /// The protected header; there is no other one.
    pub const fn header(&self) -> &Map<String, Value> {
        &self.header
    }

    /// Whether the private half of this JWK made the signature over the payload, with ES256. False for a key that is not a
    /// public P-256 key, or whose `use`, `key_ops` or `alg` do not allow it.
    pub fn is_es256_by(&self, jwk: &Value, payload: &[u8]) -> bool {
        let signed = format!("{}.{}", self.encoded, BASE64URL_NOPAD.encode(payload));
        Key::read(jwk)
            .is_ok_and(|key| key.verifies(Algorithm::Es256, signed.as_bytes(), &self.signature))
    }
}

impl super::signing_key::SigningKey {
    /// Signs a payload that is not part of the signature, with this protected header; `None` if the random number generator
    /// fails. The header is not checked.
    pub fn sign_detached(
        &self,
        header: &Value,
        payload: &[u8],
        random: &dyn ring::rand::SecureRandom,
    ) -> Option<String> {
        let header = BASE64URL_NOPAD.encode(header.to_string().as_bytes());
        let signed = format!("{header}.{}", BASE64URL_NOPAD.encode(payload));
        let signature = self.signature(signed.as_bytes(), random)?;
        Some(format!("{header}..{signature}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
    use serde_json::json;

    use super::*;
    use crate::SigningKey;

    fn p256() -> SigningKey {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        SigningKey::from_bytes(der.as_ref(), &random).unwrap()
    }

    fn jwk(key: &SigningKey) -> Value {
        let set: Value = serde_json::from_str(&key.public_jwks("k")).unwrap();
        set["keys"][0].clone()
    }

    #[test]
    fn it_covers_header_and_payload() {
        let (key, other, random) = (p256(), p256(), SystemRandom::new());
        let text = key
            .sign_detached(&json!({"alg": "ES256"}), b"payload", &random)
            .unwrap();
        let jws = DetachedJws::read(&text).unwrap();
        assert_eq!(jws.header()["alg"], "ES256");
        assert!(jws.is_es256_by(&jwk(&key), b"payload"));
        assert!(!jws.is_es256_by(&jwk(&key), b"Payload"));
        assert!(!jws.is_es256_by(&jwk(&other), b"payload"));
        let header = BASE64URL_NOPAD.encode(br#"{"alg":"ES256","x":1}"#);
        let (_, signature) = text.split_once("..").unwrap();
        let changed = DetachedJws::read(&format!("{header}..{signature}")).unwrap();
        assert!(!changed.is_es256_by(&jwk(&key), b"payload"));
    }

    #[test]
    fn keys_that_are_not_for_it_verify_nothing() {
        let (key, random) = (p256(), SystemRandom::new());
        let text = key.sign_detached(&json!({}), b"x", &random).unwrap();
        let jws = DetachedJws::read(&text).unwrap();
        for (member, value) in [
            ("d", json!("AA")),
            ("use", json!("enc")),
            ("key_ops", json!(["sign"])),
            ("alg", json!("ES384")),
            ("crv", json!("P-384")),
            ("kty", json!("OKP")),
        ] {
            let mut unfit = jwk(&key);
            unfit[member] = value;
            assert!(!jws.is_es256_by(&unfit, b"x"), "{member}");
        }
        let der = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let ed = SigningKey::from_bytes(der.as_ref(), &random).unwrap();
        let text = ed.sign_detached(&json!({}), b"x", &random).unwrap();
        assert!(
            !DetachedJws::read(&text)
                .unwrap()
                .is_es256_by(&jwk(&ed), b"x")
        );
    }

    #[test]
    fn other_forms_are_not_read() {
        let header = BASE64URL_NOPAD.encode(b"{}");
        let twice = BASE64URL_NOPAD.encode(br#"{"alg":"ES256","alg":"none"}"#);
        let list = BASE64URL_NOPAD.encode(b"[]");
        let long = format!("{header}..{}", "A".repeat(MAX_TOKEN_BYTES));
        assert!(DetachedJws::read(&format!("{header}..AAAA")).is_some());
        for text in [
            "",
            ".",
            "..",
            "..AAAA",
            &format!("{header}.."),
            &format!("{header}.AAAA"),
            &format!("{header}.e30.AAAA"),
            &format!("{header}..AA.AA"),
            &format!("{header}..AA=="),
            &format!("{twice}..AAAA"),
            &format!("{list}..AAAA"),
            &long,
        ] {
            assert_eq!(DetachedJws::read(text), None, "{text:.40}");
        }
    }
}
