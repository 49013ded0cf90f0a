//! Worker: leases visits, makes them, and delivers their outcomes.
//!
//! One task leases and starts visits, each visit is a task of its own, and one task delivers the outcomes. A bounded
//! channel connects them, so that a slow sink stops the fetching and no backlog builds up.

mod delivery;
mod lease;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::fetch::{Fetcher, KeySetRules};
use crate::trace_spans::{TRACE_TARGET, count_attribute};
use crate::{CrawlFrontier, MAX_SOURCES_PER_VISIT, OutcomeSink, Visit, VisitOutcome};

use lease::{LeaseRequester, NewLeases};

/// Settings of the worker. The defaults are for production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Maximum number of concurrent visits: 64.
    pub concurrency: usize,
    /// Wait for further permits after a lease was granted in full, if only a few are free: 10 ms.
    pub lease_wait: Duration,
    /// Permits that a lease may leave free although visits are due, reserved for more urgent visits: none.
    pub reserved_permits: usize,
    /// Maximum number of outcomes in a batch: 200.
    pub batch_size: usize,
    /// Time that an outcome waits for others while further visits are in flight: 20 ms.
    pub batch_wait: Duration,
    /// Attempts to store one outcome before its visit is released: 3.
    pub delivery_attempts: u32,
    /// Pause before a visit is repeated after its outcome was not stored or this process could not make it: 5 min. The
    /// sink may reject the outcome again, and the origin must not be fetched in a hot loop meanwhile.
    pub rejected_pause: Duration,
    /// Wait after a failed delivery or lease, doubled with each further failure: 100 ms.
    pub first_backoff: Duration,
    /// Maximum wait after a failure: 10 s.
    pub max_backoff: Duration,
    /// Maximum time without a wake-up before the worker polls: 30 s.
    pub idle_poll: Duration,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease_wait: Duration::from_millis(10),
            reserved_permits: 0,
            batch_size: 200,
            batch_wait: Duration::from_millis(20),
            delivery_attempts: 3,
            rejected_pause: Duration::from_secs(300),
            first_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            idle_poll: Duration::from_secs(30),
        }
    }
}

impl WorkerConfig {
    fn backoff(&self, failures: u32) -> Duration {
        self.first_backoff
            .saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)))
            .min(self.max_backoff)
    }
}

#[derive(Debug)]
struct CompletedVisit {
    visit: Visit,
    outcome: VisitOutcome,
    /// Keeps the visit counted as in flight until the deliverer has its outcome.
    _in_flight: InFlightGuard,
}

/// Counts leased visits whose outcomes the deliverer does not have yet, so that it knows whether waiting can help.
#[derive(Debug)]
struct InFlightGuard(Arc<AtomicUsize>);

impl InFlightGuard {
    fn new(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counter))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs until `cancel` is cancelled: leases due visits, makes at most [`WorkerConfig::concurrency`] of them at once,
/// and delivers their outcomes in batches.
///
/// After cancellation the worker leases nothing more, aborts running visits and releases them, delivers the finished
/// ones, and returns. Calls to the frontier or the sink are never aborted, so that no lease or batch is lost.
pub async fn run_worker(
    frontier: Arc<dyn CrawlFrontier>,
    sink: Arc<dyn OutcomeSink>,
    fetcher: Arc<Fetcher>,
    config: WorkerConfig,
    cancel: CancellationToken,
) {
    let in_flight = Arc::new(AtomicUsize::new(0));
    let (completed_sender, queue) = mpsc::channel(config.batch_size.max(1));
    let deliverer = tokio::spawn(delivery::run_deliverer(delivery::OutcomeDeliverer {
        queue,
        frontier: Arc::clone(&frontier),
        sink,
        config,
        in_flight: Arc::clone(&in_flight),
        cancel: cancel.clone(),
    }));

    let unmade_visits = lease_and_visit(
        &frontier,
        fetcher,
        config,
        &cancel,
        completed_sender,
        &in_flight,
    )
    .await;
    lease::release_visits(frontier.as_ref(), unmade_visits, Duration::ZERO).await;
    // The last sender is dropped, so the deliverer ends when its queue is empty.
    if let Err(error) = deliverer.await {
        tracing::error!(%error, "the delivery task crashed; the leases of its visits will expire");
    }
}

/// The main loop. Returns the visits that were leased but not made.
async fn lease_and_visit(
    frontier: &Arc<dyn CrawlFrontier>,
    fetcher: Arc<Fetcher>,
    config: WorkerConfig,
    cancel: &CancellationToken,
    completed_sender: mpsc::Sender<CompletedVisit>,
    in_flight: &Arc<AtomicUsize>,
) -> Vec<Visit> {
    let mut visits: JoinSet<VisitEnd> = JoinSet::new();
    let mut unmade_visits = Vec::new();
    let mut leases = LeaseRequester::new(Arc::clone(frontier), config);
    loop {
        leases.request_leases_if_room(config.concurrency.max(1).saturating_sub(visits.len()));
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(joined) = visits.join_next() => match visit_end_from_join(joined) {
                VisitEnd::Done => {}
                VisitEnd::Aborted(visit) => unmade_visits.push(visit),
                VisitEnd::Failed(visit) => {
                    lease::release_visits(frontier.as_ref(), vec![visit], config.rejected_pause).await;
                }
                VisitEnd::OutOfDescriptors(visit) => {
                    leases.pause_requests();
                    frontier.record_descriptor_shortage();
                    lease::release_visits(frontier.as_ref(), vec![visit], config.rejected_pause).await;
                }
            },
            NewLeases(leased) = leases.next_leases() => {
                for visit in leased {
                    let in_flight_guard = InFlightGuard::new(in_flight);
                    let visit_task = make_visit(
                        visit,
                        Arc::clone(frontier),
                        Arc::clone(&fetcher),
                        cancel.clone(),
                        completed_sender.clone(),
                        in_flight_guard,
                    );
                    visits.spawn(visit_task);
                }
            }
        }
    }
    unmade_visits.extend(leases.finish_pending_request().await);
    while let Some(joined) = visits.join_next().await {
        match visit_end_from_join(joined) {
            VisitEnd::Done => {}
            VisitEnd::Aborted(visit)
            | VisitEnd::Failed(visit)
            | VisitEnd::OutOfDescriptors(visit) => {
                unmade_visits.push(visit);
            }
        }
    }
    unmade_visits
}

