//! Verifies the signatures of a card with fetched and enrolled keys.

pub mod findings;
pub mod pins;
pub mod signature_result;

use std::collections::BTreeSet;

use a2a_card::{
    KeySet, ParsedCard, SignatureResult, VerificationResult, verified_signature_state,
    verified_signature_summary, verify_signatures,
};
use a2a_crawler::ReferencedKeySet;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::entity::enrolled_key;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use signature_result::StoredSignatureResult;

pub use signature_result::{DomainKeyBinding, StoredSignatures};

/// The value that replaces the URL for enrolled keys.
const ENROLLED_KEYS_URL: &str = "enrolled";

#[derive(Serialize)]
struct JwkSetJson<'a> {
    keys: Vec<&'a RawValue>,
}

/// A key set that a card's signatures name, as received when the card was fetched. It is stored with the version, so
/// that signatures can be verified again from the received bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredKeySet {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Whether its URL may not hold keys of this card, so that it was not fetched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    foreign: bool,
}

impl StoredKeySet {
    /// Parses the keys; none if the set could not be fetched.
    fn parse_keys(&self) -> KeySet {
        let set = self.keys.as_deref().unwrap_or_default();
        KeySet::from_jwks(set.as_bytes()).unwrap_or_default()
    }

    /// Parses the key sets stored with a version.
    pub fn parse_all(stored_json: &str) -> Vec<Self> {
        serde_json::from_str(stored_json).unwrap_or_default()
    }

    /// Selects the key sets to verify a fetched card: the enrolled keys, and for each URL that the card names the
    /// fetched keys, or else the last stored ones. So a temporary failure to fetch keys changes no verified state, and
    /// a forged signature is not merely `unknown`.
    pub fn for_verification(
        fetched: Vec<Self>,
        stored: &[Self],
        enrolled: &[enrolled_key::Model],
    ) -> Vec<Self> {
        let find_stored = |url: &str| {
            stored
                .iter()
                .find(|set| set.url == url && set.keys.is_some())
        };
        let fetched = fetched
            .into_iter()
            .filter(|set| set.url != ENROLLED_KEYS_URL);
        let best = fetched.map(|set| match find_stored(&set.url) {
            Some(known) if set.keys.is_none() && !set.foreign => known.clone(),
            _ => set,
        });
        Self::from_enrolled(enrolled)
            .into_iter()
            .chain(best)
            .collect()
    }

    /// Selects the key sets to verify a stored version again: for each URL the keys of the newest version, which were
    /// fetched last, and the currently enrolled keys.
    pub fn for_reverification(
        stored_json: &str,
        newest: &[Self],
        enrolled: &[enrolled_key::Model],
    ) -> Vec<Self> {
        let stored = Self::parse_all(stored_json).into_iter();
        let refreshed = stored
            .filter(|set| set.url != ENROLLED_KEYS_URL)
            .map(|set| {
                let fetched = newest.iter().find(|newest| newest.url == set.url);
                fetched
                    .filter(|fetched| fetched.keys.is_some())
                    .cloned()
                    .unwrap_or(set)
            });
        Self::from_enrolled(enrolled)
            .into_iter()
            .chain(refreshed)
            .collect()
    }

    /// The enrolled keys of a domain as a key set; `None` if there are none.
    fn from_enrolled(keys: &[enrolled_key::Model]) -> Option<Self> {
        let keys: Vec<&RawValue> = keys
            .iter()
            .filter_map(|row| serde_json::from_str(&row.jwk).ok())
            .collect();
        (!keys.is_empty()).then(|| Self {
            url: ENROLLED_KEYS_URL.into(),
            keys: serde_json::to_string(&JwkSetJson { keys }).ok(),
            error: None,
            foreign: false,
        })
    }
}

impl From<&ReferencedKeySet> for StoredKeySet {
    fn from(fetched: &ReferencedKeySet) -> Self {
        let parsed = match &fetched.result {
            Ok(bytes) => match KeySet::from_jwks(bytes) {
                Ok(_) => Ok(String::from_utf8_lossy(bytes).into_owned()),
                Err(error) => Err(error.to_string()),
            },
            Err(detail) => Err(detail.clone()),
        };
        Self {
            url: fetched.url.clone(),
            foreign: fetched.is_foreign,
            error: parsed.as_ref().err().cloned(),
            keys: parsed.ok(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct VerifiedSignatures {
    entries: Vec<SignatureResult>,
    key_sets: Vec<StoredKeySet>,
}

impl VerifiedSignatures {
    pub fn verify_card(parsed: &ParsedCard, bytes: &[u8], key_sets: Vec<StoredKeySet>) -> Self {
        let parsed_sets = key_sets.iter().map(StoredKeySet::parse_keys);
        let keys = parsed_sets.fold(KeySet::default(), KeySet::union);
        Self {
            entries: verify_signatures(parsed, bytes, &keys),
            key_sets,
        }
    }

    /// Whether a key set has other keys than the stored one of the same URL, so that signatures must be verified again.
    pub fn has_new_keys(&self, stored: &[StoredKeySet]) -> bool {
        self.key_sets.iter().any(|set| {
            let before = stored.iter().find(|before| before.url == set.url);
            set.keys.is_some() && before.is_some_and(|before| before.keys != set.keys)
        })
    }

    /// The signing summary, which stays the same if a card is signed again by the same keys.
    pub fn signing_summary(&self) -> String {
        verified_signature_summary(&self.entries)
    }

    /// The combined state of all signatures, without key bindings: a proof of the domain may change without the card,
    /// so bindings are applied where the state is shown.
    pub fn state(&self) -> SignatureState {
        verified_signature_state(&self.entries, |_| false).into()
    }

    /// The thumbprints of the keys that verify the signatures, each once, separated by spaces.
    pub fn thumbprints(&self) -> String {
        let valid = self.entries.iter().filter_map(|entry| match &entry.result {
            VerificationResult::Valid { thumbprint, .. } => Some(thumbprint.as_str()),
            _ => None,
        });
        let each: BTreeSet<&str> = valid.collect();
        each.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// The result of each signature, in its stored form.
    pub fn results_json(&self) -> String {
        let verdicts: Vec<StoredSignatureResult> = self
            .entries
            .iter()
            .map(|entry| StoredSignatureResult::from_entry(entry, &self.key_sets))
            .collect();
        serde_json::to_string(&verdicts).unwrap_or_else(|_| "[]".into())
    }

    /// The key sets in their stored form.
    pub fn key_sets_json(&self) -> String {
        serde_json::to_string(&self.key_sets).unwrap_or_else(|_| "[]".into())
    }

    /// Whether every signature that names this key set verifies with an enrolled key, although the set could not be
    /// fetched.
    fn verifies_without_key_set(&self, set: &StoredKeySet) -> bool {
        let named = self
            .entries
            .iter()
            .filter(|entry| entry.jku.as_ref() == Some(&set.url));
        let mut verify =
            named.map(|entry| matches!(entry.result, VerificationResult::Valid { .. }));
        // A key set that no signature names does not count as verified.
        verify.next() == Some(true) && verify.all(|valid| valid)
    }

    /// The URLs of key sets that were not fetched, because they may hold no key of the card.
    pub fn external_key_set_urls(&self) -> Vec<&str> {
        let foreign = self.key_sets.iter();
        let foreign = foreign.filter(|set| set.foreign && !self.verifies_without_key_set(set));
        foreign.map(|set| set.url.as_str()).collect()
    }
}
