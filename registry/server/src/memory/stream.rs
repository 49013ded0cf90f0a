//! The pace, plan and circuit breaker of visits, in one process.

use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::brake::{Brake, Look, Turn};
use a2a_crawler::pace::Pace;
use a2a_crawler::planned::Planned;
use a2a_registry_domain::timestamp::Timestamp;
use time::OffsetDateTime;

use crate::config::CrawlerConfig;
use crate::memory::outage::Outage;

/// The pace, plan and circuit breaker of visits, in one process.
#[derive(Debug)]
pub(crate) struct VisitStream {
    pub(crate) pace: Pace,
    pub(crate) planned: Mutex<Planned>,
    /// When the planned visits were last counted; the lowest number before the first count.
    pub(crate) counted_at: AtomicI64,
    pub(crate) brake: Mutex<Brake>,
    /// The outage in the database, as this process last read it.
    pub(crate) outage: Mutex<Option<Outage>>,
}

impl VisitStream {
    /// `outage` is the one in the database.
    pub(crate) fn new(config: &CrawlerConfig, now: OffsetDateTime, outage: Option<Outage>) -> Self {
        Self {
            pace: Pace {
                least: config.least_rate,
                burst: Duration::from_secs(config.burst_seconds),
            },
            planned: Mutex::new(Planned::new(now)),
            counted_at: AtomicI64::new(i64::MIN),
            brake: Mutex::default(),
            outage: Mutex::new(outage),
        }
    }

    pub(crate) fn planned(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hold_brake(&self, since: OffsetDateTime) {
        *self.brake.lock().unwrap_or_else(PoisonError::into_inner) = Brake::held(since);
    }

    pub(crate) fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a fetch; returns whether the circuit breaker is open after it.
    pub(crate) fn note_fetch(&self, look: Look, now: Timestamp) -> bool {
        let mut brake = self.brake.lock().unwrap_or_else(PoisonError::into_inner);
        match brake.note(look, now.into()) {
            Some(Turn::Braked { failed, looks }) => {
                tracing::warn!(
                    failed,
                    looks,
                    "so many fetches fail at once that the fault is likely ours; verdicts are frozen"
                );
            }
            Some(Turn::Released { since }) => {
                tracing::warn!(%since, "fetches succeed again; the circuit breaker is closed");
            }
            None => {}
        }
        brake.held_since().is_some()
    }

    /// When the circuit breaker opened; `None` if it is closed.
    pub(crate) fn breaker_open_since(&self) -> Option<OffsetDateTime> {
        let brake = self.brake.lock().unwrap_or_else(PoisonError::into_inner);
        brake.held_since()
    }
}
