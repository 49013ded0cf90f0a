//! Compact JWS (RFC 7515 §7.1) whose payload is a JSON object of claims, such as an identity or access token (RFC
//! 7519). It is parsed and verified like the signatures of cards.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::jws;
use super::key_set::{KeySet, VerificationKey};
use super::signature_result::{SignatureFault, VerificationResult};
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};

/// Maximum size of a token: 64 KiB, so that one with 200 groups of long names fits.
pub const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    /// The token has this fault, whatever the keys.
    Rejected(SignatureFault),
    /// The set does not have the key that the token names.
    KeyUnknown,
}

/// A token with a valid form and header. Its claims must not be trusted before [`CompactJws::verify`].
#[derive(Debug)]
pub struct CompactJws<'t> {
    algorithm: Algorithm,
    kid: Option<String>,
    typ: Option<String>,
    claims: Map<String, Value>,
    /// Header and payload as received, which are the signed text.
    signing_input: &'t str,
    signature: Vec<u8>,
}

impl<'t> CompactJws<'t> {
    /// Parses a token: three parts in base64url, the first two of them JSON objects that every parser reads the same,
    /// with an algorithm of [`Algorithm`] and no key of its own.
    pub fn parse(token: &'t str) -> Result<Self, TokenError> {
        let not_jws = TokenError::Rejected(SignatureFault::NotJws);
        if token.len() > MAX_TOKEN_BYTES {
            return Err(not_jws);
        }
        let (signing_input, signature) = token.rsplit_once('.').ok_or(not_jws)?;
        let (header, payload) = signing_input.split_once('.').ok_or(not_jws)?;
        let header = decode_token_part(header)?;
        let claims = decode_token_part(payload)?;
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok();
        let signature = signature.filter(|bytes| !bytes.is_empty());
        let header_text = |name: &str| match header.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(TokenError::Rejected(SignatureFault::Header)),
        };
        let (kid, typ) = (header_text("kid")?, header_text("typ")?);
        let algorithm =
            jws::accepted_algorithm(&Value::Object(header), None).map_err(|verdict| {
                TokenError::Rejected(match verdict {
                    VerificationResult::Refused { reason }
                    | VerificationResult::Malformed { reason } => reason,
                    _ => SignatureFault::Header,
                })
            })?;
        Ok(Self {
            algorithm,
            kid,
            typ,
            claims,
            signing_input,
            signature: signature.ok_or(not_jws)?,
        })
    }

    /// The `typ` of the header.
    pub fn typ(&self) -> Option<&str> {
        self.typ.as_deref()
    }

    /// The issuer that a token claims, even if the token is otherwise invalid. Use it only to select the keys for
    /// verification.
    pub fn claimed_issuer(token: &str) -> Option<String> {
        let mut parts = token.split('.');
        let (_, payload) = (parts.next()?, parts.next()?);
        let is_token = parts.next().is_some() && parts.next().is_none();
        if !is_token || token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let claims = BASE64URL_NOPAD.decode(payload.as_bytes()).ok()?;
        let claims: Map<String, Value> = serde_json::from_slice(&claims).ok()?;
        Some(claims.get("iss")?.as_str()?.to_owned())
    }

    /// The claims, if the signature verifies with the key that the token names or, if it names none, with any key that
    /// fits.
    pub fn verify(&self, keys: &KeySet) -> Result<&Map<String, Value>, TokenError> {
        let is_candidate = |key: &&VerificationKey| self.kid.is_none() || key.kid == self.kid;
        let mut error = match &self.kid {
            Some(kid) if keys.has_key_of_other_use(kid) => {
                TokenError::Rejected(SignatureFault::KeyUse)
            }
            _ => TokenError::KeyUnknown,
        };
        for key in keys.keys().iter().filter(is_candidate) {
            if !key.supports(self.algorithm) {
                if self.kid.is_some() {
                    error = TokenError::Rejected(SignatureFault::KeyAlgorithm);
                }
                continue;
            }
            if key.verify_signature(
                self.algorithm,
                self.signing_input.as_bytes(),
                &self.signature,
            ) {
                return Ok(&self.claims);
            }
            error = TokenError::Rejected(SignatureFault::Mismatch);
        }
        Err(error)
    }
}

