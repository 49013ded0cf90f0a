//! Which policies match a resource, and what follows from it for somebody who asks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::policy::{Effect, Mode, Policy};
use crate::principal::Principal;
use crate::set::PolicySet;

/// The policies of a set that match a resource, by their places in the set, apart from those that are off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matches {
    /// Policies whose conditions hold.
    pub matching: BTreeSet<u16>,
    /// Policies whose conditions could not be evaluated: each counts as a forbid.
    pub failed: BTreeSet<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    /// If it is allowed the permits, otherwise the forbids; none if nothing permits.
    pub policies: Vec<String>,
}

impl Matches {
    /// Takes away the policies at these places, as waivers do.
    pub fn without(&mut self, places: &BTreeSet<u16>) {
        self.matching.retain(|place| !places.contains(place));
        self.failed.retain(|place| !places.contains(place));
    }
}

impl PolicySet {
    pub fn places_of_forbids(&self, ids: &[&str]) -> BTreeSet<u16> {
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

    /// What a principal may do with a resource that these policies match. `waived` are forbids that do not count.
    pub fn verdict(
        &self,
        action: Action,
        principal: &Principal,
        matches: &Matches,
        waived: &BTreeSet<u16>,
    ) -> Verdict {
        let (mut permits, mut forbids) = (Vec::new(), Vec::new());
        for (place, policy) in self.about(action) {
            if policy.mode != Mode::Enforce || !policy.scope.holds(principal) {
                continue;
            }
            let name = || policy.id.clone();
            if policy.effect == Effect::Forbid && waived.contains(&place) {
                continue;
            }
            if matches.failed.contains(&place) {
                forbids.push(name());
            } else if matches.matching.contains(&place) {
                match policy.effect {
                    Effect::Permit => permits.push(name()),
                    Effect::Forbid => forbids.push(name()),
                }
            }
        }
        let allowed = forbids.is_empty() && !permits.is_empty();
        Verdict {
            allowed,
            policies: if allowed { permits } else { forbids },
        }
    }

    /// The places of policies on a dry run each of which would change a verdict by itself.
    pub fn would_change(
        &self,
        action: Action,
        principal: &Principal,
        matches: &Matches,
        waived: &BTreeSet<u16>,
        verdict: &Verdict,
    ) -> Vec<u16> {
        let unpermitted = !verdict.allowed && verdict.policies.is_empty();
        let tried = self
            .about(action)
            .filter(|(_, policy)| policy.mode == Mode::DryRun && policy.scope.holds(principal));
        let changes = |(place, policy): &(u16, &Policy)| {
            let failed = matches.failed.contains(place);
            let matching = matches.matching.contains(place);
            match policy.effect {
                Effect::Permit if !failed => matching && unpermitted,
                Effect::Forbid if waived.contains(place) => false,
                _ => (failed || matching) && verdict.allowed,
            }
        };
        tried.filter(changes).map(|(place, _)| place).collect()
    }
}
