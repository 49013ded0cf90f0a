//! Sealing: encryption of data that a browser keeps for the registry, and of secrets in the database, with keys that all
//! replicas share.

use a2a_registry_domain::identifiers::Entropy;
use data_encoding::BASE64URL_NOPAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

pub const KEY_BYTES: usize = 32;

/// Seals texts so that only holders of the key can read, change or create them. Every replica has the same key, so that
/// it can open texts sealed by another: from the database for what browsers keep, from a file for what the database
/// keeps.
#[derive(Debug)]
pub struct Sealer(LessSafeKey);

impl Sealer {
    pub fn new(key: &[u8]) -> Option<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals a text for this purpose, as characters that a cookie can hold. The nonce is random: with 96 bits no two
    /// are expected to be equal within 2^32 texts.
    pub fn seal(&self, purpose: &str, text: &[u8], entropy: &dyn Entropy) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        entropy.fill(&mut nonce);
        let mut sealed = text.to_vec();
        let associated_data = Aad::from(purpose.as_bytes());
        self.0
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                associated_data,
                &mut sealed,
            )
            .ok()?;
        let nonce_and_sealed = [nonce.as_slice(), sealed.as_slice()].concat();
        Some(BASE64URL_NOPAD.encode(&nonce_and_sealed))
    }

    /// Opens a text that was sealed for this purpose; `None` for anything else.
    pub fn open(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
        let mut nonce_and_sealed = BASE64URL_NOPAD.decode(sealed.as_bytes()).ok()?;
        let nonce: [u8; NONCE_LEN] = *nonce_and_sealed.first_chunk()?;
        let associated_data = Aad::from(purpose.as_bytes());
        let text = self
            .0
            .open_within(
                Nonce::assume_unique_for_key(nonce),
                associated_data,
                &mut nonce_and_sealed,
                NONCE_LEN..,
            )
            .ok()?;
        Some(text.to_vec())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_domain::identifiers::SystemEntropy;

    use super::*;

    #[test]
    fn what_was_sealed_is_opened_with_its_key_for_its_purpose_alone() {
        let (entropy, sealer) = (SystemEntropy::default(), Sealer::new(&[7; 32]).unwrap());
        let sealed = sealer.seal("one", b"a text", &entropy).unwrap();
        assert!(!sealed.contains("text"));
        assert_eq!(sealer.open("one", &sealed).unwrap(), b"a text");
        assert_ne!(sealer.seal("one", b"a text", &entropy).unwrap(), sealed);
        assert_eq!(sealer.open("two", &sealed), None);
        let other = Sealer::new(&[8; 32]).unwrap();
        assert_eq!(other.open("one", &sealed), None);
        assert!(Sealer::new(&[7; 31]).is_none());
    }

    #[test]
    fn no_changed_text_is_opened() {
        let (entropy, sealer) = (SystemEntropy::default(), Sealer::new(&[7; 32]).unwrap());
        let sealed = sealer.seal("one", b"a text", &entropy).unwrap();
        let bytes = BASE64URL_NOPAD.decode(sealed.as_bytes()).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let changed = BASE64URL_NOPAD.encode(&changed);
            assert_eq!(sealer.open("one", &changed), None, "{place}");
            let cut = BASE64URL_NOPAD.encode(&bytes[..place]);
            assert_eq!(sealer.open("one", &cut), None, "{place}");
        }
        for text in ["", "é", "a b", "AAAA"] {
            assert_eq!(sealer.open("one", text), None, "{text}");
        }
    }
}
