//! A clock that a test moves.

use std::sync::{Arc, Mutex};

use a2a_crawler::Clock;
use time::{Duration, OffsetDateTime};

/// A clock that stops until a test advances it.
#[derive(Debug)]
pub struct ManualClock(Mutex<OffsetDateTime>);

impl ManualClock {
    /// A clock that starts at this time.
    pub fn new(start: OffsetDateTime) -> Arc<Self> {
        Arc::new(Self(Mutex::new(start)))
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}
