//! The policy sets of this process: the one in force, and the one that agents are evaluated under meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use a2a_registry_policy::{Action, AgentAttributes, PolicyMatches, PolicySet};
use arc_swap::ArcSwap;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use crate::policy_sets::CompiledSetCache;

#[derive(Debug)]
pub struct ActivePolicySets {
    sets: ArcSwap<SetPair>,
    /// What was compiled last.
    pub compiled: CompiledSetCache,
    /// The newest set that this process knows, by which it admits and registers.
    newest: ArcSwap<AdmissionSet>,
    /// Agents that may have to be put on hold, or released.
    reevaluation_queue: Mutex<PendingReevaluation>,
    /// Somebody may have to be put on hold, or released.
    pub reevaluation_signal: Notify,
    /// Held while a preview is made, which reads every agent.
    pub preview_permit: Semaphore,
    /// Whether another set may have been made.
    may_have_newer: AtomicBool,
    /// Whether the newest set could not be put in force when that was last tried.
    activation_failed: AtomicBool,
}

/// A set by which this process admits, with what its shipped policies match.
#[derive(Debug)]
struct AdmissionSet {
    set: Arc<PolicySet>,
    default_matches: DefaultPolicyMatches,
}

impl AdmissionSet {
    fn new(set: Arc<PolicySet>) -> Self {
        Self {
            set,
            default_matches: DefaultPolicyMatches::default(),
        }
    }
}

/// Agents that may have to be put on hold, or released.
#[derive(Debug)]
pub enum PendingReevaluation {
    All,
    Some(BTreeSet<Uuid>),
}

impl Default for PendingReevaluation {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

/// Agents that are remembered by name; of more all are looked at.
const MAX_QUEUED_AGENTS: usize = 10_000;

#[derive(Debug, Clone)]
struct SetPair {
    enforced: Arc<PolicySet>,
    pending: Option<Arc<PolicySet>>,
}

impl ActivePolicySets {
    /// With this set in force; `check` where a newer one may have been made, or agents were not evaluated under it.
    pub fn new(in_force: PolicySet, compiled: CompiledSetCache, may_have_newer: bool) -> Self {
        let in_force = Arc::new(in_force);
        let sets = SetPair {
            enforced: Arc::clone(&in_force),
            pending: None,
        };
        Self {
            sets: ArcSwap::from_pointee(sets),
            compiled,
            newest: ArcSwap::from_pointee(AdmissionSet::new(in_force)),
            reevaluation_queue: Mutex::default(),
            reevaluation_signal: Notify::new(),
            preview_permit: Semaphore::new(1),
            may_have_newer: AtomicBool::new(may_have_newer),
            activation_failed: AtomicBool::new(false),
        }
    }

    /// The newest set that this process knows.
    pub fn newest(&self) -> Arc<PolicySet> {
        Arc::clone(&self.newest.load().set)
    }

    /// The shipped policies of a set that match a card with these facts, where nobody has written one about admitting.
    pub fn default_policy_matches(
        &self,
        set: &Arc<PolicySet>,
        facts: &AgentAttributes,
    ) -> PolicyMatches {
        let newest = self.newest.load();
        match Arc::ptr_eq(&newest.set, set) {
            true => newest.default_matches.evaluate(set, facts),
            // A newer one has come since.
            false => set.match_agent(Action::Admit, facts),
        }
    }

    /// Cards are admitted by this set from now on.
    pub fn set_newest(&self, newest: Arc<PolicySet>) {
        self.newest.store(Arc::new(AdmissionSet::new(newest)));
    }

    /// These agents have changed, so policies may say another thing about admitting them.
    pub fn queue_changed(&self, agents: &[Uuid]) {
        self.requeue(agents);
        self.reevaluation_signal.notify_one();
    }

