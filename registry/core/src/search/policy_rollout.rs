//! Puts a newer policy set in force: every agent in the index is evaluated under it while the old set still decides,
//! then the new set decides.
//!
//! No document of the index is written: the results are labels beside it. Policies that the last evaluated set has too
//! keep their results; only the others are evaluated.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use a2a_registry_policy::{Action, BatchEvaluator, PolicyMode, PolicySet};
use a2a_registry_search::RuleLabelUpdate;
use a2a_registry_store::{events, policies};
use futures::future::join_all;
use uuid::Uuid;

use crate::agents::records::{AgentRecord, PolicyRecordRows};
use crate::context::AppContext;
use crate::error::AppError;
use crate::policy_sets::age_progress::AgeProgress;
use crate::policy_sets::{compile_earlier_set, load_newest_policy_set};
use crate::search::indexing::{
    IndexingError, MAX_EVENTS_PER_COMMIT, apply_next_events, run_blocking_index_work,
};
use crate::visibility::policy_labels::{
    carried_policy_labels, evaluated_set_label, matched_policy_labels, policy_label_set,
};

/// Agents that are read and evaluated at once.
const CHUNK_AGENTS: usize = 500;
/// Maximum number of chunks at the same time, while no search waits for a thread.
const MAX_CONCURRENT_CHUNKS: usize = 4;
/// Agents after which the results for a set that is already in force are used: until then they are hidden.
const MAX_HIDDEN_BATCH: usize = 10_000;
/// The attributes that do not come from cards, whose reading takes most of the time.
const CARDLESS_ATTRIBUTES: [&str; 20] = [
    "domain",
    "verified",
    "proof_methods",
    "covered",
    "labels",
    "trust",
    "signature",
    "has_error",
    "lifecycle",
    "liveness",
    "endpoint",
    "days_since_fetched",
    "days_since_changed",
    "days_since_approved",
    "days_since_answered",
    "owner_present",
    "sponsor_present",
    "visibility",
    "allow_listed",
    "change",
];

/// Puts the newest policy set in force, if it is not yet; returns whether it is. Events are applied in the meantime,
/// so that searches follow changes of agents. `false` means that it was cancelled. If this fails, the old set stays in
/// force.
pub async fn roll_out_newest_policies(
    context: &AppContext,
    cancelled: impl Fn() -> bool,
) -> Result<bool, IndexingError> {
    let sets = &context.policy_sets;
    let newest = loop {
        let rules = context.rules();
        let newest = load_newest_policy_set(&sets.compiled, &context.store, &rules).await?;
        let newest = Arc::new(newest);
        sets.set_newest(Arc::clone(&newest));
        // The shipped policies depend on the rules: a set of those before a reload must not decide after it.
        if Arc::ptr_eq(&rules, &context.rules()) {
            break newest;
        }
    };
    // The event of this set may not be applied yet, and agents that have reached an age by its making have no event.
    sets.advance_ages(AgeProgress::load(&context.store).await?.as_of);
    sets.queue_all_agents();
    if !newest.is_independent_of_resource(Action::Discover) {
        let is_new = newest.number() != sets.enforced_set().number();
        let marker = evaluated_set_label(&newest);
        if !is_new && agents_without_label(context, &marker).await?.is_empty() {
            return Ok(true);
        }
        if is_new {
            sets.set_pending(Arc::clone(&newest));
        }
        tracing::info!(
            number = newest.number(),
            "evaluating all agents under new policies"
        );
        let rollout = PolicyRollout::prepare(context, Arc::clone(&newest)).await?;
        if !rollout.evaluate_agents(context, is_new, cancelled).await? {
            return Ok(false);
        }
        tracing::info!(number = newest.number(), "new policies are in force");
    }
    enforce_evaluated_set(context, newest).await?;
    Ok(true)
}

/// Puts a set in force under which all agents are evaluated. The labels of the set before stay for the searches that
/// began under it, until the next set is in force.
async fn enforce_evaluated_set(
    context: &AppContext,
    newest: Arc<PolicySet>,
) -> Result<(), IndexingError> {
    let kept = [newest.number(), context.policy_sets.enforced_set().number()];
    context.policy_sets.enforce(newest);
    let index = context.index.clone();
    let is_kept =
        move |label: &str| policy_label_set(label).is_some_and(|(set, _)| kept.contains(&set));
    run_blocking_index_work(move || {
        if index.rule_labels().iter().any(|label| !is_kept(label)) {
            index.retain_rule_labels(is_kept);
        }
        index.save_rule_labels();
        Ok(())
    })
    .await
}

