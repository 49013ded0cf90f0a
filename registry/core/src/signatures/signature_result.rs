//! The results of a card's signatures: as stored with the version, and as callers see them.

use std::collections::{HashMap, HashSet};

use a2a_card::{SignatureResult, VerificationResult, verified_signature_state};
use a2a_registry_api::{SignatureEntryView, SignatureVerdict};
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::entity::{domain, enrolled_key, version};
use a2a_registry_store::versions::VersionSummary;
use a2a_registry_store::{Executor, StoreError, StoredEnum, ownership};
use serde::{Deserialize, Serialize};

use crate::signatures::StoredKeySet;

/// Maximum number of characters of a key's name in a sentence.
const MAX_NAME_CHARS: usize = 100;
/// Maximum number of key names in a sentence.
const MAX_NAMES: usize = 5;

/// The result of one signature, as it is stored with the version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSignatureResult {
    kid: Option<String>,
    alg: Option<String>,
    /// The state without regard to proofs of the domain and enrolled keys: never `valid`.
    verdict: SignatureState,
    /// The RFC 7638 thumbprint of the key that verifies the signature, or that the signature names.
    key: Option<String>,
    /// The URL of the key set that has this key.
    from: Option<String>,
    reason: String,
}

impl StoredSignatureResult {
    pub fn from_entry(entry: &SignatureResult, key_sets: &[StoredKeySet]) -> Self {
        let state = verified_signature_state(std::slice::from_ref(entry), |_| false);
        let key = match &entry.result {
            VerificationResult::Valid { thumbprint, .. } => {
                let has = |set: &&StoredKeySet| {
                    set.parse_keys().thumbprints().any(|one| one == thumbprint)
                };
                Some((thumbprint.clone(), key_sets.iter().find(has)))
            }
            VerificationResult::KeyUnknown => None,
            _ => entry.kid.as_deref().and_then(|kid| {
                key_sets.iter().find_map(|set| {
                    let thumbprint = set.parse_keys().thumbprint_of(kid)?.to_owned();
                    Some((thumbprint, Some(set)))
                })
            }),
        };
        let (key, from) = key.unzip();
        Self {
            kid: entry.kid.clone(),
            alg: entry.alg.clone(),
            verdict: state.into(),
            key,
            from: from.flatten().map(|set| set.url.clone()),
            reason: signature_reason(entry, key_sets),
        }
    }

