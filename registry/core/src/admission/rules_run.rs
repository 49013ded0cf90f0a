//! The rules run: decides open reviews and affected agents by changed admission rules, in the background. One process
//! does it and stores its progress in the database, so that the next one continues from there.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_domain::admission_rules::AdmissionRules;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::review;
use a2a_registry_store::rule_changes::{agents_with_hold, open_admission_review_count};
use a2a_registry_store::{WriteTransaction, reviews, settings};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission::agent_redecision::apply_rules_to_agent;
use crate::admission::rule_changes::{
    agents_approved_by_approve_all, agents_to_deny, agents_to_release,
    open_admission_review_filter, redecide_reviewed_agents,
};
use crate::admission::rules_lease::StoredRulesRun;
use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_and_publish;
use crate::context::AppContext;
use crate::error::Result;
use crate::process_state::rules_progress::RulesRunStage;

/// The setting with the rules by which everything is decided; empty during a run by other rules.
const DECIDED_RULES_SETTING: &str = "rules";
/// Agents or reviews per transaction, during which other writes wait.
const BATCH_SIZE: usize = 50;
/// Decisions between two log lines, of a run with so many or more, and the maximum lag of this process's index behind
/// them. In a smaller run each has its own.
const DECISIONS_PER_LOG: u64 = 1_000;
/// Lifetime of the lease after the last transaction.
const LEASE_DURATION: i64 = MINUTE;
/// Maximum wait for the index: decisions continue if it cannot be written.
const INDEX_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesRunEnd {
    /// Everything is decided by the rules of this process.
    Decided,
    OtherProcess,
    /// Another process was started with other rules since, and decides by those.
    Superseded,
    /// The run was cancelled; the next one continues from there.
    Cancelled,
    /// Some decisions failed. Those agents stay as hidden as they are.
    Failed,
}

/// Decides everything that the rules of this process affect, unless another process does so. A failure does not stop
/// the others. If the database fails, the next call continues from there.
pub async fn redecide_by_changed_rules(
    context: &AppContext,
    cancel: &CancellationToken,
) -> Result<RulesRunEnd> {
    let progress = &context.rules_progress;
    let write = context.store.begin_write().await?;
    let rules = context.rules();
    let mut stored_run = StoredRulesRun::lock(&write).await?;
    if stored_run.rules != rules.to_string() {
        progress.set_stage(RulesRunStage::Superseded);
        return Ok(RulesRunEnd::Superseded);
    }
    let is_ours = stored_run
        .holder
        .is_none_or(|holder| holder == progress.lease_owner);
    // A clock that was ahead must not extend the lease beyond its lifetime.
    let left = stored_run.until.saturating_sub(context.now().0);
    if !is_ours && (1..=LEASE_DURATION).contains(&left) {
        let (decided, total) = (stored_run.decided, stored_run.total);
        progress.set_stage(RulesRunStage::Elsewhere { decided, total });
        return Ok(RulesRunEnd::OtherProcess);
    }
    let decided = settings::setting_value(&write, DECIDED_RULES_SETTING).await?;
    if decided.is_some_and(|rules| rules != stored_run.rules) {
        // After the first decision, these are no longer the rules by which everything is decided: if they are set
        // again, open reviews are decided again.
        write.set_setting(DECIDED_RULES_SETTING, "").await?;
    }
    stored_run.holder = Some(progress.lease_owner);
    stored_run.until = context.now().plus_micros(LEASE_DURATION).0;
    stored_run.store(&write).await?;
    write.commit().await?;
    let mut run = RulesRun::begin(context, stored_run, rules).await?;
    let end = run.decide_all_batches(cancel).await?;
    progress.set_stage(match end {
        RulesRunEnd::Decided => RulesRunStage::Decided,
        RulesRunEnd::Superseded => RulesRunStage::Superseded,
        RulesRunEnd::Failed => RulesRunStage::Failed {
            count: run.failed_count,
        },
        RulesRunEnd::OtherProcess | RulesRunEnd::Cancelled => RulesRunStage::Waiting,
    });
    Ok(end)
}

