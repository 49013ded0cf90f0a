//! What the signatures of a card are worth with the keys that were found for them.

mod verdict;

use std::collections::BTreeSet;

use a2a_card::{
    Finding, KeySet, Parsed, Severity, SignatureEntry, Verdict, uncovered_findings, verified_state,
    verified_summary, verify,
};
use a2a_crawler::FetchedKeySet;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::store::entity::enrolled_key;
use verdict::KeptVerdict;

pub(super) use verdict::KeyBinding;

/// What stands in the place of a URL where keys were named to the registry itself.
const ENROLLED: &str = "enrolled";

/// A JWK Set as it is written.
#[derive(Serialize)]
struct Enrolled<'a> {
    keys: Vec<&'a RawValue>,
}

/// A key set that a card's signatures name, as it was found when the card was fetched. It is kept with the
/// version, so that its signatures can be judged again from what was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptKeySet {
    /// Where it was looked for.
    url: String,
    /// The set as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Whether it lies where no key of the card may lie, so that nobody looked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    foreign: bool,
}

impl KeptKeySet {
    /// Its keys; none where there is no set.
    fn read(&self) -> KeySet {
        let set = self.keys.as_deref().unwrap_or_default();
        KeySet::from_jwks(set.as_bytes()).unwrap_or_default()
    }

    /// The keys that a domain's owner or the operator has named; nothing where there are none.
    pub(super) fn enrolled(keys: &[enrolled_key::Model]) -> Option<Self> {
        let keys: Vec<&RawValue> = keys
            .iter()
            .filter_map(|row| serde_json::from_str(&row.jwk).ok())
            .collect();
        (!keys.is_empty()).then(|| Self {
            url: ENROLLED.into(),
            keys: serde_json::to_string(&Enrolled { keys }).ok(),
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

/// The signatures of a card, judged.
#[derive(Debug, Clone)]
pub(super) struct Signatures {
    entries: Vec<SignatureEntry>,
    key_sets: Vec<KeptKeySet>,
}

impl Signatures {
    /// Judges them with the keys that were found.
    pub(super) fn judge(parsed: &Parsed, bytes: &[u8], key_sets: Vec<KeptKeySet>) -> Self {
        let found = key_sets.iter().map(KeptKeySet::read);
        let keys = found.fold(KeySet::default(), KeySet::union);
        Self {
            entries: verify(parsed, bytes, &keys),
            key_sets,
        }
    }

    /// Judges them again with the keys that were kept.
    pub(super) fn judge_again(parsed: &Parsed, bytes: &[u8], kept: &str) -> Self {
        Self::judge(
            parsed,
            bytes,
            serde_json::from_str(kept).unwrap_or_default(),
        )
    }

    /// What tells one way of signing from another, however often the card is signed anew.
    pub(super) fn summary(&self) -> String {
        verified_summary(&self.entries)
    }

    /// The state of all of them, a key being bound to nothing: whether its domain was proved may change
    /// without the card, and is looked at where the state is shown.
    pub(super) fn state(&self) -> &'static str {
        verified_state(&self.entries, |_| false).as_str()
    }

    /// The thumbprints of the keys with which they verify, each once, with spaces between.
    pub(super) fn thumbprints(&self) -> String {
        let valid = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.verdict {
                Verdict::Valid { thumbprint, .. } => Some(thumbprint.as_str()),
                _ => None,
            });
        let each: BTreeSet<&str> = valid.collect();
        each.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// The verdict on each signature, as it is kept.
    pub(super) fn verdicts(&self) -> String {
        let verdicts: Vec<KeptVerdict> = self
            .entries
            .iter()
            .map(|entry| KeptVerdict::of(entry, &self.key_sets))
            .collect();
        serde_json::to_string(&verdicts).unwrap_or_else(|_| "[]".into())
    }

    /// The key sets as they are kept.
    pub(super) fn kept(&self) -> String {
        serde_json::to_string(&self.key_sets).unwrap_or_else(|_| "[]".into())
    }

    /// Whether every key set that was looked for was found.
    pub(super) fn keys_found(&self) -> bool {
        self.key_sets.iter().all(|set| set.error.is_none())
    }

    /// Where key sets are named that nobody looked for, since no key of the card may lie there.
    pub(super) fn foreign(&self) -> Vec<&str> {
        let foreign = self.key_sets.iter().filter(|set| set.foreign);
        foreign.map(|set| set.url.as_str()).collect()
    }

    /// What is to be said about them. Keys of another house are an error, so that no rule approves the card
    /// without a person; keys that are merely away are not.
    pub(super) fn findings(&self, bytes: &[u8]) -> Vec<Finding> {
        let mut findings = uncovered_findings(bytes, &self.entries);
        findings.extend(self.key_sets.iter().filter_map(|set| {
            let (rule, severity) = match set.foreign {
                true => ("signature.foreign_keys", Severity::Error),
                false => ("signature.keys", Severity::Warning),
            };
            Some(Finding {
                rule: rule.into(),
                severity,
                pointer: "/signatures".into(),
                found: set.url.clone(),
                wanted: "a key set at `jku`, on the card's own origin".into(),
                hint: set.error.clone()?,
                section: "1.0 §8.4.2".into(),
            })
        }));
        findings
    }
}
