//! The pace, schedule and circuit breaker of visits in one process.

use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::circuit_breaker::{BreakerTransition, CircuitBreaker, FetchSample};
use a2a_crawler::crawl_rate::CrawlRateLimits;
use a2a_crawler::visit_calendar::VisitCalendar;
use a2a_registry_domain::timestamp::Timestamp;
use time::OffsetDateTime;

use crate::config::CrawlerConfig;
use crate::process_state::outage::CrawlOutage;

#[derive(Debug)]
pub struct CrawlState {
    pub pace: CrawlRateLimits,
    pub planned: Mutex<VisitCalendar>,
    /// When the scheduled visits were last counted; the lowest number before the first count.
    pub counted_at: AtomicI64,
    pub breaker: Mutex<CircuitBreaker>,
    /// The outage in the database, as this process last read it.
    pub outage: Mutex<Option<CrawlOutage>>,
    /// When this process last stored the time of a crawl; the lowest number before the first one.
    pub crawl_stored_at: AtomicI64,
    /// When this process last logged that it has no file descriptors left; the lowest number before the first time.
    pub shortage_logged_at: AtomicI64,
}

impl CrawlState {
    /// Makes the state; `outage` is the outage in the database.
    pub fn new(config: &CrawlerConfig, now: OffsetDateTime, outage: Option<CrawlOutage>) -> Self {
        Self {
            pace: CrawlRateLimits {
                min_backlog_rate: config.least_rate,
                burst_duration: Duration::from_secs(config.burst_seconds),
            },
            planned: Mutex::new(VisitCalendar::new(now)),
            counted_at: AtomicI64::new(i64::MIN),
            breaker: Mutex::default(),
            outage: Mutex::new(outage),
            crawl_stored_at: AtomicI64::new(i64::MIN),
            shortage_logged_at: AtomicI64::new(i64::MIN),
        }
    }

    pub fn lock_visit_calendar(&self) -> MutexGuard<'_, VisitCalendar> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open_breaker(&self, since: OffsetDateTime) {
        *self.breaker.lock().unwrap_or_else(PoisonError::into_inner) =
            CircuitBreaker::new_open(since);
    }

    pub fn lock_outage(&self) -> MutexGuard<'_, Option<CrawlOutage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the result of a fetch, and logs when the circuit breaker opens or closes. Returns whether it is open.
    pub fn record_fetch(&self, report: FetchSample, now: Timestamp) -> bool {
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        match breaker.record_fetch(report, now.into()) {
            Some(BreakerTransition::Opened { failed, fetches }) => {
                tracing::warn!(
                    failed,
                    fetches,
                    "many fetches are failing, probably because of our own network; agents keep their state until it recovers"
                );
            }
            Some(BreakerTransition::Closed { opened_at: since }) => {
                tracing::warn!(%since, "fetches succeed again; states of agents are updated again");
            }
            None => {}
        }
        breaker.open_since().is_some()
    }

    /// When the circuit breaker opened; `None` if it is closed.
    pub fn breaker_open_since(&self) -> Option<OffsetDateTime> {
        let breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.open_since()
    }
}
