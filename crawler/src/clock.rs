//! Time as an injected dependency.

use time::OffsetDateTime;

/// Where the present comes from. Everything that decides by time is handed one of these, so that a
/// test can run months in a moment.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}
