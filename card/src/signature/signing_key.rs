//! Reads private keys for signing cards from the bytes of a file.

use data_encoding::BASE64URL_NOPAD;
use ring::rand::SecureRandom;
use ring::rsa::{KeyPair as RsaKeyPair, KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::key_set::{PublicKey, decode_jwk_member, jwk_allows_operation};
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};

/// Size of the largest key file that is read: 64 KiB.
pub const MAX_KEY_FILE_BYTES: usize = 64 << 10;

/// Why a private key cannot be used. Each displays as one line and discloses nothing of the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// The file is larger than [`MAX_KEY_FILE_BYTES`].
    #[error("the key has {size} bytes; at most {MAX_KEY_FILE_BYTES} are allowed")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The bytes have none of the supported forms.
    #[error("neither a PKCS#8 private key (PEM or DER) nor a private JWK: {reason}")]
    NotAKey {
        /// What is wrong with it.
        reason: String,
    },
    /// The key has a type or size that no accepted algorithm supports, or its parts do not match.
    #[error("not a usable Ed25519, P-256, P-384 or RSA key (2048 to 4096 bits): {reason}")]
    Unusable {
        /// What is wrong with it.
        reason: String,
    },
    /// The key's type does not support the algorithm.
    #[error("the key cannot sign with {algorithm}")]
    Algorithm {
        /// The algorithm that was requested.
        algorithm: Algorithm,
    },
}

/// A private key that signs cards.
pub struct SigningKey {
    private_key: PrivateKey,
    public_key: PublicKey,
    algorithm: Algorithm,
    kid: Option<String>,
}

enum PrivateKey {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl SigningKey {
    /// Reads a private key: PKCS#8 as PEM or DER, or a private JWK. An RSA key signs with `RS256` unless its JWK says
    /// `PS256`; every other type has only one algorithm.
    pub fn from_bytes(
        bytes: &[u8],
        random: &dyn SecureRandom,
    ) -> Result<SigningKey, SigningKeyError> {
        if bytes.len() > MAX_KEY_FILE_BYTES {
            return Err(SigningKeyError::TooLarge { size: bytes.len() });
        }
        if bytes.trim_ascii_start().starts_with(b"{") {
            return SigningKey::from_jwk(bytes, random);
        }
        let key = if bytes.trim_ascii_start().starts_with(b"-----BEGIN") {
            // A file may have other sections before the key, such as curve parameters.
            PrivatePkcs8KeyDer::from_pem_slice(bytes).map_err(|_| not_a_key_error(
                "the PEM file has no section `PRIVATE KEY`; convert the key with `openssl pkcs8 -topk8 -nocrypt`",
            ))?
        } else {
            PrivatePkcs8KeyDer::from(bytes)
        };
        SigningKey::from_pkcs8(key.secret_pkcs8_der(), random)
    }

    fn from_pkcs8(der: &[u8], random: &dyn SecureRandom) -> Result<SigningKey, SigningKeyError> {
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(ed25519_signing_key(pair));
        }
        for (signing_algorithm, algorithm) in CURVE_ALGORITHMS {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(signing_algorithm, der, random) {
                return Ok(ecdsa_signing_key(pair, algorithm));
            }
        }
        match RsaKeyPair::from_pkcs8(der) {
            Ok(pair) => rsa_signing_key(pair, Algorithm::Rs256),
            Err(error) if error.to_string() == "InvalidEncoding" => {
                Err(not_a_key_error("the bytes are not PKCS#8"))
            }
            Err(error) => Err(unusable_key_error(&error)),
        }
    }

    fn from_jwk(bytes: &[u8], random: &dyn SecureRandom) -> Result<SigningKey, SigningKeyError> {
        let document =
            json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
                .map_err(|error| not_a_key_error(&error.to_string()))?;
        let (true, Value::Object(jwk)) = (document.exact, document.value) else {
            return Err(not_a_key_error("JSON parsers read the JWK differently"));
        };
        if jwk.contains_key("keys") {
            let reason = "this is a set of keys; provide a single key";
            return Err(not_a_key_error(reason));
        }
        let missing_members =
            || not_a_key_error("the JWK lacks members of a private key, or they are not base64url");
        let public_key = PublicKey::from_jwk(&jwk).ok_or_else(missing_members)?;
        let secret = decode_jwk_member(&jwk, "d").ok_or_else(missing_members)?;
        if !jwk_allows_operation(&jwk, "sign") {
            return Err(unusable_key_error(
                &"its `use` or `key_ops` is not for signing",
            ));
        }
        let mut key = match &public_key {
            PublicKey::Ed25519(x) => ed25519_signing_key(
                Ed25519KeyPair::from_seed_and_public_key(&secret, x)
                    .map_err(|error| unusable_key_error(&error))?,
            ),
            PublicKey::P256(point) | PublicKey::P384(point) => {
                let curve = CURVE_ALGORITHMS
                    .iter()
                    .find(|(_, algorithm)| public_key.supports(*algorithm));
                let (signing_algorithm, algorithm) = *curve.ok_or_else(missing_members)?;
                let key_pair = EcdsaKeyPair::from_private_key_and_public_key(
                    signing_algorithm,
                    &secret,
                    point,
                    random,
                );
                ecdsa_signing_key(
                    key_pair.map_err(|error| unusable_key_error(&error))?,
                    algorithm,
                )
            }
            PublicKey::Rsa { modulus, exponent } => {
                let public_key = PublicKeyComponents {
                    n: modulus.clone(),
                    e: exponent.clone(),
                };
                let parts = rsa_components(&jwk, public_key, secret).ok_or_else(missing_members)?;
                let pair = RsaKeyPair::from_components(&parts);
                let pair = pair.map_err(|error| unusable_key_error(&error))?;
                rsa_signing_key(pair, Algorithm::Rs256)?
            }
        };
        key.kid = jwk_text_member(&jwk, "kid").map(str::to_owned);
        match jwk_text_member(&jwk, "alg") {
            None => Ok(key),
            Some(name) => {
                let algorithm = Algorithm::from_name(name)
                    .ok_or_else(|| not_a_key_error(&format!("`alg` is {name:?}")))?;
                key.with_algorithm(algorithm)
            }
        }
    }

