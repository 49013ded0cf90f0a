//! What of a set depends on the time: the dates of its policies, and the ages of agents that they compare.

use a2a_registry_domain::timestamp::Timestamp;

use crate::policy::Policy;
use crate::policy_error::PolicyError;
use crate::policy_set::PolicySet;

impl PolicySet {
    pub fn has_dates(&self) -> bool {
        self.policies()
            .iter()
            .any(|policy| policy.dates.is_bounded())
    }

    /// The policies that begin or end to act after one moment and by another, each in words. A set that was compiled
    /// as of the first one decides differently from the other one on.
    pub fn date_changes(&self, after: Timestamp, by: Timestamp) -> Vec<String> {
        let is_between =
            |moment: Option<Timestamp>| moment.is_some_and(|moment| after < moment && moment <= by);
        let policies = self.policies().iter();
        policies
            .flat_map(|policy| {
                let begins = is_between(policy.dates.from);
                let ends = is_between(policy.dates.until);
                let begins = begins.then(|| format!("`{}` begins", policy.id));
                begins
                    .into_iter()
                    .chain(ends.then(|| format!("`{}` ends", policy.id)))
            })
            .collect()
    }

    /// The next moment after this one at which a policy begins or ends to act.
    pub fn next_date(&self, after: Timestamp) -> Option<Timestamp> {
        let policies = self.policies().iter();
        let dates = policies.flat_map(|policy| [policy.dates.from, policy.dates.until]);
        dates.flatten().filter(|moment| *moment > after).min()
    }

    /// The errors of policies that only a new set must not have, for example unknown annotations.
    pub fn new_policy_errors(&self) -> Vec<PolicyError> {
        let custom = self.policies().iter().filter(|policy| !policy.is_built_in);
        custom.flat_map(Policy::annotation_errors).collect()
    }
}