    fn view(self, binding: &DomainKeyBinding, row: &version::Model) -> SignatureEntryView {
        let binds = self.verdict == SignatureState::Untrusted;
        let Some(key) = self.key.as_deref().filter(|_| binds) else {
            return SignatureEntryView {
                kid: self.kid,
                alg: self.alg,
                key_thumbprint: self.key,
                key_from: self.from,
                verdict: self.verdict.into(),
                reason: self.reason,
            };
        };
        let (verdict, from, why) = if binding.enrolled_thumbprints.contains(key) {
            let why = "the key is enrolled for the domain";
            (
                SignatureState::Valid,
                Some(crate::signatures::ENROLLED_KEYS_URL.to_owned()),
                why,
            )
        } else if binding.has_proof_covering(&row.standing) {
            let why = "the owner of the domain has proved it";
            (SignatureState::Valid, self.from, why)
        } else {
            let why = "the key is not enrolled, and no owner's proof of the domain covers the card";
            (SignatureState::Untrusted, self.from, why)
        };
        SignatureEntryView {
            reason: format!("{}; {why}.", self.reason.trim_end_matches('.')),
            kid: self.kid,
            alg: self.alg,
            key_thumbprint: self.key,
            key_from: from,
            verdict: verdict.into(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct StoredSignatures<'a> {
    /// The state without a proof of the domain and enrolled keys.
    signature: &'a StoredEnum<SignatureState>,
    /// The keys that verify the signatures, separated by spaces.
    thumbprints: &'a str,
    coverage_level: &'a StoredEnum<CoverageLevel>,
}

impl<'a> From<&'a version::Model> for StoredSignatures<'a> {
    fn from(row: &'a version::Model) -> Self {
        Self {
            signature: &row.signature,
            thumbprints: &row.thumbprints,
            coverage_level: &row.standing,
        }
    }
}

impl<'a> From<&'a VersionSummary> for StoredSignatures<'a> {
    fn from(key: &'a VersionSummary) -> Self {
        Self {
            signature: &key.signature,
            thumbprints: &key.thumbprints,
            coverage_level: &key.standing,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct DomainKeyBinding {
    /// Whether the domain has an owner's proof.
    pub has_owner_proof: bool,
    /// The thumbprints of the keys that are enrolled for the domain.
    pub enrolled_thumbprints: HashSet<String>,
}

impl DomainKeyBinding {
    /// The bindings of these domains, by their keys.
    pub async fn load_for_domains<'a>(
        db: &impl Executor,
        rows: impl IntoIterator<Item = &'a domain::Model>,
    ) -> Result<HashMap<i64, Self>, StoreError> {
        let rows: Vec<&domain::Model> = rows.into_iter().collect();
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let mut enrolled: HashMap<i64, Vec<enrolled_key::Model>> = HashMap::new();
        for key in ownership::enrolled_keys_by_domain(db, &ids).await? {
            enrolled.entry(key.domain_id).or_default().push(key);
        }
        let binding = |row: &&domain::Model| {
            let keys = enrolled.get(&row.id).map_or(&[][..], Vec::as_slice);
            (row.id, Self::for_domain(row, keys))
        };
        Ok(rows.iter().map(binding).collect())
    }

    /// The bindings of a domain with these enrolled keys.
    pub fn for_domain(row: &domain::Model, enrolled: &[enrolled_key::Model]) -> Self {
        let thumbprints = enrolled.iter().map(|key| key.thumbprint.clone());
        Self {
            has_owner_proof: row.is_domain_proved(),
            enrolled_thumbprints: thumbprints.collect(),
        }
    }

    /// Whether an owner's proof of the domain covers a version with this coverage.
    pub fn has_proof_covering(&self, coverage_level: &StoredEnum<CoverageLevel>) -> bool {
        self.has_owner_proof && *coverage_level == CoverageLevel::Covered
    }

    /// Whether one of these keys, separated by spaces, is enrolled.
    pub fn has_enrolled_key(&self, thumbprints: &str) -> bool {
        thumbprints
            .split_whitespace()
            .any(|key| self.enrolled_thumbprints.contains(key))
    }

    /// The state of a version's signatures with these bindings.
    pub fn signature_state(&self, stored: StoredSignatures<'_>) -> SignatureState {
        // A state that only a later build knows counts as if the key could not be fetched.
        let state = stored
            .signature
            .known_value()
            .unwrap_or(SignatureState::Unknown);
        let bound = self.has_proof_covering(stored.coverage_level)
            || self.has_enrolled_key(stored.thumbprints);
        match state {
            SignatureState::Untrusted if bound => SignatureState::Valid,
            state => state,
        }
    }

    /// The state of a version's signatures, with its reason; `None` stands for a version that is no longer stored.
    pub fn signature_verdict(&self, row: Option<&version::Model>) -> SignatureVerdict {
        let Some(row) = row else {
            return SignatureVerdict {
                state: SignatureState::Unknown.into(),
                reason: "This version of the card is no longer kept.".to_owned(),
                signatures: Vec::new(),
            };
        };
        let state = self.signature_state(row.into());
        let stored: Vec<StoredSignatureResult> =
            serde_json::from_str(&row.verdicts).unwrap_or_default();
        let signatures: Vec<SignatureEntryView> =
            stored.into_iter().map(|one| one.view(self, row)).collect();
        let decisive = signatures.iter().find(|one| one.verdict == state);
        let reason = match decisive {
            Some(decisive) => decisive.reason.clone(),
            None if state == SignatureState::Unsigned => "The card is not signed.".to_owned(),
            None => "The reason will be known when this version has been verified again, shortly."
                .to_owned(),
        };
        SignatureVerdict {
            state: state.into(),
            reason,
            signatures,
        }
    }
}

/// The reason for a signature's state, by its key alone.
fn signature_reason(entry: &SignatureResult, key_sets: &[StoredKeySet]) -> String {
    let name = entry.kid.as_deref().map(shorten_key_name);
    match &entry.result {
        VerificationResult::Valid { .. } => match name {
            Some(name) => format!("The signature verifies with the key `{name}`."),
            None => "The signature verifies.".to_owned(),
        },
        VerificationResult::Invalid { reason }
        | VerificationResult::Malformed { reason }
        | VerificationResult::Refused { reason } => reason.explanation().to_owned(),
        VerificationResult::KeyUnknown => format!("{}.", missing_key_reason(entry, key_sets)),
    }
}

/// Explains why no key verifies a signature.
pub fn missing_key_reason(entry: &SignatureResult, key_sets: &[StoredKeySet]) -> String {
    let name = entry.kid.as_deref().map(shorten_key_name);
    let named = name.map_or_else(
        || "a matching key".to_owned(),
        |name| format!("a key `{name}`"),
    );
    let enrolled = key_sets
        .iter()
        .any(|set| set.url == crate::signatures::ENROLLED_KEYS_URL);
    let not_enrolled = if enrolled {
        "none of the keys enrolled for the domain verifies it"
    } else {
        "the domain has no enrolled key"
    };
    let Some(jku) = &entry.jku else {
        return format!("The signature names no key set (`jku`), and {not_enrolled}");
    };
    let Some(set) = key_sets.iter().find(|set| set.url == *jku) else {
        return format!("The key set {jku} was not fetched: a card may name at most two");
    };
    if let Some(error) = &set.error {
        return format!("There is no key from {jku}: {error}; {not_enrolled}");
    }
    let keys = set.parse_keys();
    let names: Vec<String> = keys.kids().take(MAX_NAMES).map(shorten_key_name).collect();
    let more = keys.kids().nth(MAX_NAMES).map_or("", |_| ", …");
    let has = match names.as_slice() {
        [] => "no usable key with a name".to_owned(),
        names => format!("{}{more}", names.join(", ")),
    };
    format!("The key set {jku} does not have {named} (it has {has}), and {not_enrolled}")
}

pub fn shorten_key_name(name: &str) -> String {
    let mut short: String = name.chars().take(MAX_NAME_CHARS).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}
