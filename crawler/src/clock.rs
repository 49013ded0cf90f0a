//! Clock: time as an injected dependency.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// Time of the first use of the system clock.
static CLOCK_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Clock passed to everything that depends on the time, so that tests can set it.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current time in UTC.
    fn now(&self) -> OffsetDateTime;

    /// Time since an arbitrary point in the past. It advances steadily even if [`Clock::now`] is set, so rate limits
    /// use it. The default implementation is correct for clocks that a test only moves forward.
    fn monotonic(&self) -> Duration {
        let since = self.now() - OffsetDateTime::UNIX_EPOCH;
        since.try_into().unwrap_or_default()
    }
}

/// The system clock.
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
