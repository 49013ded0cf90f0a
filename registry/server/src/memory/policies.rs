//! The policy sets of this process: the one in force, and the one that agents are evaluated under meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use a2a_registry_policy::PolicySet;
use arc_swap::ArcSwap;

/// The policy sets of this process.
#[derive(Debug)]
pub struct Policies {
    sets: ArcSwap<Sets>,
    /// Whether another set may have been made.
    newer: AtomicBool,
}

#[derive(Debug, Clone)]
struct Sets {
    in_force: Arc<PolicySet>,
    pending: Option<Arc<PolicySet>>,
}

impl Policies {
    /// With this set in force; `check` where a newer one may have been made, or agents were not evaluated under it.
    pub(crate) fn new(in_force: PolicySet, check: bool) -> Self {
        let sets = Sets {
            in_force: Arc::new(in_force),
            pending: None,
        };
        Self {
            sets: ArcSwap::from_pointee(sets),
            newer: AtomicBool::new(check),
        }
    }

    /// The set that decides.
    pub(crate) fn in_force(&self) -> Arc<PolicySet> {
        Arc::clone(&self.sets.load().in_force)
    }

    /// The sets that agents are evaluated under: the one in force, and the one that follows it.
    pub(crate) fn evaluated(&self) -> impl Iterator<Item = Arc<PolicySet>> {
        let sets = self.sets.load_full();
        let pending = sets.pending.clone();
        std::iter::once(Arc::clone(&sets.in_force)).chain(pending)
    }

    /// Changes with the sets that agents are evaluated under.
    pub(crate) fn stamp(&self) -> (u64, Option<u64>) {
        let sets = self.sets.load();
        let pending = sets.pending.as_ref().map(|pending| pending.number());
        (sets.in_force.number(), pending)
    }

    /// Agents are evaluated under this set too from now on.
    pub(crate) fn prepare(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(Sets {
            in_force: self.in_force(),
            pending: Some(next),
        }));
    }

    /// This set decides from now on.
    pub(crate) fn enforce(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(Sets {
            in_force: next,
            pending: None,
        }));
    }

    /// A newer set may have been made.
    pub(crate) fn note_newer(&self) {
        self.newer.store(true, Ordering::Release);
    }

    /// Whether a newer set may have been made since this was last asked.
    pub(crate) fn take_newer(&self) -> bool {
        self.newer.swap(false, Ordering::AcqRel)
    }
}
