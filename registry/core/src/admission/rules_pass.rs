//! The pass: decides by changed admission rules, in the background, on open reviews and on the agents that the rules
//! concern. One process does it; its progress is stored in the database, so that the next one continues from there.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::review;
use a2a_registry_store::rule_changes::{agents_with_hold, count_open_admissions};
use a2a_registry_store::{Write, reviews, settings};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission::ruled_agent::decide_on_agent;
use crate::admission::rules_changed::{
    agents_approved_by_option, agents_to_deny, agents_to_release, decide_reviewed, open_admissions,
};
use crate::admission::rules_lease::KeptPass;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_in_bulk;
use crate::context::Context;
use crate::error::Result;
use crate::memory::rules_progress::Stage;

/// The setting that holds the rules by which everything is decided; empty while a pass by other rules runs.
const DECIDED: &str = "rules";
/// Agents or reviews in one transaction, for which other writes wait.
const AT_ONCE: usize = 50;
/// Decisions between two log lines, and the maximum that the index of this process lags behind them.
const LOGGED: u64 = 1_000;
/// How long the pass is this process's after its last transaction.
const LEASE: i64 = MINUTE;
/// The longest wait for the index: decisions go on if it cannot be written.
const INDEX_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassEnd {
    /// Everything is decided by the rules of this process.
    Decided,
    Elsewhere,
    /// Another process was started with other rules since, and decides by those.
    Superseded,
    /// It was cancelled; the next one goes on from there.
    Cancelled,
    /// Some could not be decided. They stay as hidden as they are.
    Failed,
}

/// Decides by the rules of this process on everything that they concern, unless another process does so. A failure does
/// not stop the others. If the database fails, the next call continues from there.
pub async fn decide_by_rules(context: &Context, cancel: &CancellationToken) -> Result<PassEnd> {
    let progress = &context.rules_progress;
    let write = context.store.write().await?;
    let mut kept = KeptPass::lock(&write).await?;
    if kept.rules != context.rules.to_string() {
        progress.note(Stage::Superseded);
        return Ok(PassEnd::Superseded);
    }
    let is_ours = kept.holder.is_none_or(|holder| holder == progress.holder);
    // A clock that was ahead must not extend the lease beyond the usual time.
    let left = kept.until.saturating_sub(context.now().0);
    if !is_ours && (1..=LEASE).contains(&left) {
        let (decided, total) = (kept.decided, kept.total);
        progress.note(Stage::Elsewhere { decided, total });
        return Ok(PassEnd::Elsewhere);
    }
    let decided = settings::setting_get(&write, DECIDED).await?;
    if decided.is_some_and(|rules| rules != kept.rules) {
        // From the first decision on, these are no longer the rules by which everything is decided: reverting them has
        // the open reviews decided again.
        write.setting_put(DECIDED, "").await?;
    }
    kept.holder = Some(progress.holder);
    kept.until = context.now().plus(LEASE).0;
    kept.put(&write).await?;
    write.commit().await?;
    let mut pass = Pass::begin(context, kept).await?;
    let end = pass.run(cancel).await?;
    progress.note(match end {
        PassEnd::Decided => Stage::Decided,
        PassEnd::Superseded => Stage::Superseded,
        PassEnd::Failed => Stage::Failed { count: pass.failed },
        PassEnd::Elsewhere | PassEnd::Cancelled => Stage::Waiting,
    });
    Ok(end)
}

