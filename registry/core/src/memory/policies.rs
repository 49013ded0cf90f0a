//! The policy sets of this process: the one in force, and the one that agents are evaluated under meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use a2a_registry_policy::{Action, AgentFacts, Matches, PolicySet};
use arc_swap::ArcSwap;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use crate::policy_sets::CompiledSets;

#[derive(Debug)]
pub struct Policies {
    sets: ArcSwap<Sets>,
    /// What was compiled last.
    pub compiled: CompiledSets,
    /// The newest set that this process knows, by which it admits and registers.
    admitting: ArcSwap<Admitting>,
    /// Agents that may have to be put on hold, or released.
    unsettled: Mutex<Unsettled>,
    /// Somebody may have to be put on hold, or released.
    pub settle: Notify,
    /// Held while a preview is made, which reads every agent.
    pub previewing: Semaphore,
    /// Whether another set may have been made.
    newer: AtomicBool,
    /// Whether the newest set could not be put in force when that was last tried.
    failed: AtomicBool,
}

/// A set by which this process admits, with what its shipped policies match.
#[derive(Debug)]
struct Admitting {
    set: Arc<PolicySet>,
    shipped: ShippedMatches,
}

impl Admitting {
    fn new(set: Arc<PolicySet>) -> Self {
        Self {
            set,
            shipped: ShippedMatches::default(),
        }
    }
}

/// Agents that may have to be put on hold, or released.
#[derive(Debug)]
pub enum Unsettled {
    All,
    Some(BTreeSet<Uuid>),
}

impl Default for Unsettled {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

/// Agents that are remembered by name; of more all are looked at.
const MAX_UNSETTLED: usize = 10_000;

#[derive(Debug, Clone)]
struct Sets {
    in_force: Arc<PolicySet>,
    pending: Option<Arc<PolicySet>>,
}

impl Policies {
    /// With this set in force; `check` where a newer one may have been made, or agents were not evaluated under it.
    pub fn new(in_force: PolicySet, compiled: CompiledSets, check: bool) -> Self {
        let in_force = Arc::new(in_force);
        let sets = Sets {
            in_force: Arc::clone(&in_force),
            pending: None,
        };
        Self {
            sets: ArcSwap::from_pointee(sets),
            compiled,
            admitting: ArcSwap::from_pointee(Admitting::new(in_force)),
            unsettled: Mutex::default(),
            settle: Notify::new(),
            previewing: Semaphore::new(1),
            newer: AtomicBool::new(check),
            failed: AtomicBool::new(false),
        }
    }

    /// The newest set that this process knows.
    pub fn admitting(&self) -> Arc<PolicySet> {
        Arc::clone(&self.admitting.load().set)
    }

    /// The shipped policies of a set that match a card with these facts, where nobody has written one about admitting.
    pub fn shipped_matches(&self, set: &Arc<PolicySet>, facts: &AgentFacts) -> Matches {
        let admitting = self.admitting.load();
        match Arc::ptr_eq(&admitting.set, set) {
            true => admitting.shipped.evaluate(set, facts),
            // A newer one has come since.
            false => set.matches(Action::Admit, facts),
        }
    }

    /// Cards are admitted by this set from now on.
    pub fn admit_by(&self, newest: Arc<PolicySet>) {
        self.admitting.store(Arc::new(Admitting::new(newest)));
    }

    /// These agents have changed, so policies may say another thing about admitting them.
    pub fn note_changed(&self, agents: &[Uuid]) {
        self.look_again(agents);
        self.settle.notify_one();
    }

    /// These agents are looked at in the next round, which comes after its pause: whatever made them fail is hardly mended
    /// already.
    pub fn look_again(&self, agents: &[Uuid]) {
        if let Ok(mut unsettled) = self.unsettled.lock() {
            match &mut *unsettled {
                Unsettled::All => {}
                Unsettled::Some(some) if some.len() + agents.len() > MAX_UNSETTLED => {
                    *unsettled = Unsettled::All;
                }
                Unsettled::Some(some) => some.extend(agents),
            }
        }
    }

    /// Policies may say another thing about admitting any agent.
    pub fn note_all_changed(&self) {
        self.look_at_all_again();
        self.settle.notify_one();
    }

    /// Every agent is looked at in the next round, which comes after its pause.
    pub fn look_at_all_again(&self) {
        if let Ok(mut unsettled) = self.unsettled.lock() {
            *unsettled = Unsettled::All;
        }
    }

    /// Whether the newest set could be put in force.
    pub fn note_outcome(&self, failed: bool) {
        self.failed.store(failed, Ordering::Release);
    }

    /// Which set decides here, as a sentence.
    ///
    /// # Errors
    /// A sentence where the newest one could not be put in force.
    pub fn standing(&self) -> Result<String, String> {
        let number = self.in_force().number();
        match self.failed.load(Ordering::Acquire) {
            false => Ok(format!("set {number} is in force")),
            true => Err(format!(
                "set {number} is in force; a newer one cannot be used here, perhaps by this version of the program"
            )),
        }
    }

    /// The agents that may have to be put on hold or released since this was last asked.
    pub fn take_unsettled(&self) -> Unsettled {
        match self.unsettled.lock() {
            Ok(mut unsettled) => std::mem::take(&mut *unsettled),
            Err(_) => Unsettled::All,
        }
    }

    pub fn in_force(&self) -> Arc<PolicySet> {
        Arc::clone(&self.sets.load().in_force)
    }

    /// The sets that agents are evaluated under: the one in force, and the one that follows it.
    pub fn evaluated(&self) -> impl Iterator<Item = Arc<PolicySet>> {
        let sets = self.sets.load_full();
        let pending = sets.pending.clone();
        std::iter::once(Arc::clone(&sets.in_force)).chain(pending)
    }

    /// Changes with the sets that agents are evaluated under.
    pub fn stamp(&self) -> (u64, Option<u64>) {
        let sets = self.sets.load();
        let pending = sets.pending.as_ref().map(|pending| pending.number());
        (sets.in_force.number(), pending)
    }

    /// Agents are evaluated under this set too from now on.
    pub fn prepare(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(Sets {
            in_force: self.in_force(),
            pending: Some(next),
        }));
    }

    /// This set decides from now on.
    pub fn enforce(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(Sets {
            in_force: next,
            pending: None,
        }));
    }

    /// A newer set may have been made.
    pub fn note_newer(&self) {
        self.newer.store(true, Ordering::Release);
    }

    /// Whether a newer set may have been made since this was last asked.
    pub fn take_newer(&self) -> bool {
        self.newer.swap(false, Ordering::AcqRel)
    }
}

/// The facts that the shipped policies ask for: whether the domain is verified and on `allow_domains`, whether the card is
/// covered and has an error, and the class of its change.
type ShippedFacts = (bool, bool, bool, bool, String);

/// The policies that match cards where only shipped ones are about admitting. They are evaluated once for each combination of
/// the facts that they ask for, and not for each card.
#[derive(Debug, Default)]
pub struct ShippedMatches(Mutex<BTreeMap<ShippedFacts, Matches>>);

impl ShippedMatches {
    /// The policies of this set, always the same one, that match a card with these facts.
    pub fn evaluate(&self, set: &PolicySet, facts: &AgentFacts) -> Matches {
        let asked = (
            facts.verified,
            facts.allow_listed,
            facts.covered,
            facts.has_error,
            facts.change.clone(),
        );
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = known.entry(asked);
        matches
            .or_insert_with(|| set.matches(Action::Admit, facts))
            .clone()
    }
}
