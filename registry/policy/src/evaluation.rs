//! Policy evaluation: from the policies that match a resource to the decision for a principal.

use std::collections::BTreeSet;

use crate::action::Action;
use crate::policy::{Effect, Policy, PolicyMode};
use crate::policy_matches::PolicyMatches;
use crate::policy_set::PolicySet;
use crate::principal::Principal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationDecision {
    pub allowed: bool,
    /// Ids of the permits if allowed, otherwise of the forbids; empty if no policy permits.
    pub policies: Vec<String>,
}

impl PolicySet {
    pub fn forbid_indices(&self, ids: &[&str]) -> BTreeSet<u16> {
        if ids.is_empty() {
            return BTreeSet::new();
        }
        let placed = (0..).zip(self.policies());
        placed
            .filter(|(_, policy)| policy.effect == Effect::Forbid)
            .filter(|(_, policy)| ids.contains(&policy.id.as_str()))
            .map(|(place, _)| place)
            .collect()
    }

    /// Decides whether a principal may do this with a resource that these policies match. `waived` are forbids that do
    /// not apply.
    pub fn decide(
        &self,
        action: Action,
        principal: &Principal,
        matches: &PolicyMatches,
        waived: &BTreeSet<u16>,
    ) -> AuthorizationDecision {
        let (mut permits, mut forbids) = (Vec::new(), Vec::new());
        for (index, policy) in self.policies_for_action(action) {
            if policy.mode != PolicyMode::Enforce || !policy.scope.contains(principal) {
                continue;
            }
            let policy_id = || policy.id.clone();
            if policy.effect == Effect::Forbid && waived.contains(&index) {
                continue;
            }
            if matches.failed.contains(&index) {
                forbids.push(policy_id());
            } else if matches.matching.contains(&index) {
                match policy.effect {
                    Effect::Permit => permits.push(policy_id()),
                    Effect::Forbid => forbids.push(policy_id()),
                }
            }
        }
        let allowed = forbids.is_empty() && !permits.is_empty();
        AuthorizationDecision {
            allowed,
            policies: if allowed { permits } else { forbids },
        }
    }

    /// The indices of dry-run policies that would each change the decision by themselves.
    pub fn decision_changing_dry_runs(
        &self,
        action: Action,
        principal: &Principal,
        matches: &PolicyMatches,
        waived: &BTreeSet<u16>,
        decision: &AuthorizationDecision,
    ) -> Vec<u16> {
        let has_no_permit = !decision.allowed && decision.policies.is_empty();
        let dry_runs = self.policies_for_action(action).filter(|(_, policy)| {
            policy.mode == PolicyMode::DryRun && policy.scope.contains(principal)
        });
        let would_change = |(index, policy): &(u16, &Policy)| {
            let failed = matches.failed.contains(index);
            let matching = matches.matching.contains(index);
            match policy.effect {
                Effect::Permit if !failed => matching && has_no_permit,
                Effect::Forbid if waived.contains(index) => false,
                _ => (failed || matching) && decision.allowed,
            }
        };
        dry_runs
            .filter(would_change)
            .map(|(place, _)| place)
            .collect()
    }
}
