//! Delivery of outcomes to the sink, in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{CompletedVisit, WorkerConfig, lease};
use crate::{CrawlFrontier, DeliveryError, OutcomeSink, Visit, VisitOutcome};

pub(super) struct OutcomeDeliverer {
    pub(super) queue: mpsc::Receiver<CompletedVisit>,
    pub(super) frontier: Arc<dyn CrawlFrontier>,
    pub(super) sink: Arc<dyn OutcomeSink>,
    pub(super) config: WorkerConfig,
    pub(super) in_flight: Arc<AtomicUsize>,
    pub(super) cancel: CancellationToken,
}

/// Outcomes to deliver together, and their visits, which are released if delivery fails.
#[derive(Default)]
struct OutcomeBatch {
    visits: Vec<Visit>,
    outcomes: Vec<VisitOutcome>,
}

impl OutcomeBatch {
    fn push(&mut self, completed: CompletedVisit) {
        self.visits.push(completed.visit);
        self.outcomes.push(completed.outcome);
    }
}

/// Delivers until the queue is closed and empty.
pub(super) async fn run_deliverer(mut deliverer: OutcomeDeliverer) {
    while let Some(first) = deliverer.queue.recv().await {
        let batch = deliverer.collect_batch(first).await;
        deliverer.deliver_batch(batch).await;
    }
}

impl OutcomeDeliverer {
    /// Collects the outcomes that are ready, and waits a short time for more only while visits are in flight.
    async fn collect_batch(&mut self, first: CompletedVisit) -> OutcomeBatch {
        let deadline = Instant::now() + self.config.batch_wait;
        let mut batch = OutcomeBatch::default();
        batch.push(first);
        while batch.outcomes.len() < self.config.batch_size {
            if let Ok(next) = self.queue.try_recv() {
                batch.push(next);
                continue;
            }
            if self.in_flight.load(Ordering::SeqCst) == 0 || self.cancel.is_cancelled() {
                break;
            }
            match tokio::time::timeout_at(deadline, self.queue.recv()).await {
                Ok(Some(next)) => batch.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        batch
    }

    async fn deliver_batch(&self, batch: OutcomeBatch) {
        let OutcomeBatch {
            mut visits,
            outcomes,
        } = batch;
        let count = outcomes.len();
        let Err(delivery_error) = self.sink.deliver(outcomes).await else {
            tracing::debug!(count, "outcomes delivered");
            return;
        };
        if count > 1 {
            tracing::warn!(error = %delivery_error.error, count, "could not store a batch of outcomes; trying them one by one");
        }
        let mut rejected = Vec::new();
        // A single outcome has already been tried once.
        let offered = u32::from(count == 1);
        for outcome in delivery_error.batch {
            let visit = take_visit_for_outcome(&mut visits, &outcome);
            if !self.deliver_outcome(outcome, offered).await {
                rejected.extend(visit);
            }
        }
        let pause = if self.cancel.is_cancelled() {
            Duration::ZERO
        } else {
            self.config.rejected_pause
        };
        lease::release_visits(self.frontier.as_ref(), rejected, pause).await;
    }

    /// Tries to store one outcome until it succeeds or no attempts are left; after cancellation it tries only once.
    async fn deliver_outcome(&self, outcome: VisitOutcome, mut offered: u32) -> bool {
        let mut outcome = outcome;
        let (domain_key, lease) = (outcome.domain_key, outcome.lease_token);
        loop {
            if offered > 0 {
                let wait = tokio::time::sleep(self.config.backoff(offered));
                tokio::select! {
                    () = wait => {}
                    () = self.cancel.cancelled() => {}
                }
            }
            let DeliveryError { mut batch, error } = match self.sink.deliver(vec![outcome]).await {
                Ok(()) => return true,
                Err(undelivered) => undelivered,
            };
            offered += 1;
            let returned_outcome = batch.pop();
            match returned_outcome {
                Some(same_outcome)
                    if offered < self.config.delivery_attempts && !self.cancel.is_cancelled() =>
                {
                    outcome = same_outcome;
                }
                _ => {
                    tracing::error!(%error, domain_key, lease, offered, "could not store an outcome; its visit is released and will be repeated");
                    return false;
                }
            }
        }
    }
}

/// Removes the visit of an outcome. Both lists have the same order, so it is almost always the first.
fn take_visit_for_outcome(visits: &mut Vec<Visit>, outcome: &VisitOutcome) -> Option<Visit> {
    let position = visits
        .iter()
        .position(|v| v.domain_key == outcome.domain_key && v.lease_token == outcome.lease_token)?;
    Some(visits.remove(position))
}