#[derive(Debug, Clone, Copy)]
enum DecisionBatch<'a> {
    Reviews(&'a [review::Model]),
    Agents(&'a [Uuid]),
}

impl<'a> DecisionBatch<'a> {
    fn split(self) -> Vec<(Uuid, Self)> {
        match self {
            Self::Reviews(open) => {
                let each = open.iter();
                each.map(|one| (one.agent_id, Self::Reviews(from_ref(one))))
                    .collect()
            }
            Self::Agents(ids) => {
                let each = ids.iter();
                each.map(|id| (*id, Self::Agents(from_ref(id)))).collect()
            }
        }
    }

    const fn len(self) -> usize {
        match self {
            Self::Reviews(open) => open.len(),
            Self::Agents(ids) => ids.len(),
        }
    }
}

struct RulesRun<'a> {
    context: &'a AppContext,
    /// The rules when the run began. After a reload it ends with its next transaction, as superseded.
    rules: Arc<AdmissionRules>,
    stored: StoredRulesRun,
    agents: Vec<Uuid>,
    failed_count: u64,
    last_seq: i64,
}

impl<'a> RulesRun<'a> {
    /// Collects the ids of agents and reviews to decide, each agent at most once.
    async fn begin(
        context: &'a AppContext,
        mut stored: StoredRulesRun,
        rules: Arc<AdmissionRules>,
    ) -> Result<Self> {
        let store = &context.store;
        let decided = settings::setting_value(store, DECIDED_RULES_SETTING).await?;
        // The same rules would give the decision that opened the review.
        let is_decided = decided.as_ref() == Some(&stored.rules);
        if std::mem::take(&mut stored.review_failed) {
            (stored.after, stored.reviews_done) = (None, false);
        }
        stored.reviews_done |= is_decided;
        let open_count = match stored.reviews_done {
            true => 0,
            false => open_admission_review_count(store, stored.after).await?,
        };
        let undecided = agents_with_hold(store, Hold::RulesChanged).await?;
        let mut agents: BTreeSet<Uuid> = undecided.into_iter().map(|(id, _)| id).collect();
        agents.extend(agents_to_deny(context, store).await?);
        agents.extend(agents_to_release(context, store).await?);
        let approved = agents_approved_by_approve_all(context, store).await?;
        agents.extend(approved.into_iter().map(|agent| agent.id));
        let left = open_count + agents.len() as u64;
        stored.total = stored.decided + left;
        if left > 0 {
            let (decided, total) = (stored.decided, stored.total);
            tracing::info!(decided, total, "applying the changed rules");
            context
                .rules_progress
                .set_stage(RulesRunStage::Deciding { decided, total });
        }
        Ok(Self {
            context,
            rules,
            stored,
            agents: agents.into_iter().collect(),
            failed_count: 0,
            last_seq: 0,
        })
    }

    async fn decide_all_batches(&mut self, cancel: &CancellationToken) -> Result<RulesRunEnd> {
        let mut end = self.decide_reviews(cancel).await?;
        let agents = std::mem::take(&mut self.agents);
        for some in agents.chunks(BATCH_SIZE) {
            if end.is_some() {
                break;
            }
            end = self
                .decide_batch(DecisionBatch::Agents(some), cancel)
                .await?;
        }
        match end {
            None | Some(RulesRunEnd::Cancelled) => self.finish(end.is_none()).await,
            Some(end) => Ok(end),
        }
    }

    /// Decides the agents with an open review again; returns how the run ended, if it did.
    async fn decide_reviews(&mut self, cancel: &CancellationToken) -> Result<Option<RulesRunEnd>> {
        let open = open_admission_review_filter();
        while !self.stored.reviews_done {
            let after = self.stored.after;
            let store = &self.context.store;
            let page = reviews::review_page(store, &open, after, BATCH_SIZE as u64).await?;
            let Some(last) = page.last() else {
                self.stored.reviews_done = true;
                break;
            };
            let end = self
                .decide_batch(DecisionBatch::Reviews(&page), cancel)
                .await?;
            if end.is_some() {
                return Ok(end);
            }
            self.stored.after = Some(last.id);
        }
        Ok(None)
    }

