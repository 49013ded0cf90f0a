//! Public keys from a JWK Set (RFC 7517).

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value, json};

use super::algorithm::Algorithm;
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};

/// Maximum number of keys read from a set.
pub const MAX_KEYS: usize = 32;

/// Maximum number of keys of several sets together: enough for a card's own sets and the enrolled keys of its domain.
const MAX_UNION_KEYS: usize = 4 * MAX_KEYS;

/// Maximum size of a key set: 64 KiB.
pub const MAX_KEY_SET_BYTES: usize = 64 << 10;

/// Accepted sizes of RSA keys, in bits of the modulus.
const ACCEPTED_RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// Why a key set cannot be read. Each error displays as one line for the set's publisher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// The set is larger than [`MAX_KEY_SET_BYTES`].
    #[error("the key set has {size} bytes; at most {MAX_KEY_SET_BYTES} are allowed")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The bytes are not a JSON object with a list `keys`, or JSON parsers read them differently (RFC 7493).
    #[error("not a JWK Set: {reason}")]
    NotAKeySet {
        /// What is wrong with it.
        reason: String,
    },
}

/// Public keys for verifying signatures. The caller decides where they come from and whether they are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<VerificationKey>,
    skipped_count: usize,
    /// Identifiers of keys that were skipped because their `use`, `key_ops` or `alg` is for something else.
    other_use_kids: Vec<String>,
}

impl KeySet {
    /// Parses a JWK Set. Keys that cannot verify a card are skipped and counted: other types and curves, RSA below
    /// 2048 or above 8192 bits, malformed keys, private keys (whoever reads them could sign), keys with another `use`,
    /// `key_ops` or `alg`, and all beyond [`MAX_KEYS`].
    pub fn from_jwks(bytes: &[u8]) -> Result<KeySet, KeySetError> {
        if bytes.len() > MAX_KEY_SET_BYTES {
            return Err(KeySetError::TooLarge { size: bytes.len() });
        }
        let key_set_error = |reason: String| KeySetError::NotAKeySet { reason };
        let document =
            json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
                .map_err(|error| key_set_error(error.to_string()))?;
        if !document.exact {
            return Err(key_set_error("JSON parsers read it differently".into()));
        }
        let Some(list) = document.value.get("keys").and_then(Value::as_array) else {
            return Err(key_set_error("it has no list `keys`".into()));
        };
        let parsed_keys: Vec<_> = list
            .iter()
            .take(MAX_KEYS)
            .map(VerificationKey::from_jwk)
            .collect();
        let other_use_kids = parsed_keys.iter().filter_map(|key| match key {
            Err(JwkError::OtherUse { kid }) => kid.clone(),
            _ => None,
        });
        let other_use_kids = other_use_kids.collect();
        let keys: Vec<VerificationKey> = parsed_keys.into_iter().filter_map(Result::ok).collect();
        Ok(KeySet {
            skipped_count: list.len() - keys.len(),
            keys,
            other_use_kids,
        })
    }

    /// Number of usable keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no usable keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of keys of the set that were skipped.
    pub fn skipped_count(&self) -> usize {
        self.skipped_count
    }

