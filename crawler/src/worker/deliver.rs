//! Delivery of outcomes to the sink, in groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Finished, WorkerConfig, lease};
use crate::{Frontier, Sink, Undelivered, Visit, VisitOutcome};

pub(super) struct Deliverer {
    pub(super) queue: mpsc::Receiver<Finished>,
    pub(super) frontier: Arc<dyn Frontier>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) config: WorkerConfig,
    pub(super) under_way: Arc<AtomicUsize>,
    pub(super) cancel: CancellationToken,
}

/// Outcomes to deliver together, and their visits, which are returned if delivery fails.
#[derive(Default)]
struct Group {
    visits: Vec<Visit>,
    outcomes: Vec<VisitOutcome>,
}

impl Group {
    fn push(&mut self, finished: Finished) {
        self.visits.push(finished.visit);
        self.outcomes.push(finished.outcome);
    }
}

/// Delivers until the queue is closed and empty.
pub(super) async fn run(mut deliverer: Deliverer) {
    while let Some(first) = deliverer.queue.recv().await {
        let group = deliverer.gather(first).await;
        deliverer.deliver(group).await;
    }
}

impl Deliverer {
    /// Takes the outcomes that are ready, and waits a short time for more only while visits are under way.
    async fn gather(&mut self, first: Finished) -> Group {
        let deadline = Instant::now() + self.config.group_wait;
        let mut group = Group::default();
        group.push(first);
        while group.outcomes.len() < self.config.group_size {
            if let Ok(next) = self.queue.try_recv() {
                group.push(next);
                continue;
            }
            if self.under_way.load(Ordering::SeqCst) == 0 || self.cancel.is_cancelled() {
                break;
            }
            match tokio::time::timeout_at(deadline, self.queue.recv()).await {
                Ok(Some(next)) => group.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        group
    }

    async fn deliver(&self, group: Group) {
        let Group {
            mut visits,
            outcomes,
        } = group;
        let count = outcomes.len();
        let Err(undelivered) = self.sink.deliver(outcomes).await else {
            tracing::debug!(count, "outcomes delivered");
            return;
        };
        if count > 1 {
            tracing::warn!(error = %undelivered.error, count, "could not store a group of outcomes; trying them one by one");
        }
        let mut refused = Vec::new();
        // A single outcome has already been tried once.
        let offered = u32::from(count == 1);
        for outcome in undelivered.group {
            let visit = take_visit(&mut visits, &outcome);
            if !self.deliver_one(outcome, offered).await {
                refused.extend(visit);
            }
        }
        let pause = if self.cancel.is_cancelled() {
            Duration::ZERO
        } else {
            self.config.refused_pause
        };
        lease::give_back(self.frontier.as_ref(), refused, pause).await;
    }

    /// Tries to store one outcome until it succeeds or the attempts are used up; after cancellation only once.
    async fn deliver_one(&self, outcome: VisitOutcome, mut offered: u32) -> bool {
        let mut outcome = outcome;
        let (domain_key, lease) = (outcome.domain_key, outcome.lease);
        loop {
            if offered > 0 {
                let wait = tokio::time::sleep(self.config.backoff(offered));
                tokio::select! {
                    () = wait => {}
                    () = self.cancel.cancelled() => {}
                }
            }
            let Undelivered { mut group, error } = match self.sink.deliver(vec![outcome]).await {
                Ok(()) => return true,
                Err(undelivered) => undelivered,
            };
            offered += 1;
            let again = group.pop();
            match again {
                Some(same)
                    if offered < self.config.delivery_attempts && !self.cancel.is_cancelled() =>
                {
                    outcome = same;
                }
                _ => {
                    tracing::error!(%error, domain_key, lease, offered, "could not store an outcome; its visit is returned and will be made again");
                    return false;
                }
            }
        }
    }
}

/// Removes the visit of an outcome. Both lists have the same order, so it is nearly always the first.
fn take_visit(visits: &mut Vec<Visit>, outcome: &VisitOutcome) -> Option<Visit> {
    let position = visits
        .iter()
        .position(|v| v.domain_key == outcome.domain_key && v.lease == outcome.lease)?;
    Some(visits.remove(position))
}
