//! The policy sets of this process: the one in force, and the pending one under which agents are already evaluated.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{PolicySet, PolicyText};
use arc_swap::ArcSwap;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use crate::policy_sets::CompiledSetCache;

#[derive(Debug)]
pub struct ActivePolicySets {
    sets: ArcSwap<PolicySetPair>,
    /// The sets that were compiled last.
    pub compiled: CompiledSetCache,
    /// The newest set that this process knows. It decides admissions and registrations.
    newest: ArcSwap<PolicySet>,
    /// Agents that may have to be put on hold, or released.
    reevaluation_queue: Mutex<PendingReevaluation>,
    /// Signals that agents may have to be put on hold, or released.
    pub reevaluation_signal: Notify,
    /// The permit for a preview, which reads every agent.
    pub preview_permit: Semaphore,
    /// Whether a newer set may have been made.
    may_have_newer: AtomicBool,
    /// Whether the last attempt to put the newest set in force failed.
    activation_failed: AtomicBool,
    /// How often another set was put in force.
    switches: AtomicU64,
    /// The moment as of which policies about finding and calling compare the ages of agents, in microseconds.
    ages_as_of: AtomicI64,
    /// The set for which this process has searched for agents that reach an age, and when it does so next.
    next_age_check: Mutex<Option<(u64, Timestamp)>>,
    /// Signals that another set was put in force.
    pub switch_signal: Notify,
    /// The agents that were evaluated under the next set, and those to be evaluated.
    evaluated_agents: AtomicU64,
    agents_to_evaluate: AtomicU64,
    /// The previews to make, with the policies of each.
    preview_queue: Mutex<VecDeque<(Uuid, Vec<PolicyText>)>>,
    /// Signals that there is a preview to make.
    pub preview_signal: Notify,
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

/// Maximum number of queued previews. Each holds its texts meanwhile, at most 4 MiB.
const MAX_QUEUED_PREVIEWS: usize = 8;

/// Maximum number of queued agents. If more are queued, all agents are checked.
const MAX_QUEUED_AGENTS: usize = 10_000;

#[derive(Debug, Clone)]
struct PolicySetPair {
    enforced: Arc<PolicySet>,
    pending: Option<Arc<PolicySet>>,
}

impl ActivePolicySets {
    /// Starts with this set in force, and ages as of a moment; `may_have_newer` if a newer one may have been made, or
    /// agents were not evaluated under it.
    pub fn new(
        in_force: PolicySet,
        ages_as_of: Timestamp,
        compiled: CompiledSetCache,
        may_have_newer: bool,
    ) -> Self {
        let in_force = Arc::new(in_force);
        let sets = PolicySetPair {
            enforced: Arc::clone(&in_force),
            pending: None,
        };
        Self {
            sets: ArcSwap::from_pointee(sets),
            compiled,
            newest: ArcSwap::new(in_force),
            reevaluation_queue: Mutex::default(),
            reevaluation_signal: Notify::new(),
            preview_permit: Semaphore::new(1),
            may_have_newer: AtomicBool::new(may_have_newer),
            activation_failed: AtomicBool::new(false),
            switches: AtomicU64::new(0),
            ages_as_of: AtomicI64::new(ages_as_of.0),
            next_age_check: Mutex::default(),
            switch_signal: Notify::new(),
            evaluated_agents: AtomicU64::new(0),
            agents_to_evaluate: AtomicU64::new(0),
            preview_queue: Mutex::default(),
            preview_signal: Notify::new(),
        }
    }

    /// The moment as of which policies about finding and calling compare the ages of agents.
    pub fn ages_as_of(&self) -> Timestamp {
        Timestamp(self.ages_as_of.load(Ordering::Acquire))
    }

    /// Makes ages count to a later moment, before the events up to it are applied.
    pub fn advance_ages(&self, as_of: Timestamp) {
        self.ages_as_of.fetch_max(as_of.0, Ordering::AcqRel);
    }

    /// Whether agents may have reached an age that this set compares since the last search.
    pub fn is_age_check_due(&self, set_number: u64, now: Timestamp) -> bool {
        let next = self.next_age_check.lock();
        let next = next.unwrap_or_else(PoisonError::into_inner);
        next.is_none_or(|(number, due)| number != set_number || due <= now)
    }

    /// Sets the time of the next search for agents that reach an age.
    pub fn schedule_age_check(&self, set_number: u64, due: Timestamp) {
        let next = self.next_age_check.lock();
        *next.unwrap_or_else(PoisonError::into_inner) = Some((set_number, due));
    }

    /// Queues a preview; returns `false` if too many are waiting.
    pub fn queue_preview(&self, id: Uuid, policies: Vec<PolicyText>) -> bool {
        match self.preview_queue.lock() {
            Ok(mut queue) if queue.len() < MAX_QUEUED_PREVIEWS => {
                queue.push_back((id, policies));
                true
            }
            _ => false,
        }
    }

