//! Leasing of visits from the frontier: when, and how many.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::WorkerConfig;
use crate::{BackendError, CrawlFrontier, Visit};

/// Minimum pause after an empty lease, however often the frontier wakes the worker.
const EMPTY_LEASE_PAUSE: Duration = Duration::from_millis(20);

/// Newly leased visits; empty if the frontier only woke the worker.
pub(super) struct NewLeases(pub(super) Vec<Visit>);

type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum LeaseRequesterState {
    /// Not waiting: the next request is made at once.
    Ready,
    /// Waiting for enough permits or the end of a short wait: a request for each ended visit would cost more than the
    /// visit.
    Gathering(BoxedFuture<()>),
    Leasing {
        requested: usize,
        response: BoxedFuture<Result<Vec<Visit>, BackendError>>,
    },
    /// Waiting for a source to become due, or for the end of a pause.
    Waiting(BoxedFuture<()>),
}

/// Divisor for the share of all permits that makes a busy worker send a request at once: a quarter.
const GATHER_DIVISOR: usize = 4;

/// Requests leases whenever there are free permits and a reason to try. Permits that become free during or shortly
/// after a request are collected, so that a busy worker requests many visits at a time and an idle one single visits.
pub(super) struct LeaseRequester {
    frontier: Arc<dyn CrawlFrontier>,
    config: WorkerConfig,
    state: LeaseRequesterState,
    failure_count: u32,
    not_before: Option<Instant>,
    /// Whether the last request was for reserved permits only, so that it says nothing about visits for other permits.
    requested_reserved_only: bool,
}

impl LeaseRequester {
    pub(super) fn new(frontier: Arc<dyn CrawlFrontier>, config: WorkerConfig) -> Self {
        Self {
            frontier,
            config,
            state: LeaseRequesterState::Ready,
            failure_count: 0,
            not_before: None,
            requested_reserved_only: false,
        }
    }

    /// Makes no requests for a while, because visits cannot be made now. A request in flight is not affected.
    pub(super) fn pause_requests(&mut self) {
        self.not_before = Some(Instant::now() + self.config.max_backoff);
    }

    pub(super) fn request_leases_if_room(&mut self, room: usize) {
        let may_request = match &self.state {
            LeaseRequesterState::Ready => room > 0,
            LeaseRequesterState::Gathering(_) => {
                room >= self.config.reserved_permits + self.free_permit_threshold()
            }
            LeaseRequesterState::Waiting(_) => {
                self.requested_reserved_only && room > self.config.reserved_permits
            }
            LeaseRequesterState::Leasing { .. } => false,
        };
        if !may_request {
            return;
        }
        if let Some(until) = self
            .not_before
            .take()
            .filter(|until| *until > Instant::now())
        {
            self.requested_reserved_only = false;
            self.state = LeaseRequesterState::Waiting(Box::pin(tokio::time::sleep_until(until)));
            return;
        }
        self.requested_reserved_only = room <= self.config.reserved_permits;
        let frontier = Arc::clone(&self.frontier);
        self.state = LeaseRequesterState::Leasing {
            requested: room,
            response: Box::pin(async move { frontier.lease_visits(room).await }),
        };
    }

    /// Number of permits beyond the reserved ones that must become free before a request is made at once.
    fn free_permit_threshold(&self) -> usize {
        (self.config.concurrency / GATHER_DIVISOR).max(1)
    }

    /// Completes when visits were leased or another request may succeed, never without free permits. Cancel-safe:
    /// dropping the future loses nothing.
    pub(super) async fn next_leases(&mut self) -> NewLeases {
        match &mut self.state {
            LeaseRequesterState::Ready => std::future::pending().await,
            LeaseRequesterState::Waiting(pause) | LeaseRequesterState::Gathering(pause) => {
                pause.await;
                self.state = LeaseRequesterState::Ready;
                NewLeases(Vec::new())
            }
            LeaseRequesterState::Leasing {
                requested,
                response,
            } => {
                let requested = *requested;
                let response = response.await;
                self.handle_response(requested, response)
            }
        }
    }

    /// Waits for a lease request in flight, so that its visits can be released.
    pub(super) async fn finish_pending_request(self) -> Vec<Visit> {
        match self.state {
            LeaseRequesterState::Leasing { response, .. } => {
                response.await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "a lease request failed during shutdown");
                    Vec::new()
                })
            }
            LeaseRequesterState::Ready
            | LeaseRequesterState::Gathering(_)
            | LeaseRequesterState::Waiting(_) => Vec::new(),
        }
    }

    fn handle_response(
        &mut self,
        requested: usize,
        response: Result<Vec<Visit>, BackendError>,
    ) -> NewLeases {
        match response {
            Ok(visits) => {
                self.failure_count = 0;
                let is_full =
                    !visits.is_empty() && visits.len() + self.config.reserved_permits >= requested;
                self.state = if is_full {
                    let wait = tokio::time::sleep(self.config.lease_wait);
                    LeaseRequesterState::Gathering(Box::pin(wait))
                } else {
                    LeaseRequesterState::Waiting(self.wait_for_due_source())
                };
                NewLeases(visits)
            }
            Err(error) => {
                self.failure_count = self.failure_count.saturating_add(1);
                let wait = self.config.backoff(self.failure_count);
                tracing::warn!(%error, ?wait, "could not lease visits");
                self.requested_reserved_only = false;
                self.state = LeaseRequesterState::Waiting(Box::pin(tokio::time::sleep(wait)));
                NewLeases(Vec::new())
            }
        }
    }

    /// Waits until the frontier wakes the worker or the poll interval passes, but at least [`EMPTY_LEASE_PAUSE`].
    fn wait_for_due_source(&self) -> BoxedFuture<()> {
        let frontier = Arc::clone(&self.frontier);
        let poll = self.config.idle_poll;
        let pause = Instant::now() + EMPTY_LEASE_PAUSE;
        Box::pin(async move {
            let _elapsed = tokio::time::timeout(poll, frontier.wait_for_due()).await;
            tokio::time::sleep_until(pause).await;
        })
    }
}

/// Attempts to release visits before their leases are left to expire.
const RELEASE_ATTEMPTS: u32 = 3;

/// Releases visits, to be made again after the pause. If every attempt fails, their leases expire.
///
/// A connection that was opened on a request's thread ends with that thread, for example when the process ends. The
/// next attempt uses another connection.
pub(super) async fn release_visits(
    frontier: &dyn CrawlFrontier,
    visits: Vec<Visit>,
    pause: Duration,
) {
    if visits.is_empty() {
        return;
    }
    let count = visits.len();
    for attempt in 1..=RELEASE_ATTEMPTS {
        let Err(error) = frontier.release_visits(visits.clone(), pause).await else {
            return;
        };
        if attempt < RELEASE_ATTEMPTS {
            tokio::time::sleep(EMPTY_LEASE_PAUSE * attempt).await;
        } else {
            tracing::warn!(%error, count, "could not release visits; their leases will expire");
        }
    }
}
