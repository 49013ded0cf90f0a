//! The worker: leases visits, makes them, and delivers their outcomes.
//!
//! One task leases and starts visits, each visit is a task of its own, and one task delivers. A bounded channel lies
//! between them, so that a slow sink stops the fetching and nothing piles up.

mod deliver;
mod lease;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fetch::{Fetcher, KeySetRules};
use crate::{Frontier, MAX_SOURCES_PER_VISIT, Sink, Visit, VisitOutcome};

use lease::{Leases, Woken};

/// Settings of the worker. The defaults are those of production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Most concurrent visits: 64.
    pub concurrency: usize,
    /// How long room for a few visits waits for more after a lease that was met in full: 10 ms.
    pub lease_wait: Duration,
    /// Places that a lease may leave free although visits are due, for visits that are more urgent: none.
    pub reserved: usize,
    /// Most outcomes in a group: 200.
    pub group_size: usize,
    /// How long an outcome waits for others while further visits are under way: 20 ms.
    pub group_wait: Duration,
    /// Attempts to store one outcome before its visit is returned: 3.
    pub delivery_attempts: u32,
    /// Pause before a visit whose outcome was not stored, or that this process could not make, is made again: 5 min. The
    /// sink may refuse it again, and the origin must not be fetched in a hot loop meanwhile.
    pub refused_pause: Duration,
    /// Wait after a failed delivery or lease, doubled with each further failure: 100 ms.
    pub first_backoff: Duration,
    /// Longest such wait: 10 s.
    pub max_backoff: Duration,
    /// How long the worker relies on being woken before it polls by itself: 30 s.
    pub idle_poll: Duration,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease_wait: Duration::from_millis(10),
            reserved: 0,
            group_size: 200,
            group_wait: Duration::from_millis(20),
            delivery_attempts: 3,
            refused_pause: Duration::from_secs(300),
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
struct Finished {
    visit: Visit,
    outcome: VisitOutcome,
    /// Counts the visit as under way until the deliverer has it.
    _under_way: UnderWay,
}

/// Counts leased visits that the deliverer does not have yet, so that it knows whether waiting for more can help.
#[derive(Debug)]
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counter))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Works until `cancel` is cancelled: leases due visits, makes at most [`WorkerConfig::concurrency`] of them at once,
/// and delivers their outcomes in groups.
///
/// Once cancelled it leases nothing more, returns the visits of running fetches, which it aborts, delivers the finished
/// ones, and ends. Calls to the frontier or the sink are never aborted, lest a lease or a group be lost.
pub async fn run(
    frontier: Arc<dyn Frontier>,
    sink: Arc<dyn Sink>,
    fetcher: Arc<Fetcher>,
    config: WorkerConfig,
    cancel: CancellationToken,
) {
    let under_way = Arc::new(AtomicUsize::new(0));
    let (finished, queue) = mpsc::channel(config.group_size.max(1));
    let deliverer = tokio::spawn(deliver::run(deliver::Deliverer {
        queue,
        frontier: Arc::clone(&frontier),
        sink,
        config,
        under_way: Arc::clone(&under_way),
        cancel: cancel.clone(),
    }));

    let unmade = lease_and_visit(&frontier, fetcher, config, &cancel, finished, &under_way).await;
    lease::give_back(frontier.as_ref(), unmade, Duration::ZERO).await;
    // The last sender is dropped, so the deliverer ends when its queue is empty.
    if let Err(error) = deliverer.await {
        tracing::error!(%error, "the delivery task crashed; the leases of its visits will expire");
    }
}