/// Removes the labels of agents that have changed since the labels of this index were saved. Until their policies are
/// evaluated again, these agents are hidden where policies restrict anything.
pub async fn forget_outdated_policy_labels(context: &AppContext) -> Result<(), IndexingError> {
    let Some(mut seq) = context.index.restored_rule_labels_seq() else {
        return Ok(());
    };
    while seq < context.index.applied_seq() {
        let rows = events::events_after(&context.store, seq, MAX_EVENTS_PER_COMMIT).await?;
        let Some(last) = rows.last() else { break };
        seq = last.seq;
        let agents: Vec<Uuid> = rows.iter().filter_map(|row| row.agent_id).collect();
        context.index.forget_rule_labels_of_agents(&agents);
    }
    Ok(())
}

async fn agents_without_label(
    context: &AppContext,
    label: &str,
) -> Result<Vec<Uuid>, IndexingError> {
    let (index, label) = (context.index.clone(), label.to_owned());
    run_blocking_index_work(move || index.agents_without_rule_label(&label)).await
}

/// The evaluation of all agents under a set.
struct PolicyRollout {
    set: Arc<PolicySet>,
    /// The policies that the set before does not have; `None` if it has all.
    changed: Option<Arc<BatchEvaluator>>,
    /// The label of agents that were evaluated under the set before, if its results are used.
    marker_before: Option<String>,
    /// Labels by policies of that set, each with the one that stands for it now.
    copies: Vec<(String, String)>,
}

impl PolicyRollout {
    async fn prepare(context: &AppContext, set: Arc<PolicySet>) -> Result<Self, IndexingError> {
        let before = load_set_evaluated_before(context, set.number()).await?;
        let carried = before.as_ref().map_or_else(Vec::new, |before| {
            set.carried_policies(before, Action::Discover)
        });
        let copies = before.as_ref().map_or_else(Vec::new, |before| {
            carried_policy_labels(&set, before, &carried)
        });
        let mut changed: BTreeSet<u16> = set
            .policies_for_action(Action::Discover)
            .filter(|(_, policy)| policy.mode != PolicyMode::Off && policy.is_conditional)
            .map(|(index, _)| index)
            .collect();
        for (_, here) in &carried {
            changed.remove(here);
        }
        let is_any_changed = !changed.is_empty();
        let compiled = Arc::clone(&set);
        let prepared = tokio::task::spawn_blocking(move || {
            is_any_changed.then(|| compiled.batch_evaluator(Action::Discover, &changed))
        });
        let prepared = prepared
            .await
            .map_err(|error| IndexingError::Failed(error.to_string()))?;
        let changed = match prepared {
            Some(None) => {
                let text = "there is not enough memory to evaluate policies".to_owned();
                return Err(IndexingError::Failed(text));
            }
            Some(Some(evaluator)) => Some(Arc::new(evaluator)),
            None => None,
        };
        Ok(Self {
            set,
            changed,
            marker_before: before.map(|before| evaluated_set_label(&before)),
            copies,
        })
    }

    fn new_update(&self, context: &AppContext) -> RuleLabelUpdate {
        let marker = evaluated_set_label(&self.set);
        let mut update = context
            .index
            .new_rule_label_update(marker, self.copies.clone());
        if let (None, Some(before)) = (&self.changed, &self.marker_before) {
            update.add_agents_with(before.clone());
        }
        update
    }