    /// Decides a batch in one transaction, or each item alone if that fails; returns how the run ended, if it did.
    async fn decide_batch(
        &mut self,
        batch: DecisionBatch<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<RulesRunEnd>> {
        if cancel.is_cancelled() {
            return Ok(Some(RulesRunEnd::Cancelled));
        }
        let decided_before = self.stored.decided;
        let end = match self.decide_in_transaction(batch).await {
            Err(error) if error.is_database_failure() => return Err(error),
            Err(_) => self.decide_one_by_one(batch).await?,
            Ok(end) => end,
        };
        self.report_progress(decided_before, cancel).await;
        Ok(end)
    }

    async fn decide_one_by_one(&mut self, batch: DecisionBatch<'_>) -> Result<Option<RulesRunEnd>> {
        for (id, single) in batch.split() {
            match self.decide_in_transaction(single).await {
                Err(error) if error.is_database_failure() => return Err(error),
                Err(error) => {
                    let text = error.log_message();
                    tracing::error!(error = text, %id, "the changed rules could not be applied");
                    self.failed_count += 1;
                    self.stored.review_failed |= matches!(single, DecisionBatch::Reviews(_));
                }
                Ok(None) => {}
                Ok(end) => return Ok(end),
            }
        }
        Ok(None)
    }

    /// Decides in one transaction, unless this process no longer holds the lease.
    async fn decide_in_transaction(
        &mut self,
        batch: DecisionBatch<'_>,
    ) -> Result<Option<RulesRunEnd>> {
        let context = self.context;
        let write = context.store.begin_write().await?;
        if let Some(end) = self.lock_stored_run(&write).await? {
            return Ok(Some(end));
        }
        let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
        change_set.logs_actions = self.stored.total < DECISIONS_PER_LOG;
        let mut stored = self.stored.clone();
        match batch {
            DecisionBatch::Reviews(open) => {
                redecide_reviewed_agents(context, &write, &mut change_set, open).await?;
                stored.after = open.last().map(|last| last.id);
            }
            DecisionBatch::Agents(ids) => {
                for id in ids {
                    apply_rules_to_agent(context, &write, &mut change_set, *id).await?;
                }
            }
        }
        let committed = change_set.write(&write).await?;
        stored.decided += batch.len() as u64;
        stored.total = stored.total.max(stored.decided);
        stored.until = context.now().plus_micros(LEASE_DURATION).0;
        stored.store(&write).await?;
        commit_and_publish(context, write, [&committed]).await?;
        self.stored = stored;
        self.last_seq = committed.last_seq.unwrap_or(self.last_seq);
        Ok(None)
    }

    /// Locks the stored run; returns how the run has ended for this process, if it has.
    async fn lock_stored_run(&self, write: &WriteTransaction) -> Result<Option<RulesRunEnd>> {
        let present = StoredRulesRun::lock(write).await?;
        if present.rules != self.stored.rules {
            return Ok(Some(RulesRunEnd::Superseded));
        }
        let is_ours = present.holder == self.stored.holder;
        Ok((!is_ours).then_some(RulesRunEnd::OtherProcess))
    }

    /// Reports the progress since `decided_before`; every thousand decisions are logged, and the index catches up
    /// first.
    async fn report_progress(&self, decided_before: u64, cancel: &CancellationToken) {
        let (decided, total) = (self.stored.decided, self.stored.total);
        let context = self.context;
        context
            .rules_progress
            .set_stage(RulesRunStage::Deciding { decided, total });
        if decided / DECISIONS_PER_LOG == decided_before / DECISIONS_PER_LOG {
            return;
        }
        tracing::info!(decided, total, "applied the changed rules");
        let mut applied_seq = context.signals.applied_event.subscribe();
        if !context.signals.is_index_following.load(Ordering::Acquire)
            || context.index.applied_seq() >= self.last_seq
        {
            return;
        }
        let index_caught_up = async {
            while *applied_seq.borrow_and_update() < self.last_seq {
                if applied_seq.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = index_caught_up => {}
            () = tokio::time::sleep(INDEX_TIMEOUT) => {}
        }
    }

    /// Releases the lease with the result: complete, or the position from which the next run continues.
    async fn finish(&self, is_complete: bool) -> Result<RulesRunEnd> {
        let write = self.context.store.begin_write().await?;
        if let Some(end) = self.lock_stored_run(&write).await? {
            return Ok(end);
        }
        let mut stored = StoredRulesRun {
            holder: None,
            until: 0,
            ..self.stored.clone()
        };
        let end = match (is_complete, self.failed_count) {
            (false, _) => RulesRunEnd::Cancelled,
            (true, 0) => {
                write
                    .set_setting(DECIDED_RULES_SETTING, &stored.rules)
                    .await?;
                stored.allow_lists = vec![self.rules.allow_domains.clone()];
                (stored.decided, stored.total) = (0, 0);
                RulesRunEnd::Decided
            }
            (true, _) => {
                (stored.after, stored.reviews_done) = (None, false);
                (stored.decided, stored.total) = (0, 0);
                RulesRunEnd::Failed
            }
        };
        stored.store(&write).await?;
        write.commit().await?;
        if end == RulesRunEnd::Decided && self.stored.decided > 0 {
            let decided = self.stored.decided;
            tracing::info!(decided, "the changed rules were applied to everything");
        }
        Ok(end)
    }
}
