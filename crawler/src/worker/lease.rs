//! Leases visits from the frontier: when, and how many.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::WorkerConfig;
use crate::{Frontier, OwnerError, Visit};

/// Shortest pause after a lease that found nothing, however often the frontier wakes us.
const EMPTY_PAUSE: Duration = Duration::from_millis(20);

/// Visits that were just leased; empty where the frontier only woke us.
pub(super) struct Woken(pub(super) Vec<Visit>);

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum LeaseState {
    /// None: the next request is made at once.
    Ready,
    /// Enough room, or the end of a short wait for it: a request for each ended visit would cost more than the visit.
    Gathering(Pending<()>),
    Leasing {
        asked_for: usize,
        answer: Pending<Result<Vec<Visit>, OwnerError>>,
    },
    /// A source becoming due, or the end of a pause.
    Waiting(Pending<()>),
}

/// Part of all visits for which a busy worker makes a request at once: a quarter.
const PART: usize = 4;

/// Requests leases whenever there is room for visits and a reason to try. Room that becomes free during or shortly
/// after a request is collected, so that a busy worker requests many visits at a time and an idle one single visits.
pub(super) struct Leases {
    frontier: Arc<dyn Frontier>,
    config: WorkerConfig,
    state: LeaseState,
    failures: u32,
    not_before: Option<Instant>,
    /// Whether the last request was for reserved places alone, so that nothing is known of visits for other places.
    asked_for_reserved: bool,
}

impl Leases {
    pub(super) fn new(frontier: Arc<dyn Frontier>, config: WorkerConfig) -> Self {
        Self {
            frontier,
            config,
            state: LeaseState::Ready,
            failures: 0,
            not_before: None,
            asked_for_reserved: false,
        }
    }

    /// Requests nothing for a while: visits cannot be made now. A request that is under way is not affected.
    pub(super) fn pause(&mut self) {
        self.not_before = Some(Instant::now() + self.config.max_backoff);
    }

    pub(super) fn want(&mut self, room: usize) {
        let may_ask = match &self.state {
            LeaseState::Ready => room > 0,
            LeaseState::Gathering(_) => room >= self.config.reserved + self.good_part(),
            LeaseState::Waiting(_) => self.asked_for_reserved && room > self.config.reserved,
            LeaseState::Leasing { .. } => false,
        };
        if !may_ask {
            return;
        }
        if let Some(until) = self
            .not_before
            .take()
            .filter(|until| *until > Instant::now())
        {
            self.asked_for_reserved = false;
            self.state = LeaseState::Waiting(Box::pin(tokio::time::sleep_until(until)));
            return;
        }
        self.asked_for_reserved = room <= self.config.reserved;
        let frontier = Arc::clone(&self.frontier);
        self.state = LeaseState::Leasing {
            asked_for: room,
            answer: Box::pin(async move { frontier.lease(room).await }),
        };
    }

    /// How many places have to become free beside the reserved ones, so that a request is made at once.
    fn good_part(&self) -> usize {
        (self.config.concurrency / PART).max(1)
    }

    /// Completes when visits were leased or another request may succeed, never without room. Dropping it loses nothing.
    pub(super) async fn next(&mut self) -> Woken {
        match &mut self.state {
            LeaseState::Ready => std::future::pending().await,
            LeaseState::Waiting(pause) | LeaseState::Gathering(pause) => {
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

    /// Waits for a lease that is under way, so that its visits can be returned.
    pub(super) async fn stop(self) -> Vec<Visit> {
        match self.state {
            LeaseState::Leasing { answer, .. } => answer.await.unwrap_or_else(|error| {
                tracing::warn!(%error, "leasing failed while stopping");
                Vec::new()
            }),
            LeaseState::Ready | LeaseState::Gathering(_) | LeaseState::Waiting(_) => Vec::new(),
        }
    }

    fn settle(&mut self, asked_for: usize, answer: Result<Vec<Visit>, OwnerError>) -> Woken {
        match answer {
            Ok(visits) => {
                self.failures = 0;
                let is_full =
                    !visits.is_empty() && visits.len() + self.config.reserved >= asked_for;
                self.state = if is_full {
                    let wait = tokio::time::sleep(self.config.lease_wait);
                    LeaseState::Gathering(Box::pin(wait))
                } else {
                    LeaseState::Waiting(self.until_due())
                };
                Woken(visits)
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                let wait = self.config.backoff(self.failures);
                tracing::warn!(%error, ?wait, "could not lease visits");
                self.asked_for_reserved = false;
                self.state = LeaseState::Waiting(Box::pin(tokio::time::sleep(wait)));
                Woken(Vec::new())
            }
        }
    }

    /// Waits until the frontier wakes us or the poll interval passes, but at least [`EMPTY_PAUSE`].
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

/// Attempts to return visits before their leases are left to expire.
const GIVE_BACK_ATTEMPTS: u32 = 3;

/// Returns visits, to be made again after the pause. If every attempt fails, their leases expire.
///
/// A connection that was opened on a request's thread ends with that thread, as when the process ends. The next attempt
/// uses another one.
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
            tracing::warn!(%error, count, "could not return visits; their leases will expire");
        }
    }
}