    /// The identifiers of the keys that have one, in the set's order.
    pub fn kids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(|key| key.kid.as_deref())
    }

    /// The RFC 7638 thumbprints of the keys, with SHA-256, in base64url, in the set's order.
    pub fn thumbprints(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.thumbprint.as_str())
    }

    /// The thumbprint of the first key with that identifier.
    pub fn thumbprint_of(&self, kid: &str) -> Option<&str> {
        let has_kid = |key: &&VerificationKey| key.kid.as_deref() == Some(kid);
        self.keys
            .iter()
            .find(has_kid)
            .map(|key| key.thumbprint.as_str())
    }

    /// Unites the keys of both sets, this one's first, unique by thumbprint and identifier, at most four times
    /// [`MAX_KEYS`].
    #[must_use]
    pub fn union(mut self, other: KeySet) -> KeySet {
        self.skipped_count += other.skipped_count;
        self.other_use_kids.extend(other.other_use_kids);
        self.other_use_kids.truncate(MAX_UNION_KEYS);
        for key in other.keys {
            let is_same_key = |known: &VerificationKey| {
                known.thumbprint == key.thumbprint && known.kid == key.kid
            };
            if self.keys.len() == MAX_UNION_KEYS {
                self.skipped_count += 1;
            } else if !self.keys.iter().any(is_same_key) {
                self.keys.push(key);
            }
        }
        self
    }

    /// Whether the set has a key with this identifier that is not for verifying signatures: its `use` is not `sig`,
    /// its `key_ops` lack `verify`, or its `alg` does not fit its type (RFC 7517 §4.2 to 4.4).
    pub fn has_key_of_other_use(&self, kid: &str) -> bool {
        self.other_use_kids.iter().any(|other| other == kid)
    }

    pub(super) fn keys(&self) -> &[VerificationKey] {
        &self.keys
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VerificationKey {
    pub(super) kid: Option<String>,
    pub(super) thumbprint: String,
    /// The only algorithm that the key's publisher allows.
    required_algorithm: Option<Algorithm>,
    public_key: PublicKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JwkError {
    /// The JWK is not a public key of an accepted type.
    NotAKey,
    /// The publisher intends the key for something other than verifying signatures.
    OtherUse { kid: Option<String> },
}

impl VerificationKey {
    fn from_jwk(jwk: &Value) -> Result<VerificationKey, JwkError> {
        let jwk = jwk.as_object().ok_or(JwkError::NotAKey)?;
        let kid = match jwk.get("kid").map(Value::as_str) {
            None => None,
            Some(kid) => Some(kid.ok_or(JwkError::NotAKey)?.to_owned()),
        };
        if jwk.contains_key("d") {
            return Err(JwkError::NotAKey);
        }
        if !jwk_allows_operation(jwk, "verify") {
            return Err(JwkError::OtherUse { kid });
        }
        let public_key = PublicKey::from_jwk(jwk).ok_or(JwkError::NotAKey)?;
        let required_algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => {
                let named_algorithm = name.as_str().and_then(Algorithm::from_name);
                let supported_algorithm = named_algorithm.filter(|alg| public_key.supports(*alg));
                Some(supported_algorithm.ok_or_else(|| JwkError::OtherUse { kid: kid.clone() })?)
            }
        };
        Ok(VerificationKey {
            kid,
            thumbprint: public_key.thumbprint(),
            required_algorithm,
            public_key,
        })
    }

    /// Whether the key can make signatures with this algorithm.
    pub(super) fn supports(&self, algorithm: Algorithm) -> bool {
        self.public_key.supports(algorithm)
            && self.required_algorithm.is_none_or(|only| only == algorithm)
    }

    pub(super) fn verify_signature(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        self.supports(algorithm)
            && self
                .public_key
                .verify_signature(algorithm, message, signature)
    }
}

/// Whether a JWK's `use` and `key_ops` allow an operation, `sign` or `verify` (RFC 7517 §4.2 and 4.3).
pub(super) fn jwk_allows_operation(jwk: &Map<String, Value>, operation: &str) -> bool {
    let has_use = jwk
        .get("use")
        .is_none_or(|declared_use| declared_use == "sig");
    let operations = jwk.get("key_ops").map(Value::as_array);
    let has_operation =
        operations.is_none_or(|all| all.is_some_and(|all| all.iter().any(|one| one == operation)));
    has_use && has_operation
}

/// A public key, as big-endian bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// Ed25519, always 32 bytes.
    Ed25519(Vec<u8>),
    /// P-256, uncompressed: 4, 32 bytes of x, 32 bytes of y.
    P256(Vec<u8>),
    /// P-384, uncompressed: 4, 48 bytes of x, 48 bytes of y.
    P384(Vec<u8>),
    /// RSA, without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl PublicKey {
    pub(super) fn from_jwk(jwk: &Map<String, Value>) -> Option<PublicKey> {
        let text_member = |name: &str| jwk.get(name).and_then(Value::as_str);
        let curve_point = |length: usize| -> Option<Vec<u8>> {
            let mut point = vec![4];
            for name in ["x", "y"] {
                point.extend(decode_jwk_member(jwk, name).filter(|bytes| bytes.len() == length)?);
            }
            Some(point)
        };
        match (text_member("kty")?, text_member("crv")) {
            ("OKP", Some("Ed25519")) => decode_jwk_member(jwk, "x")
                .filter(|x| x.len() == 32)
                .map(PublicKey::Ed25519),
            ("EC", Some("P-256")) => curve_point(32).map(PublicKey::P256),
            ("EC", Some("P-384")) => curve_point(48).map(PublicKey::P384),
            ("RSA", _) => {
                let unsigned_integer = |name: &str| -> Option<Vec<u8>> {
                    let bytes = decode_jwk_member(jwk, name)?;
                    let leading_zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    Some(bytes[leading_zeros..].to_vec())
                };
                PublicKey::from_rsa_components(unsigned_integer("n")?, unsigned_integer("e")?)
            }
            _ => None,
        }
    }

    /// An RSA key of an accepted size. Both numbers must be without leading zeros.
    pub(super) fn from_rsa_components(modulus: Vec<u8>, exponent: Vec<u8>) -> Option<PublicKey> {
        let unused_bits = modulus.first()?.leading_zeros() as usize;
        let bits = modulus.len() * 8 - unused_bits;
        (ACCEPTED_RSA_BITS.contains(&bits) && !exponent.is_empty())
            .then_some(PublicKey::Rsa { modulus, exponent })
    }

    pub(super) fn supports(&self, algorithm: Algorithm) -> bool {
        matches!(
            (self, algorithm),
            (PublicKey::Ed25519(_), Algorithm::EdDsa)
                | (PublicKey::P256(_), Algorithm::Es256)
                | (PublicKey::P384(_), Algorithm::Es384)
                | (PublicKey::Rsa { .. }, Algorithm::Ps256 | Algorithm::Rs256)
        )
    }

    fn verify_signature(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verify_with = |verification_algorithm: &'static dyn VerificationAlgorithm,
                           key: &[u8]| {
            UnparsedPublicKey::new(verification_algorithm, key)
                .verify(message, signature)
                .is_ok()
        };
        match self {
            PublicKey::Ed25519(key) => verify_with(&ED25519, key),
            PublicKey::P256(key) => verify_with(&ECDSA_P256_SHA256_FIXED, key),
            PublicKey::P384(key) => verify_with(&ECDSA_P384_SHA384_FIXED, key),
            PublicKey::Rsa { modulus, exponent } => {
                let verification_algorithm = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                let (n, e) = (modulus, exponent);
                RsaPublicKeyComponents { n, e }
                    .verify(verification_algorithm, message, signature)
                    .is_ok()
            }
        }
    }

    /// The required members of its JWK, in the order of RFC 7638 §3.2.
    pub(super) fn to_jwk(&self) -> Value {
        let text = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        let curve_jwk = |name: &str, point: &[u8]| {
            // The first byte says that the point is not compressed.
            let (x, y) = point.split_at(point.len().div_ceil(2));
            let x = x.get(1..).unwrap_or_default();
            json!({"crv": name, "kty": "EC", "x": text(x), "y": text(y)})
        };
        match self {
            PublicKey::Ed25519(x) => json!({"crv": "Ed25519", "kty": "OKP", "x": text(x)}),
            PublicKey::P256(point) => curve_jwk("P-256", point),
            PublicKey::P384(point) => curve_jwk("P-384", point),
            PublicKey::Rsa { modulus, exponent } => {
                json!({"e": text(exponent), "kty": "RSA", "n": text(modulus)})
            }
        }
    }

    pub(super) fn thumbprint(&self) -> String {
        let hash = digest(&SHA256, self.to_jwk().to_string().as_bytes());
        BASE64URL_NOPAD.encode(hash.as_ref())
    }
}

/// Decodes a member in base64url.
pub(super) fn decode_jwk_member(jwk: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD
        .decode(jwk.get(name)?.as_str()?.as_bytes())
        .ok()
}
