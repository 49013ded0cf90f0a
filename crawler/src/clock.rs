//! Clock: time as an injected dependency.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// When the machine's own clock was first used.
static CLOCK_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A source of the present time, passed to everything that depends on it, so that tests can set it.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment in UTC.
    fn now(&self) -> OffsetDateTime;

    /// Time since some moment in the past. It advances evenly even if [`Clock::now`] is set, so rate limits use it.
    /// The default suits clocks that a test only moves forwards.
    fn monotonic(&self) -> Duration {
        let since = self.now() - OffsetDateTime::UNIX_EPOCH;
        since.try_into().unwrap_or_default()
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the injected clock")]
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn monotonic(&self) -> Duration {
        CLOCK_START.elapsed()
    }
}