    /// These agents are looked at in the next round, which comes after its pause: whatever made them fail is hardly mended
    /// already.
    pub fn requeue(&self, agents: &[Uuid]) {
        if let Ok(mut queue) = self.reevaluation_queue.lock() {
            match &mut *queue {
                PendingReevaluation::All => {}
                PendingReevaluation::Some(some)
                    if some.len() + agents.len() > MAX_QUEUED_AGENTS =>
                {
                    *queue = PendingReevaluation::All;
                }
                PendingReevaluation::Some(some) => some.extend(agents),
            }
        }
    }

    /// Policies may say another thing about admitting any agent.
    pub fn queue_all(&self) {
        self.requeue_all();
        self.reevaluation_signal.notify_one();
    }

    /// Every agent is looked at in the next round, which comes after its pause.
    pub fn requeue_all(&self) {
        if let Ok(mut queue) = self.reevaluation_queue.lock() {
            *queue = PendingReevaluation::All;
        }
    }

    /// Whether the newest set could be put in force.
    pub fn record_activation(&self, failed: bool) {
        self.activation_failed.store(failed, Ordering::Release);
    }

    /// Which set decides here, as a sentence.
    ///
    /// # Errors
    /// A sentence where the newest one could not be put in force.
    pub fn status_text(&self) -> Result<String, String> {
        let number = self.enforced_set().number();
        match self.activation_failed.load(Ordering::Acquire) {
            false => Ok(format!("set {number} is in force")),
            true => Err(format!(
                "set {number} is in force; a newer one cannot be used here, perhaps by this version of the program"
            )),
        }
    }

    /// The agents that may have to be put on hold or released since this was last asked.
    pub fn take_queued(&self) -> PendingReevaluation {
        match self.reevaluation_queue.lock() {
            Ok(mut queue) => std::mem::take(&mut *queue),
            Err(_) => PendingReevaluation::All,
        }
    }

    pub fn enforced_set(&self) -> Arc<PolicySet> {
        Arc::clone(&self.sets.load().enforced)
    }

    /// The sets that agents are evaluated under: the one in force, and the one that follows it.
    pub fn evaluated_sets(&self) -> impl Iterator<Item = Arc<PolicySet>> {
        let sets = self.sets.load_full();
        let pending = sets.pending.clone();
        std::iter::once(Arc::clone(&sets.enforced)).chain(pending)
    }

    /// Changes with the sets that agents are evaluated under.
    pub fn set_numbers(&self) -> (u64, Option<u64>) {
        let sets = self.sets.load();
        let pending = sets.pending.as_ref().map(|pending| pending.number());
        (sets.enforced.number(), pending)
    }

    /// Agents are evaluated under this set too from now on.
    pub fn set_pending(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(SetPair {
            enforced: self.enforced_set(),
            pending: Some(next),
        }));
    }

    /// This set decides from now on.
    pub fn enforce(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(SetPair {
            enforced: next,
            pending: None,
        }));
    }

    /// A newer set may have been made.
    pub fn flag_newer_set(&self) {
        self.may_have_newer.store(true, Ordering::Release);
    }

    /// Whether a newer set may have been made since this was last asked.
    pub fn take_newer_flag(&self) -> bool {
        self.may_have_newer.swap(false, Ordering::AcqRel)
    }
}

/// The facts that the shipped policies ask for: whether the domain is verified and on `allow_domains`, whether the card is
/// covered and has an error, and the class of its change.
type DefaultPolicyFacts = (bool, bool, bool, bool, String);

/// The policies that match cards where only shipped ones are about admitting. They are evaluated once for each combination of
/// the facts that they ask for, and not for each card.
#[derive(Debug, Default)]
pub struct DefaultPolicyMatches(Mutex<BTreeMap<DefaultPolicyFacts, PolicyMatches>>);

impl DefaultPolicyMatches {
    /// The policies of this set, always the same one, that match a card with these facts.
    pub fn evaluate(&self, set: &PolicySet, facts: &AgentAttributes) -> PolicyMatches {
        let key = (
            facts.verified,
            facts.allow_listed,
            facts.covered,
            facts.has_error,
            facts.change.clone(),
        );
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = cache.entry(key);
        matches
            .or_insert_with(|| set.match_agent(Action::Admit, facts))
            .clone()
    }
}
