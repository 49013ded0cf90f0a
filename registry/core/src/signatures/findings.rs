//! Findings on the signatures of a card and the keys that they name.

use a2a_card::{
    Finding, Severity, SignatureFault, SignatureResult, SignatureState, VerificationResult,
    uncovered_findings, verified_signature_state,
};

use crate::signatures::{StoredKeySet, VerifiedSignatures, signature_result};

impl VerifiedSignatures {
    /// Returns the findings on these signatures. An invalid signature and a key set outside the card's domain are
    /// errors, so that no rule approves the card without a person. A key set that cannot be fetched is not an error.
    pub fn findings(&self, bytes: &[u8]) -> Vec<Finding> {
        let state = verified_signature_state(&self.entries, |_| false);
        let mut findings = uncovered_findings(bytes, &self.entries);
        let entries = self.entries.iter().enumerate();
        findings
            .extend(entries.filter_map(|(place, entry)| self.entry_finding(place, entry, state)));
        findings.extend(
            self.key_sets
                .iter()
                .filter_map(|set| self.key_set_finding(set)),
        );
        findings
    }

    fn entry_finding(
        &self,
        place: usize,
        entry: &SignatureResult,
        state: SignatureState,
    ) -> Option<Finding> {
        let (rule, severity, hint) = match &entry.result {
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
                let named = |set: &&StoredKeySet| Some(&set.url) == entry.jku.as_ref();
                // A key set that cannot be fetched or is outside the domain has its own finding.
                self.key_sets
                    .iter()
                    .find(named)
                    .filter(|set| set.error.is_none())?;
                let hint = signature_result::missing_key_reason(entry, &self.key_sets);
                ("signature.unknown_kid", Severity::Warning, hint)
            }
        };
        Some(Finding {
            rule: rule.into(),
            severity,
            pointer: format!("/signatures/{place}"),
            found: format!(
                "kid {}, alg {}",
                signature_result::shorten_key_name(entry.kid.as_deref().unwrap_or("missing")),
                signature_result::shorten_key_name(entry.alg.as_deref().unwrap_or("missing"))
            ),
            wanted: "a signature over this card by a key of its key set, or by an enrolled one"
                .into(),
            hint,
            section: "1.0 §8.4.3".into(),
        })
    }

    /// Returns the finding on a key set that could not be fetched; `None` if its signatures verify anyway, for example
    /// with an enrolled key.
    fn key_set_finding(&self, set: &StoredKeySet) -> Option<Finding> {
        let hint = set.error.clone()?;
        if self.verifies_without_key_set(set) {
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