    pub fn take_queued_preview(&self) -> Option<(Uuid, Vec<PolicyText>)> {
        self.preview_queue.lock().ok()?.pop_front()
    }

    pub fn queued_previews(&self) -> Vec<Uuid> {
        match self.preview_queue.lock() {
            Ok(queue) => queue.iter().map(|(id, _)| *id).collect(),
            Err(_) => Vec::new(),
        }
    }

    pub fn record_evaluation_progress(&self, evaluated: usize, agents: usize) {
        self.evaluated_agents
            .store(evaluated as u64, Ordering::Relaxed);
        self.agents_to_evaluate
            .store(agents as u64, Ordering::Relaxed);
    }

    /// The agents that were evaluated under the next set, or the last one, and those that were to be.
    pub fn evaluation_progress(&self) -> (u64, u64) {
        (
            self.evaluated_agents.load(Ordering::Relaxed),
            self.agents_to_evaluate.load(Ordering::Relaxed),
        )
    }

    /// The newest set that this process knows.
    pub fn newest_set(&self) -> Arc<PolicySet> {
        self.newest.load_full()
    }

    /// Makes this set decide admissions from now on.
    pub fn set_newest(&self, newest: Arc<PolicySet>) {
        self.newest.store(newest);
    }

    /// Queues changed agents, because policies may now decide differently about their admission.
    pub fn queue_changed_agents(&self, agents: &[Uuid]) {
        self.requeue_agents(agents);
        self.reevaluation_signal.notify_one();
    }

    /// Queues failed agents again for the next run, after its pause: the cause of the failure is probably still there.
    pub fn requeue_agents(&self, agents: &[Uuid]) {
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

    /// Queues all agents, because policies may now decide differently about any of them.
    pub fn queue_all_agents(&self) {
        self.queue_all_agents_for_next_run();
        self.reevaluation_signal.notify_one();
    }

    /// Queues all agents again for the next run, after its pause.
    pub fn queue_all_agents_for_next_run(&self) {
        if let Ok(mut queue) = self.reevaluation_queue.lock() {
            *queue = PendingReevaluation::All;
        }
    }

    /// Records whether putting the newest set in force has failed.
    pub fn record_activation_result(&self, failed: bool) {
        self.activation_failed.store(failed, Ordering::Release);
    }

    /// Whether putting the newest set in force has failed.
    pub fn has_activation_failed(&self) -> bool {
        self.activation_failed.load(Ordering::Acquire)
    }

    /// How often this process has put another set in force since its start.
    pub fn switch_count(&self) -> u64 {
        self.switches.load(Ordering::Relaxed)
    }

    /// Describes the set in force.
    ///
    /// # Errors A sentence if the newest set could not be put in force.
    pub fn status_text(&self) -> Result<String, String> {
        let number = self.enforced_set().number();
        match self.has_activation_failed() {
            false => Ok(format!("set {number} is in force")),
            true => Err(format!(
                "set {number} is in force; this process cannot use a newer one, perhaps because its version is too old"
            )),
        }
    }

    /// Takes the agents queued since the last call.
    pub fn take_queued_agents(&self) -> PendingReevaluation {
        match self.reevaluation_queue.lock() {
            Ok(mut queue) => std::mem::take(&mut *queue),
            Err(_) => PendingReevaluation::All,
        }
    }

    pub fn enforced_set(&self) -> Arc<PolicySet> {
        Arc::clone(&self.sets.load().enforced)
    }

    /// The sets under which agents are evaluated: the one in force, and the pending one.
    pub fn sets_for_evaluation(&self) -> impl Iterator<Item = Arc<PolicySet>> {
        let sets = self.sets.load_full();
        let pending = sets.pending.clone();
        std::iter::once(Arc::clone(&sets.enforced)).chain(pending)
    }

    /// The numbers of the sets under which agents are evaluated.
    pub fn evaluation_set_numbers(&self) -> (u64, Option<u64>) {
        let sets = self.sets.load();
        let pending = sets.pending.as_ref().map(|pending| pending.number());
        (sets.enforced.number(), pending)
    }

    /// Makes agents evaluated under this set too from now on.
    pub fn set_pending(&self, next: Arc<PolicySet>) {
        self.sets.store(Arc::new(PolicySetPair {
            enforced: self.enforced_set(),
            pending: Some(next),
        }));
    }

    /// Puts this set in force.
    pub fn enforce(&self, next: Arc<PolicySet>) {
        if next.number() != self.enforced_set().number() {
            self.switches.fetch_add(1, Ordering::Relaxed);
        }
        self.sets.store(Arc::new(PolicySetPair {
            enforced: next,
            pending: None,
        }));
        self.switch_signal.notify_one();
    }

    /// Records that a newer set may have been made.
    pub fn flag_newer_set(&self) {
        self.may_have_newer.store(true, Ordering::Release);
    }

    /// Whether a newer set may have been made since the last call.
    pub fn take_newer_flag(&self) -> bool {
        self.may_have_newer.swap(false, Ordering::AcqRel)
    }
}
