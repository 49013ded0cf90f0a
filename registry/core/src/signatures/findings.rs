//! Findings on the signatures of a card and the keys they name.

use a2a_card::{
    Finding, Severity, SignatureEntry, SignatureFault, SignatureState, VerificationResult,
    uncovered_findings, verified_state,
};

use crate::signatures::{KeptKeySet, Signatures, verdict};

impl Signatures {
    /// The findings on these signatures. An invalid signature and a key set outside the card's domain are errors, so
    /// that no rule approves the card without a person; a key set that cannot be fetched is not.
    pub fn findings(&self, bytes: &[u8]) -> Vec<Finding> {
        let state = verified_state(&self.entries, |_| false);
        let mut findings = uncovered_findings(bytes, &self.entries);
        let entries = self.entries.iter().enumerate();
        findings.extend(entries.filter_map(|(place, entry)| self.of_entry(place, entry, state)));
        findings.extend(self.key_sets.iter().filter_map(|set| self.of_set(set)));
        findings
    }

    fn of_entry(
        &self,
        place: usize,
        entry: &SignatureEntry,
        state: SignatureState,
    ) -> Option<Finding> {
        let (rule, severity, hint) = match &entry.verdict {
            VerificationResult::Valid { .. }
            | VerificationResult::Malformed {
                reason: SignatureFault::NotJws,
            } => return None,
            VerificationResult::Invalid { reason }
            | VerificationResult::Malformed { reason }
            | VerificationResult::Refused { reason } => {
                // Another signature that verifies covers the whole card as well.
                let severity = match state {
                    SignatureState::Invalid => Severity::Error,
                    _ => Severity::Warning,
                };
                ("signature.invalid", severity, reason.explanation().into())
            }
            VerificationResult::KeyUnknown => {
                let named = |set: &&KeptKeySet| Some(&set.url) == entry.jku.as_ref();
                // A set that cannot be fetched or is outside the domain has a finding of its own.
                self.key_sets
                    .iter()
                    .find(named)
                    .filter(|set| set.error.is_none())?;
                let hint = verdict::missing_key(entry, &self.key_sets);
                ("signature.unknown_kid", Severity::Warning, hint)
            }
        };
        Some(Finding {
            rule: rule.into(),
            severity,
            pointer: format!("/signatures/{place}"),
            found: format!(
                "kid {}, alg {}",
                verdict::shortened(entry.kid.as_deref().unwrap_or("missing")),
                verdict::shortened(entry.alg.as_deref().unwrap_or("missing"))
            ),
            wanted: "a signature over this card by a key of its key set, or by an enrolled one"
                .into(),
            hint,
            section: "1.0 §8.4.3".into(),
        })
    }

    /// The finding on a key set that could not be fetched; none if its signatures verify all the same, as with an
    /// enrolled key.
    fn of_set(&self, set: &KeptKeySet) -> Option<Finding> {
        let hint = set.error.clone()?;
        if self.verify_without(set) {
            return None;
        }
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
            hint,
            section: "1.0 §8.4.2".into(),
        })
    }
}