    /// Selects the algorithm of a key whose type supports several, which is RSA.
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Result<SigningKey, SigningKeyError> {
        if !self.public_key.supports(algorithm) {
            return Err(SigningKeyError::Algorithm { algorithm });
        }
        self.algorithm = algorithm;
        Ok(self)
    }

    /// The algorithm that the key signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The identifier that the key's JWK gives it.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// The RFC 7638 thumbprint of its public key, with SHA-256, in base64url.
    pub fn thumbprint(&self) -> String {
        self.public_key.thumbprint()
    }

    /// The JWK Set to publish: only the public key, with that identifier.
    pub fn public_jwks(&self, kid: &str) -> String {
        let mut jwk = self.public_key.to_jwk();
        if let Value::Object(jwk) = &mut jwk {
            jwk.insert("kid".to_owned(), kid.into());
            jwk.insert("use".to_owned(), "sig".into());
            jwk.insert("alg".to_owned(), self.algorithm.as_str().into());
        }
        serde_json::json!({ "keys": [jwk] }).to_string()
    }

    /// The signature of a message, in base64url; `None` if the random number generator or the key fails.
    pub(super) fn sign_message(&self, message: &[u8], random: &dyn SecureRandom) -> Option<String> {
        let bytes = match &self.private_key {
            PrivateKey::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            PrivateKey::Ecdsa(pair) => pair.sign(random, message).ok()?.as_ref().to_vec(),
            PrivateKey::Rsa(pair) => {
                let mut bytes = vec![0; pair.public().modulus_len()];
                let padding: &'static dyn ring::signature::RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(padding, random, message, &mut bytes).ok()?;
                bytes
            }
        };
        Some(BASE64URL_NOPAD.encode(&bytes))
    }
}

impl std::fmt::Debug for SigningKey {
    /// Shows the key's identity, not the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .field("thumbprint", &self.thumbprint())
            .finish_non_exhaustive()
    }
}

const CURVE_ALGORITHMS: [(&EcdsaSigningAlgorithm, Algorithm); 2] = [
    (&ECDSA_P256_SHA256_FIXED_SIGNING, Algorithm::Es256),
    (&ECDSA_P384_SHA384_FIXED_SIGNING, Algorithm::Es384),
];

fn ed25519_signing_key(pair: Ed25519KeyPair) -> SigningKey {
    SigningKey {
        public_key: PublicKey::Ed25519(pair.public_key().as_ref().to_vec()),
        private_key: PrivateKey::Ed25519(pair),
        algorithm: Algorithm::EdDsa,
        kid: None,
    }
}

fn ecdsa_signing_key(pair: EcdsaKeyPair, algorithm: Algorithm) -> SigningKey {
    let point = pair.public_key().as_ref().to_vec();
    SigningKey {
        public_key: match algorithm {
            Algorithm::Es384 => PublicKey::P384(point),
            _ => PublicKey::P256(point),
        },
        private_key: PrivateKey::Ecdsa(pair),
        algorithm,
        kid: None,
    }
}

fn rsa_signing_key(pair: RsaKeyPair, algorithm: Algorithm) -> Result<SigningKey, SigningKeyError> {
    let parts: PublicKeyComponents<Vec<u8>> = pair.public().into();
    let public_key = PublicKey::from_rsa_components(parts.n, parts.e)
        .ok_or_else(|| unusable_key_error(&"its size"))?;
    Ok(SigningKey {
        private_key: PrivateKey::Rsa(Box::new(pair)),
        public_key,
        algorithm,
        kid: None,
    })
}

/// The components of an RSA key from a JWK (RFC 7518 section 6.3.2); `None` if a member is missing or is not base64url.
fn rsa_components(
    jwk: &Map<String, Value>,
    public_key: PublicKeyComponents<Vec<u8>>,
    d: Vec<u8>,
) -> Option<KeyPairComponents<Vec<u8>>> {
    Some(KeyPairComponents {
        public_key,
        d,
        p: decode_jwk_member(jwk, "p")?,
        q: decode_jwk_member(jwk, "q")?,
        dP: decode_jwk_member(jwk, "dp")?,
        dQ: decode_jwk_member(jwk, "dq")?,
        qInv: decode_jwk_member(jwk, "qi")?,
    })
}

fn jwk_text_member<'j>(jwk: &'j Map<String, Value>, name: &str) -> Option<&'j str> {
    jwk.get(name).and_then(Value::as_str)
}

fn not_a_key_error(reason: &str) -> SigningKeyError {
    SigningKeyError::NotAKey {
        reason: reason.to_owned(),
    }
}

fn unusable_key_error(reason: &dyn std::fmt::Display) -> SigningKeyError {
    SigningKeyError::Unusable {
        reason: reason.to_string(),
    }
}
