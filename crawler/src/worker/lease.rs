//! When to ask the frontier, and what for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::WorkerConfig;
use crate::{Frontier, OwnerError, Visit};

/// Between two looks that found nothing lies at least this, however often the frontier wakes us.
const EMPTY_PAUSE: Duration = Duration::from_millis(20);

/// Visits that were leased just now; none where the frontier only woke us.
pub(super) struct Woken(pub(super) Vec<Visit>);

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What is being waited for.
enum LeaseState {
    /// Nothing: the next want asks at once.
    Ready,
    /// The frontier's answer to a lease.
    Leasing {
        asked_for: usize,
        answer: Pending<Result<Vec<Visit>, OwnerError>>,
    },
    /// Something to become due, or a pause to end.
    Waiting(Pending<()>),
}

/// Asks the frontier whenever there is room and reason to. While one lease is on its way further room
/// gathers, so that under load each asks for many and at leisure for one.
pub(super) struct Leases {
    frontier: Arc<dyn Frontier>,
    config: WorkerConfig,
    state: LeaseState,
    failures: u32,
}

impl Leases {
    pub(super) fn new(frontier: Arc<dyn Frontier>, config: WorkerConfig) -> Self {
        Self {
            frontier,
            config,
            state: LeaseState::Ready,
            failures: 0,
        }
    }

    /// Says how many visits there is room for.
    pub(super) fn want(&mut self, room: usize) {
        if room == 0 || !matches!(self.state, LeaseState::Ready) {
            return;
        }
        let frontier = Arc::clone(&self.frontier);
        self.state = LeaseState::Leasing {
            asked_for: room,
            answer: Box::pin(async move { frontier.lease(room).await }),
        };
    }

    /// Completes when visits were leased or another want may be met. Never completes while nothing is
    /// wanted. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Woken {
        match &mut self.state {
            LeaseState::Ready => std::future::pending().await,
            LeaseState::Waiting(pause) => {
                pause.await;
                self.state = LeaseState::Ready;
                Woken(Vec::new())
            }
            LeaseState::Leasing { asked_for, answer } => {
                let asked_for = *asked_for;
                let answer = answer.await;
                self.settle(asked_for, answer)
            }
        }
    }

    /// Waits for a lease that is on its way, so that its visits can be given back.
    pub(super) async fn stop(self) -> Vec<Visit> {
        match self.state {
            LeaseState::Leasing { answer, .. } => answer.await.unwrap_or_else(|error| {
                tracing::warn!(%error, "leasing failed while stopping");
                Vec::new()
            }),
            LeaseState::Ready | LeaseState::Waiting(_) => Vec::new(),
        }
    }

    fn settle(&mut self, asked_for: usize, answer: Result<Vec<Visit>, OwnerError>) -> Woken {
        match answer {
            Ok(visits) => {
                self.failures = 0;
                self.state = if visits.len() < asked_for {
                    LeaseState::Waiting(self.until_due())
                } else {
                    LeaseState::Ready
                };
                Woken(visits)
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                let wait = self.config.backoff(self.failures);
                tracing::warn!(%error, ?wait, "the frontier cannot be asked");
                self.state = LeaseState::Waiting(Box::pin(tokio::time::sleep(wait)));
                Woken(Vec::new())
            }
        }
    }

    /// Waits for the frontier's word or for the poll, but for [`EMPTY_PAUSE`] at least.
    fn until_due(&self) -> Pending<()> {
        let frontier = Arc::clone(&self.frontier);
        let poll = self.config.idle_poll;
        let pause = Instant::now() + EMPTY_PAUSE;
        Box::pin(async move {
            let _elapsed = tokio::time::timeout(poll, frontier.wait()).await;
            tokio::time::sleep_until(pause).await;
        })
    }
}

/// How often visits are given back before their leases are left to run out.
const GIVE_BACK_ATTEMPTS: u32 = 3;

/// Gives visits back, to be made again after the pause; where that fails again and again their leases run out
/// by themselves.
///
/// A connection to the database may just have gone, above all when a process ends: one that a request's thread
/// has opened goes with that thread. The next attempt takes another.
pub(super) async fn give_back(frontier: &dyn Frontier, visits: Vec<Visit>, pause: Duration) {
    if visits.is_empty() {
        return;
    }
    let count = visits.len();
    for attempt in 1..=GIVE_BACK_ATTEMPTS {
        let Err(error) = frontier.give_back(visits.clone(), pause).await else {
            return;
        };
        if attempt < GIVE_BACK_ATTEMPTS {
            tokio::time::sleep(EMPTY_PAUSE * attempt).await;
        } else {
            tracing::warn!(%error, count, "visits could not be given back; their leases will run out");
        }
    }
}