/// Decodes a part of a token: base64url without padding of a JSON object.
fn decode_token_part(encoded: &str) -> Result<Map<String, Value>, TokenError> {
    let not_jws = TokenError::Rejected(SignatureFault::NotJws);
    let bytes = BASE64URL_NOPAD
        .decode(encoded.as_bytes())
        .map_err(|_| not_jws)?;
    let document =
        json_document::parse_json(&bytes, NulHandling::Keep, &mut FindingCollector::default())
            .map_err(|_| not_jws)?;
    if !document.exact {
        return Err(TokenError::Rejected(SignatureFault::Header));
    }
    match document.value {
        Value::Object(object) => Ok(object),
        _ => Err(not_jws),
    }
}

impl super::signing_key::SigningKey {
    /// Signs claims in the compact form with this `typ` and `kid`; `None` if the random number generator fails.
    pub fn sign_claims(
        &self,
        claims: &Value,
        typ: &str,
        kid: &str,
        random: &dyn ring::rand::SecureRandom,
    ) -> Option<String> {
        let header = serde_json::json!({"alg": self.algorithm().as_str(), "typ": typ, "kid": kid});
        let encode_part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signing_input = format!("{}.{}", encode_part(&header), encode_part(claims));
        let signature = self.sign_message(signing_input.as_bytes(), random)?;
        Some(format!("{signing_input}.{signature}"))
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

    fn keys() -> [SigningKey; 2] {
        let random = SystemRandom::new();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        [ed.as_ref(), ec.as_ref()].map(|der| SigningKey::from_bytes(der, &random).unwrap())
    }

    fn set(key: &SigningKey, kid: &str) -> KeySet {
        KeySet::from_jwks(key.public_jwks(kid).as_bytes()).unwrap()
    }

    fn part(value: &Value) -> String {
        BASE64URL_NOPAD.encode(value.to_string().as_bytes())
    }

    fn fault(token: &str) -> TokenError {
        CompactJws::parse(token).unwrap_err()
    }

    #[test]
    fn a_token_is_verified_with_the_key_that_it_names() {
        for key in keys() {
            let claims = json!({"iss": "https://login.example", "sub": "ann"});
            let random = SystemRandom::new();
            let token = key.sign_claims(&claims, "at+jwt", "one", &random).unwrap();
            let read = CompactJws::parse(&token).unwrap();
            assert_eq!(read.typ(), Some("at+jwt"));
            let issuer = CompactJws::claimed_issuer(&token).unwrap();
            assert_eq!(issuer, "https://login.example");
            assert_eq!(read.verify(&set(&key, "one")).unwrap()["sub"], "ann");
            let other = set(&key, "two");
            assert_eq!(read.verify(&other), Err(TokenError::KeyUnknown));
            let none = KeySet::default();
            assert_eq!(read.verify(&none), Err(TokenError::KeyUnknown));
        }
    }

    /// Identity providers send up to 200 groups, and the longest accepted group name has 200 bytes.
    #[test]
    fn a_token_with_two_hundred_long_groups_is_read() {
        let [key, _] = keys();
        let groups: Vec<String> = (0..200).map(|number| format!("{number:0>200}")).collect();
        let claims = json!({"sub": "ann", "groups": groups});
        let random = SystemRandom::new();
        let token = key.sign_claims(&claims, "JWT", "one", &random).unwrap();
        let read = CompactJws::parse(&token).unwrap();
        assert_eq!(
            read.verify(&set(&key, "one")).unwrap()["groups"],
            json!(groups)
        );
        let claims = json!({"sub": "a".repeat(MAX_TOKEN_BYTES)});
        let token = key.sign_claims(&claims, "JWT", "one", &random).unwrap();
        assert_eq!(fault(&token), TokenError::Rejected(SignatureFault::NotJws));
    }

    #[test]
    fn what_was_changed_or_signed_by_another_key_is_refused() {
        let [ed, ec] = keys();
        let random = SystemRandom::new();
        let token = ed
            .sign_claims(&json!({"sub": "ann"}), "JWT", "one", &random)
            .unwrap();
        let mut parts: Vec<&str> = token.split('.').collect();
        let changed = part(&json!({"sub": "root"}));
        parts[1] = &changed;
        let changed = parts.join(".");
        let changed = CompactJws::parse(&changed).unwrap();
        let mismatch = TokenError::Rejected(SignatureFault::Mismatch);
        assert_eq!(changed.verify(&set(&ed, "one")), Err(mismatch));
        let [other, _] = keys();
        let read = CompactJws::parse(&token).unwrap();
        assert_eq!(read.verify(&set(&other, "one")), Err(mismatch));
        let wrong_type = TokenError::Rejected(SignatureFault::KeyAlgorithm);
        assert_eq!(read.verify(&set(&ec, "one")), Err(wrong_type));
    }

    #[test]
    fn only_signatures_by_the_listed_algorithms_are_tried() {
        let claims = part(&json!({"sub": "ann"}));
        for alg in [
            "none", "None", "HS256", "HS512", "RS512", "ES256K", "eddsa", "",
        ] {
            let token = format!("{}.{claims}.AAAA", part(&json!({"alg": alg})));
            let algorithm = TokenError::Rejected(SignatureFault::Algorithm);
            assert_eq!(fault(&token), algorithm, "{alg}");
        }
        // A token without a signature is rejected, whatever its header says.
        let token = format!("{}.{claims}.", part(&json!({"alg": "RS256"})));
        assert_eq!(fault(&token), TokenError::Rejected(SignatureFault::NotJws));
    }

    #[test]
    fn odd_headers_and_forms_are_refused() {
        use SignatureFault::{Critical, EmbeddedKey, Header, NotJws, Unencoded};
        let claims = part(&json!({"sub": "ann"}));
        for (header, reason) in [
            (json!({}), Header),
            (json!({"alg": 1}), Header),
            (json!({"alg": "RS256", "kid": 1}), Header),
            (json!({"alg": "RS256", "typ": []}), Header),
            (json!({"alg": "RS256", "jwk": {}}), EmbeddedKey),
            (json!({"alg": "RS256", "x5c": []}), EmbeddedKey),
            (json!({"alg": "RS256", "x5u": "https://a/"}), EmbeddedKey),
            (json!({"alg": "RS256", "crit": ["exp"]}), Critical),
            (json!({"alg": "RS256", "b64": false}), Unencoded),
            (json!(["RS256"]), NotJws),
        ] {
            let token = format!("{}.{claims}.AAAA", part(&header));
            assert_eq!(fault(&token), TokenError::Rejected(reason), "{header}");
        }
        let header = part(&json!({"alg": "RS256"}));
        let twice = BASE64URL_NOPAD.encode(br#"{"sub": "ann", "sub": "root"}"#);
        let twice = format!("{header}.{twice}.AAAA");
        assert_eq!(fault(&twice), TokenError::Rejected(Header));
        assert_eq!(CompactJws::claimed_issuer(&twice), None);
        let long = format!("{header}.{claims}.{}", "A".repeat(MAX_TOKEN_BYTES));
        for token in [
            "",
            ".",
            "..",
            "a.b",
            "a2ar_abc",
            &format!("{header}.{claims}"),
            &format!("{header}.{claims}.A=A="),
            &format!("{header}.{claims}.AA.AA"),
            &long,
        ] {
            assert_eq!(fault(token), TokenError::Rejected(NotJws), "{token}");
        }
    }
}