    /// Evaluates all agents that the index has; returns whether that was not cancelled. The results for a new set are
    /// used together at the end.
    async fn evaluate_agents(
        &self,
        context: &AppContext,
        is_new: bool,
        cancelled: impl Fn() -> bool,
    ) -> Result<bool, IndexingError> {
        let mut agents = agents_without_label(context, &evaluated_set_label(&self.set)).await?;
        // Nothing is known of these under the set before.
        let unknown: HashSet<Uuid> = match &self.marker_before {
            Some(before) => agents_without_label(context, before)
                .await?
                .into_iter()
                .collect(),
            None => agents.iter().copied().collect(),
        };
        if self.changed.is_none() {
            agents.retain(|id| unknown.contains(id));
        }
        let mut update = self.new_update(context);
        let (mut rest, mut unused) = (agents.as_slice(), 0);
        let progress = |rest: usize| {
            let evaluated = agents.len() - rest;
            context
                .policy_sets
                .record_evaluation_progress(evaluated, agents.len());
        };
        while !rest.is_empty() {
            progress(rest.len());
            let count = rest.len().min(CHUNK_AGENTS * concurrent_chunks(context));
            let (now, later) = rest.split_at(count);
            rest = later;
            let chunks = now.chunks(CHUNK_AGENTS);
            let evaluations = chunks.map(|ids| self.evaluate_chunk(context, ids, &unknown));
            for labelled in join_all(evaluations).await {
                for (id, labels) in labelled? {
                    update.add_agent(id, &labels);
                }
            }
            unused += count;
            if !is_new && unused >= MAX_HIDDEN_BATCH {
                let evaluated = std::mem::replace(&mut update, self.new_update(context));
                use_evaluated_labels(context, evaluated).await?;
                unused = 0;
            }
            // In this order and one after the other, so that data read before an event is never used after it: an
            // agent that an event changes has labels of its own, which the update leaves as they are.
            while apply_next_events(context).await? {}
            if cancelled() {
                return Ok(false);
            }
        }
        use_evaluated_labels(context, update).await?;
        progress(0);
        Ok(true)
    }

    /// The labels of some agents by the policies that are to be evaluated. Agents that cannot be read are left out.
    async fn evaluate_chunk(
        &self,
        context: &AppContext,
        ids: &[Uuid],
        unknown: &HashSet<Uuid>,
    ) -> Result<Vec<(Uuid, Vec<String>)>, IndexingError> {
        let unknown: HashSet<Uuid> = ids
            .iter()
            .copied()
            .filter(|id| unknown.contains(id))
            .collect();
        let changed = self.changed.clone();
        let is_cardless = unknown.is_empty()
            && changed
                .as_ref()
                .is_some_and(|changed| changed.reads_only(&CARDLESS_ATTRIBUTES));
        let read_tx = context.store.begin_read().await?;
        let rows = PolicyRecordRows::load(&read_tx, ids, !is_cardless).await?;
        drop(read_tx);
        let (rules, now) = (context.rules(), context.now());
        let ages_as_of = context.policy_sets.ages_as_of();
        let set = Arc::clone(&self.set);
        let evaluate = move |record: AgentRecord| {
            let id = record.agent.id;
            let attributes = record.policy_subject().agent_attributes(&rules, ages_as_of);
            let mut matches = match &changed {
                Some(changed) if !unknown.contains(&id) => {
                    set.match_agent_in_batch(changed, &attributes)
                }
                _ => set.match_agent(Action::Discover, &attributes),
            };
            matches.remove_waived(&set.forbid_indices(&record.waived_policies(now)));
            (id, matched_policy_labels(&set, &matches))
        };
        tokio::task::spawn_blocking(move || rows.into_records().map(evaluate).collect())
            .await
            .map_err(|error| IndexingError::Failed(error.to_string()))
    }
}

/// Number of chunks to evaluate at the same time: one while searches wait, so that they keep most of the processors.
fn concurrent_chunks(context: &AppContext) -> usize {
    if context.search_cache.permits.count_waiting() > 0 {
        return 1;
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    cores.min(MAX_CONCURRENT_CHUNKS)
}

async fn use_evaluated_labels(
    context: &AppContext,
    update: RuleLabelUpdate,
) -> Result<(), IndexingError> {
    let index = context.index.clone();
    run_blocking_index_work(move || {
        index.apply_rule_label_update(&update);
        Ok(())
    })
    .await
}

/// The newest earlier set under which agents of the index were evaluated; `None` if there is none that this build can
/// compile.
async fn load_set_evaluated_before(
    context: &AppContext,
    number: u64,
) -> Result<Option<Arc<PolicySet>>, AppError> {
    let labels = context.index.rule_labels();
    let evaluated = labels.iter().filter_map(|label| policy_label_set(label));
    let earlier = evaluated.filter(|(set, is_marker)| *is_marker && *set < number);
    let Some(before) = earlier.map(|(set, _)| set).max() else {
        return Ok(None);
    };
    let enforced = context.policy_sets.enforced_set();
    if enforced.number() == before {
        return Ok(Some(enforced));
    }
    let stored = i64::try_from(before).unwrap_or(i64::MAX);
    let Some(row) = policies::policy_set_by_number(&context.store, stored).await? else {
        return Ok(None);
    };
    let sets = &context.policy_sets.compiled;
    let compiled = compile_earlier_set(sets, Some(row), &context.rules()).await;
    Ok(compiled.ok().map(Arc::new))
}
