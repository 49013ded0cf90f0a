//! Time as an injected dependency.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// When the machine's own clock was first asked how long it has been running.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Where the present comes from. Everything that decides by time is handed one of these, so that a
/// test can run months in a moment.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment in UTC.
    fn now(&self) -> OffsetDateTime;

    /// The time since some moment in the past. It goes on evenly however [`Clock::now`] is set, so limits on how often
    /// something may happen go by it. The default is for clocks that a test moves forwards only.
    fn monotonic(&self) -> Duration {
        let since = self.now() - OffsetDateTime::UNIX_EPOCH;
        since.try_into().unwrap_or_default()
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that is handed in"
    )]
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn monotonic(&self) -> Duration {
        STARTED.elapsed()
    }
}