/// The main loop. Returns the visits that were leased but not made.
async fn lease_and_visit(
    frontier: &Arc<dyn Frontier>,
    fetcher: Arc<Fetcher>,
    config: WorkerConfig,
    cancel: &CancellationToken,
    finished: mpsc::Sender<Finished>,
    under_way: &Arc<AtomicUsize>,
) -> Vec<Visit> {
    let mut visits: JoinSet<Ended> = JoinSet::new();
    let mut unmade = Vec::new();
    let mut leases = Leases::new(Arc::clone(frontier), config);
    loop {
        leases.want(config.concurrency.max(1).saturating_sub(visits.len()));
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(ended) = visits.join_next() => match ended_of(ended) {
                Ended::Done => {}
                Ended::Aborted(visit) => unmade.push(visit),
                Ended::Failed(visit) => {
                    lease::give_back(frontier.as_ref(), vec![visit], config.refused_pause).await;
                }
                Ended::OutOfDescriptors(visit) => {
                    leases.pause();
                    frontier.note_descriptor_shortage();
                    lease::give_back(frontier.as_ref(), vec![visit], config.refused_pause).await;
                }
            },
            Woken(leased) = leases.next() => {
                for visit in leased {
                    let under_way = UnderWay::new(under_way);
                    let visiting = make_visit(
                        visit,
                        Arc::clone(frontier),
                        Arc::clone(&fetcher),
                        cancel.clone(),
                        finished.clone(),
                        under_way,
                    );
                    visits.spawn(visiting);
                }
            }
        }
    }
    unmade.extend(leases.stop().await);
    while let Some(ended) = visits.join_next().await {
        match ended_of(ended) {
            Ended::Done => {}
            Ended::Aborted(visit) | Ended::Failed(visit) | Ended::OutOfDescriptors(visit) => {
                unmade.push(visit);
            }
        }
    }
    unmade
}

enum Ended {
    /// Its outcome was passed on, it must not be made, or the task crashed.
    Done,
    /// It was aborted, because the worker stops.
    Aborted(Visit),
    /// The frontier could not tell whether it may begin.
    Failed(Visit),
    /// Its requests could not be made, because this process has no file descriptors left.
    OutOfDescriptors(Visit),
}

/// Makes one visit, if it may begin, and passes its outcome on.
async fn make_visit(
    visit: Visit,
    frontier: Arc<dyn Frontier>,
    fetcher: Arc<Fetcher>,
    cancel: CancellationToken,
    finished: mpsc::Sender<Finished>,
    under_way: UnderWay,
) -> Ended {
    let may_begin = tokio::select! {
        biased;
        may_begin = frontier.may_begin(&visit) => may_begin,
        () = cancel.cancelled() => return Ended::Aborted(visit),
    };
    match may_begin {
        Ok(true) => {}
        Ok(false) => return Ended::Done,
        Err(error) => {
            tracing::warn!(%error, domain = visit.domain, "a visit could not begin; it is made later");
            return Ended::Failed(visit);
        }
    }
    let outcome = tokio::select! {
        biased;
        outcome = ask_sources(&visit, &fetcher) => outcome,
        () = cancel.cancelled() => return Ended::Aborted(visit),
    };
    let Some(outcome) = outcome else {
        return Ended::OutOfDescriptors(visit);
    };
    let finished_visit = Finished {
        visit,
        outcome,
        _under_way: under_way,
    };
    match finished.send(finished_visit).await {
        Ok(()) => Ended::Done,
        Err(unsent) => Ended::Aborted(unsent.0.visit),
    }
}

/// Fetches a visit's sources one after another, on connections that close with the visit. `None` if this process ran out of
/// file descriptors: even a part of the visit, such as a missing key set, would be held against the agent.
async fn ask_sources(visit: &Visit, fetcher: &Fetcher) -> Option<VisitOutcome> {
    let first = visit.sources.first();
    let own = first.map(|task| fetcher.for_visit(task.slot.url()));
    let fetcher = own.as_ref().unwrap_or(fetcher);
    let mut sources = Vec::with_capacity(visit.sources.len().min(MAX_SOURCES_PER_VISIT));
    let rules = KeySetRules {
        dns_proved: visit.dns_proved,
        hosts: fetcher.key_hosts(),
    };
    for task in visit.sources.iter().take(MAX_SOURCES_PER_VISIT) {
        let result = fetcher.fetch_source_with(task, &rules).await;
        // All sources of a visit lie on one host: if it wants no further request, the others wait too.
        let alone = result.asks_for_rest();
        sources.push(result);
        if fetcher.ran_out_of_descriptors() {
            return None;
        }
        if alone {
            break;
        }
    }
    Some(VisitOutcome {
        domain_key: visit.domain_key,
        lease: visit.lease,
        sources,
    })
}

fn ended_of(ended: Result<Ended, tokio::task::JoinError>) -> Ended {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "a visit crashed; its lease will expire");
        Ended::Done
    })
}
