//! The policies of a set that match a resource.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The policies of a set that match a resource, by their index in the set, without those that are off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyMatches {
    /// Policies whose conditions hold.
    pub matching: BTreeSet<u16>,
    /// Policies whose conditions could not be evaluated: each counts as a forbid.
    pub failed: BTreeSet<u16>,
}

impl PolicyMatches {
    pub(crate) fn extend(&mut self, other: &Self) {
        self.matching.extend(&other.matching);
        self.failed.extend(&other.failed);
    }

    /// Removes the waived policies, given by index.
    pub fn remove_waived(&mut self, waived: &BTreeSet<u16>) {
        self.matching.retain(|place| !waived.contains(place));
        self.failed.retain(|place| !waived.contains(place));
    }
}