#[derive(Debug, Clone, Copy)]
enum Work<'a> {
    Reviews(&'a [review::Model]),
    Agents(&'a [Uuid]),
}

impl<'a> Work<'a> {
    fn singles(self) -> Vec<(Uuid, Self)> {
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

struct Pass<'a> {
    context: &'a Context,
    kept: KeptPass,
    agents: Vec<Uuid>,
    failed: u64,
    seq: i64,
}

impl<'a> Pass<'a> {
    /// Collects the ids of what is to be decided, for each agent at most once.
    async fn begin(context: &'a Context, mut kept: KeptPass) -> Result<Self> {
        let store = &context.store;
        let decided = settings::setting_get(store, DECIDED).await?;
        // The same rules would decide a review as they did when it was opened.
        let is_decided = decided.as_ref() == Some(&kept.rules);
        if std::mem::take(&mut kept.review_failed) {
            (kept.after, kept.reviews_done) = (None, false);
        }
        kept.reviews_done |= is_decided;
        let open = match kept.reviews_done {
            true => 0,
            false => count_open_admissions(store, kept.after).await?,
        };
        let undecided = agents_with_hold(store, Hold::RulesChanged).await?;
        let mut agents: BTreeSet<Uuid> = undecided.into_iter().map(|(id, _)| id).collect();
        agents.extend(agents_to_deny(context, store).await?);
        agents.extend(agents_to_release(context, store).await?);
        let approved = agents_approved_by_option(context, store).await?;
        agents.extend(approved.into_iter().map(|agent| agent.id));
        let left = open + agents.len() as u64;
        kept.total = kept.decided + left;
        if left > 0 {
            let (decided, total) = (kept.decided, kept.total);
            tracing::info!(decided, total, "deciding by the changed rules");
            context
                .rules_progress
                .note(Stage::Deciding { decided, total });
        }
        Ok(Self {
            context,
            kept,
            agents: agents.into_iter().collect(),
            failed: 0,
            seq: 0,
        })
    }

    async fn run(&mut self, cancel: &CancellationToken) -> Result<PassEnd> {
        let mut end = self.decide_reviews(cancel).await?;
        let agents = std::mem::take(&mut self.agents);
        for some in agents.chunks(AT_ONCE) {
            if end.is_some() {
                break;
            }
            end = self.decide(Work::Agents(some), cancel).await?;
        }
        match end {
            None | Some(PassEnd::Cancelled) => self.finish(end.is_none()).await,
            Some(end) => Ok(end),
        }
    }

    /// Decides again on the agents with an open review; returns how the pass ended, if it did.
    async fn decide_reviews(&mut self, cancel: &CancellationToken) -> Result<Option<PassEnd>> {
        let open = open_admissions();
        while !self.kept.reviews_done {
            let after = self.kept.after;
            let store = &self.context.store;
            let page = reviews::review_page(store, &open, after, AT_ONCE as u64).await?;
            let Some(last) = page.last() else {
                self.kept.reviews_done = true;
                break;
            };
            let end = self.decide(Work::Reviews(&page), cancel).await?;
            if end.is_some() {
                return Ok(end);
            }
            self.kept.after = Some(last.id);
        }
        Ok(None)
    }

    /// Decides in one transaction, and if that fails, on each alone; returns how the pass ended, if it did.
    async fn decide(
        &mut self,
        work: Work<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<PassEnd>> {
        if cancel.is_cancelled() {
            return Ok(Some(PassEnd::Cancelled));
        }
        let before = self.kept.decided;
        let end = match self.transact(work).await {
            Err(error) if error.is_of_database() => return Err(error),
            Err(_) => self.decide_singly(work).await?,
            Ok(end) => end,
        };
        self.report(before, cancel).await;
        Ok(end)
    }

    async fn decide_singly(&mut self, work: Work<'_>) -> Result<Option<PassEnd>> {
        for (id, single) in work.singles() {
            match self.transact(single).await {
                Err(error) if error.is_of_database() => return Err(error),
                Err(error) => {
                    let text = error.for_log();
                    tracing::error!(error = text, %id, "the changed rules could not decide");
                    self.failed += 1;
                    self.kept.review_failed |= matches!(single, Work::Reviews(_));
                }
                Ok(None) => {}
                Ok(end) => return Ok(end),
            }
        }
        Ok(None)
    }

    /// Decides in one transaction, unless the pass is no longer this process's.
    async fn transact(&mut self, work: Work<'_>) -> Result<Option<PassEnd>> {
        let context = self.context;
        let write = context.store.write().await?;
        if let Some(end) = self.lock(&write).await? {
            return Ok(Some(end));
        }
        let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
        let mut kept = self.kept.clone();
        match work {
            Work::Reviews(open) => {
                decide_reviewed(context, &write, &mut ledger, open).await?;
                kept.after = open.last().map(|last| last.id);
            }
            Work::Agents(ids) => {
                for id in ids {
                    decide_on_agent(context, &write, &mut ledger, *id).await?;
                }
            }
        }
        let touched = ledger.write(&write).await?;
        kept.decided += work.len() as u64;
        kept.total = kept.total.max(kept.decided);
        kept.until = context.now().plus(LEASE).0;
        kept.put(&write).await?;
        commit_in_bulk(context, write, [&touched]).await?;
        self.kept = kept;
        self.seq = touched.seq.unwrap_or(self.seq);
        Ok(None)
    }

    /// Locks the pass; returns how it has ended for this process, if it has.
    async fn lock(&self, write: &Write) -> Result<Option<PassEnd>> {
        let present = KeptPass::lock(write).await?;
        if present.rules != self.kept.rules {
            return Ok(Some(PassEnd::Superseded));
        }
        let is_ours = present.holder == self.kept.holder;
        Ok((!is_ours).then_some(PassEnd::Elsewhere))
    }

    /// Reports the progress since `before`; after each thousand it is logged, and the index catches up first.
    async fn report(&self, before: u64, cancel: &CancellationToken) {
        let (decided, total) = (self.kept.decided, self.kept.total);
        let context = self.context;
        context
            .rules_progress
            .note(Stage::Deciding { decided, total });
        if decided / LOGGED == before / LOGGED {
            return;
        }
        tracing::info!(decided, total, "decided by the changed rules");
        let mut applied = context.wake.applied.subscribe();
        if !context.wake.following.load(Ordering::Acquire)
            || context.index.applied_seq() >= self.seq
        {
            return;
        }
        let reached = async {
            while *applied.borrow_and_update() < self.seq {
                if applied.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = reached => {}
            () = tokio::time::sleep(INDEX_WITHIN) => {}
        }
    }

    /// Gives the lease back, with the result: complete, or where the next pass continues.
    async fn finish(&self, is_through: bool) -> Result<PassEnd> {
        let write = self.context.store.write().await?;
        if let Some(end) = self.lock(&write).await? {
            return Ok(end);
        }
        let mut kept = KeptPass {
            holder: None,
            until: 0,
            ..self.kept.clone()
        };
        let end = match (is_through, self.failed) {
            (false, _) => PassEnd::Cancelled,
            (true, 0) => {
                write.setting_put(DECIDED, &kept.rules).await?;
                kept.allow_lists = vec![self.context.rules.allow_domains.clone()];
                (kept.decided, kept.total) = (0, 0);
                PassEnd::Decided
            }
            (true, _) => {
                (kept.after, kept.reviews_done) = (None, false);
                (kept.decided, kept.total) = (0, 0);
                PassEnd::Failed
            }
        };
        kept.put(&write).await?;
        write.commit().await?;
        if end == PassEnd::Decided && self.kept.decided > 0 {
            let decided = self.kept.decided;
            tracing::info!(decided, "everything is decided by the changed rules");
        }
        Ok(end)
    }
}
