//! The pace, plan and circuit breaker of visits, in one process.

use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::circuit_breaker::{CircuitBreaker, FetchReport, StateChange};
use a2a_crawler::pace::Pace;
use a2a_crawler::planned::Planned;
use a2a_registry_domain::timestamp::Timestamp;
use time::OffsetDateTime;

use crate::config::CrawlerConfig;
use crate::memory::outage::Outage;

#[derive(Debug)]
pub struct VisitStream {
    pub pace: Pace,
    pub planned: Mutex<Planned>,
    /// When the planned visits were last counted; the lowest number before the first count.
    pub counted_at: AtomicI64,
    pub brake: Mutex<CircuitBreaker>,
    /// The outage in the database, as this process last read it.
    pub outage: Mutex<Option<Outage>>,
    /// When this process last stored the time of a crawl; the lowest number before the first one.
    pub crawl_noted: AtomicI64,
    /// When this process last logged that it has no file descriptors left; the lowest number before the first time.
    pub shortage_logged: AtomicI64,
}

impl VisitStream {
    /// `outage` is the one in the database.
    pub fn new(config: &CrawlerConfig, now: OffsetDateTime, outage: Option<Outage>) -> Self {
        Self {
            pace: Pace {
                least: config.least_rate,
                burst: Duration::from_secs(config.burst_seconds),
            },
            planned: Mutex::new(Planned::new(now)),
            counted_at: AtomicI64::new(i64::MIN),
            brake: Mutex::default(),
            outage: Mutex::new(outage),
            crawl_noted: AtomicI64::new(i64::MIN),
            shortage_logged: AtomicI64::new(i64::MIN),
        }
    }

    pub fn planned(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn hold_brake(&self, since: OffsetDateTime) {
        *self.brake.lock().unwrap_or_else(PoisonError::into_inner) = CircuitBreaker::opened(since);
    }

    pub fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the result of a fetch, and logs when the circuit breaker opens or closes. Returns whether it is open.
    pub fn note_fetch(&self, look: FetchReport, now: Timestamp) -> bool {
        let mut brake = self.brake.lock().unwrap_or_else(PoisonError::into_inner);
        match brake.note(look, now.into()) {
            Some(StateChange::Opened { failed, fetches }) => {
                tracing::warn!(
                    failed,
                    fetches,
                    "many fetches are failing, probably because of our own network; agents keep their state until it recovers"
                );
            }
            Some(StateChange::Closed { since }) => {
                tracing::warn!(%since, "fetches succeed again; states of agents are updated again");
            }
            None => {}
        }
        brake.open_since().is_some()
    }

    /// When the circuit breaker opened; `None` if it is closed.
    pub fn breaker_open_since(&self) -> Option<OffsetDateTime> {
        let brake = self.brake.lock().unwrap_or_else(PoisonError::into_inner);
        brake.open_since()
    }
}
