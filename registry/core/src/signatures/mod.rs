//! Verifies the signatures of a card with fetched and enrolled keys.

pub mod findings;
pub mod pins;
pub mod verdict;

use std::collections::BTreeSet;

use a2a_card::{
    KeySet, Parsed, SignatureEntry, VerificationResult, verified_state, verified_summary, verify,
};
use a2a_crawler::FetchedKeySet;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::entity::enrolled_key;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use verdict::KeptVerdict;

pub use verdict::{KeyBinding, StoredSignatures};

/// The value in place of a URL for enrolled keys.
const ENROLLED: &str = "enrolled";

#[derive(Serialize)]
struct JwkSetJson<'a> {
    keys: Vec<&'a RawValue>,
}

/// A key set that a card's signatures name, as received when the card was fetched. It is stored with the version, so
/// that its signatures can be verified again from the received bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptKeySet {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Whether its URL may hold no key of this card, so that it was not fetched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    foreign: bool,
}

impl KeptKeySet {
    /// Its keys; none if it could not be fetched.
    fn read(&self) -> KeySet {
        let set = self.keys.as_deref().unwrap_or_default();
        KeySet::from_jwks(set.as_bytes()).unwrap_or_default()
    }

    /// The key sets stored with a version.
    pub fn read_all(kept: &str) -> Vec<Self> {
        serde_json::from_str(kept).unwrap_or_default()
    }

    /// The key sets that verify a fetched card: the enrolled keys, and for each URL that the card names the fetched
    /// keys, or else the last stored ones. So keys that cannot be fetched for a while change no verified state, and a
    /// forged signature is not merely `unknown`.
    pub fn to_verify_with(
        fetched: Vec<Self>,
        known: &[Self],
        enrolled: &[enrolled_key::Model],
    ) -> Vec<Self> {
        let known = |url: &str| {
            known
                .iter()
                .find(|set| set.url == url && set.keys.is_some())
        };
        let fetched = fetched.into_iter().filter(|set| set.url != ENROLLED);
        let best = fetched.map(|set| match known(&set.url) {
            Some(known) if set.keys.is_none() && !set.foreign => known.clone(),
            _ => set,
        });
        Self::enrolled(enrolled).into_iter().chain(best).collect()
    }

    /// The key sets that verify a stored version again: for each URL the keys of the newest version, which were fetched
    /// last, and the presently enrolled keys.
    pub fn to_verify_again_with(
        kept: &str,
        newest: &[Self],
        enrolled: &[enrolled_key::Model],
    ) -> Vec<Self> {
        let kept = Self::read_all(kept).into_iter();
        let kept = kept.filter(|set| set.url != ENROLLED).map(|set| {
            let fetched = newest.iter().find(|newest| newest.url == set.url);
            fetched
                .filter(|fetched| fetched.keys.is_some())
                .cloned()
                .unwrap_or(set)
        });
        Self::enrolled(enrolled).into_iter().chain(kept).collect()
    }

    /// The enrolled keys of a domain as a key set; `None` if there are none.
    fn enrolled(keys: &[enrolled_key::Model]) -> Option<Self> {
        let keys: Vec<&RawValue> = keys
            .iter()
            .filter_map(|row| serde_json::from_str(&row.jwk).ok())
            .collect();
        (!keys.is_empty()).then(|| Self {
            url: ENROLLED.into(),
            keys: serde_json::to_string(&JwkSetJson { keys }).ok(),
            error: None,
            foreign: false,
        })
    }
}

impl From<&FetchedKeySet> for KeptKeySet {
    fn from(fetched: &FetchedKeySet) -> Self {
        let read = match &fetched.answer {
            Ok(bytes) => match KeySet::from_jwks(bytes) {
                Ok(_) => Ok(String::from_utf8_lossy(bytes).into_owned()),
                Err(error) => Err(error.to_string()),
            },
            Err(detail) => Err(detail.clone()),
        };
        Self {
            url: fetched.url.clone(),
            foreign: fetched.foreign,
            error: read.as_ref().err().cloned(),
            keys: read.ok(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Signatures {
    entries: Vec<SignatureEntry>,
    key_sets: Vec<KeptKeySet>,
}

impl Signatures {
    pub fn judge(parsed: &Parsed, bytes: &[u8], key_sets: Vec<KeptKeySet>) -> Self {
        let found = key_sets.iter().map(KeptKeySet::read);
        let keys = found.fold(KeySet::default(), KeySet::union);
        Self {
            entries: verify(parsed, bytes, &keys),
            key_sets,
        }
    }

    /// Whether a key set has other keys than the stored one of the same URL, so that signatures must be verified again.
    pub fn renews(&self, kept: &[KeptKeySet]) -> bool {
        self.key_sets.iter().any(|set| {
            let before = kept.iter().find(|before| before.url == set.url);
            set.keys.is_some() && before.is_some_and(|before| before.keys != set.keys)
        })
    }

    /// The signing summary: the same for a card that is signed again by the same keys.
    pub fn summary(&self) -> String {
        verified_summary(&self.entries)
    }

    /// The state of all of them together, without the binding of keys: a proof of the domain may change without the
    /// card, and is applied where the state is shown.
    pub fn state(&self) -> SignatureState {
        verified_state(&self.entries, |_| false).into()
    }

    /// The thumbprints of the keys with which they verify, each once, separated by spaces.
    pub fn thumbprints(&self) -> String {
        let valid = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.verdict {
                VerificationResult::Valid { thumbprint, .. } => Some(thumbprint.as_str()),
                _ => None,
            });
        let each: BTreeSet<&str> = valid.collect();
        each.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// The result of each signature, in its stored form.
    pub fn verdicts(&self) -> String {
        let verdicts: Vec<KeptVerdict> = self
            .entries
            .iter()
            .map(|entry| KeptVerdict::of(entry, &self.key_sets))
            .collect();
        serde_json::to_string(&verdicts).unwrap_or_else(|_| "[]".into())
    }

    /// The key sets in their stored form.
    pub fn kept(&self) -> String {
        serde_json::to_string(&self.key_sets).unwrap_or_else(|_| "[]".into())
    }

    /// Whether every signature that names a key set verifies by an enrolled key, though the set could not be fetched.
    fn verify_without(&self, set: &KeptKeySet) -> bool {
        let named = self
            .entries
            .iter()
            .filter(|entry| entry.jku.as_ref() == Some(&set.url));
        let mut verify =
            named.map(|entry| matches!(entry.verdict, VerificationResult::Valid { .. }));
        // One that no signature names has not verified either.
        verify.next() == Some(true) && verify.all(|valid| valid)
    }

    /// The URLs of key sets that were not fetched, because they may hold no key of the card.
    pub fn foreign(&self) -> Vec<&str> {
        let foreign = self.key_sets.iter();
        let foreign = foreign.filter(|set| set.foreign && !self.verify_without(set));
        foreign.map(|set| set.url.as_str()).collect()
    }
}