enum VisitEnd {
    /// The outcome was passed on, the visit must not be made, or the task crashed.
    Done,
    /// The visit was aborted because the worker is stopping.
    Aborted(Visit),
    /// The frontier could not say whether the visit may start.
    Failed(Visit),
    /// The requests could not be made, because this process has no file descriptors left.
    OutOfDescriptors(Visit),
}

/// Makes one visit, if it may start, and passes its outcome on.
async fn make_visit(
    visit: Visit,
    frontier: Arc<dyn CrawlFrontier>,
    fetcher: Arc<Fetcher>,
    cancel: CancellationToken,
    completed_sender: mpsc::Sender<CompletedVisit>,
    in_flight_guard: InFlightGuard,
) -> VisitEnd {
    let may_begin = tokio::select! {
        biased;
        may_begin = frontier.can_start_visit(&visit) => may_begin,
        () = cancel.cancelled() => return VisitEnd::Aborted(visit),
    };
    match may_begin {
        Ok(true) => {}
        Ok(false) => return VisitEnd::Done,
        Err(error) => {
            tracing::warn!(%error, domain = visit.domain, "could not check whether a visit may start; it will be retried later");
            return VisitEnd::Failed(visit);
        }
    }
    let span = start_visit_span(&visit);
    let outcome = tokio::select! {
        biased;
        outcome = fetch_sources(&visit, &fetcher).instrument(span.clone()) => outcome,
        () = cancel.cancelled() => return VisitEnd::Aborted(visit),
    };
    let Some(outcome) = outcome else {
        return VisitEnd::OutOfDescriptors(visit);
    };
    record_outcomes(&span, &outcome);
    drop(span);
    let completed = CompletedVisit {
        visit,
        outcome,
        _in_flight: in_flight_guard,
    };
    match completed_sender.send(completed).await {
        Ok(()) => VisitEnd::Done,
        Err(unsent) => VisitEnd::Aborted(unsent.0.visit),
    }
}

fn start_visit_span(visit: &Visit) -> Span {
    tracing::trace_span!(
        target: TRACE_TARGET,
        "visit",
        domain = visit.domain.as_str(),
        sources = count_attribute(visit.sources.len()),
        outcomes = Empty,
    )
}

/// Adds the different outcomes of the visit's requests to its span.
fn record_outcomes(span: &Span, visit: &VisitOutcome) {
    if span.is_disabled() {
        return;
    }
    let attempts = visit.sources.iter().flat_map(|source| &source.attempts);
    let outcomes: BTreeSet<&str> = attempts.map(|attempt| attempt.outcome.as_str()).collect();
    let outcomes: Vec<&str> = outcomes.into_iter().collect();
    span.record("outcomes", outcomes.join(",").as_str());
}

/// Fetches a visit's sources one after another, on connections that close with the visit. `None` if this process ran
/// out of file descriptors: even a partial result, such as a missing key set, would count against the agent.
async fn fetch_sources(visit: &Visit, fetcher: &Fetcher) -> Option<VisitOutcome> {
    let first = visit.sources.first();
    let visit_fetcher = first.map(|task| fetcher.for_visit(task.target.url()));
    let fetcher = visit_fetcher.as_ref().unwrap_or(fetcher);
    let mut sources = Vec::with_capacity(visit.sources.len().min(MAX_SOURCES_PER_VISIT));
    let rules = KeySetRules {
        dns_proved: visit.dns_proved,
        trusted_hosts: fetcher.trusted_key_hosts(),
    };
    for task in visit.sources.iter().take(MAX_SOURCES_PER_VISIT) {
        let result = fetcher.fetch_source_and_keys(task, &rules).await;
        // All sources of a visit are on one host: if it wants no further requests, the remaining sources wait too.
        let stops_visit = result.is_throttled();
        sources.push(result);
        if fetcher.ran_out_of_descriptors() {
            return None;
        }
        if stops_visit {
            break;
        }
    }
    Some(VisitOutcome {
        domain_key: visit.domain_key,
        lease_token: visit.lease_token,
        sources,
    })
}

fn visit_end_from_join(joined: Result<VisitEnd, tokio::task::JoinError>) -> VisitEnd {
    joined.unwrap_or_else(|error| {
        tracing::error!(%error, "a visit crashed; its lease will expire");
        VisitEnd::Done
    })
}
