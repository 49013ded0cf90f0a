//! Pace: how many visits may begin, at a steady rate normally and at a faster one after a backlog. Pure.
//!
//! The *steady rate* is the sum of the rates of all planned visits, one over the interval of each. While visits begin
//! on time, the rate is limited to slightly more than that, which cuts off peaks. The longer the oldest visit is
//! overdue, as after a restart or an outage, the higher the limit, up to twice the steady rate: a backlog neither
//! lasts nor becomes a wave of requests.

use std::time::Duration;

use time::OffsetDateTime;

/// Limit relative to the steady rate while visits are on time.
pub const EVEN_FACTOR: f64 = 1.1;
/// Limit relative to the steady rate while there is a full backlog.
pub const BACKLOG_FACTOR: f64 = 2.0;
/// Delay of the oldest visit from which the backlog counts as full.
pub const BACKLOG_LAG: Duration = Duration::from_secs(180);
/// Visits that may always begin at once after a pause, whatever the rate.
const LEAST_BURST: f64 = 2.0;
/// Factor on the least rate without a backlog, so that a small registry's visits are spread out too.
const EVEN_SHARE_OF_LEAST: f64 = 1.0 / 60.0;

/// Limits that apply whatever the steady rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Least visits a second during a backlog: 1. Ten domains would otherwise take half a day to catch up.
    pub least: f64,
    /// How long unused permission is kept: 30 s.
    pub burst: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            least: 1.0,
            burst: Duration::from_secs(30),
        }
    }
}

/// Permission to begin visits, at a point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Permission {
    /// Number of visits that may begin; the fraction is carried over.
    pub visits: f64,
    /// Time of this state.
    pub at: OffsetDateTime,
}

impl Pace {
    /// Visits a second that may begin while the oldest one is overdue by `lag`.
    pub fn rate(&self, steady: f64, lag: Duration) -> f64 {
        let steady = if steady.is_finite() {
            steady.max(0.0)
        } else {
            0.0
        };
        let overdue = (lag.as_secs_f64() / BACKLOG_LAG.as_secs_f64()).min(1.0);
        let factor = EVEN_FACTOR + (BACKLOG_FACTOR - EVEN_FACTOR) * overdue;
        let share = if lag > BACKLOG_LAG {
            1.0
        } else {
            EVEN_SHARE_OF_LEAST
        };
        (steady * factor).max(self.least * share)
    }

    /// The permission at `now`, given the one left; unchanged if the clock was set back.
    pub fn refill(&self, left: Option<Permission>, now: OffsetDateTime, rate: f64) -> Permission {
        let most = (rate * self.burst.as_secs_f64()).max(LEAST_BURST);
        let visits = match left {
            None => most,
            Some(left) => {
                let elapsed = (now - left.at).as_seconds_f64().max(0.0);
                (left.visits.max(0.0) + elapsed * rate).min(most)
            }
        };
        Permission { visits, at: now }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:00 UTC);
    const NO_LAG: Duration = Duration::ZERO;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn the_rate_follows_the_lag() {
        let pace = Pace::default();
        close(pace.rate(10.0, NO_LAG), 11.0);
        close(pace.rate(10.0, BACKLOG_LAG / 3), 14.0);
        close(pace.rate(10.0, BACKLOG_LAG), 20.0);
        close(
            pace.rate(10.0, BACKLOG_LAG + Duration::from_micros(1)),
            20.0,
        );
        // A small registry: one visit a minute, and one a second to catch up.
        close(pace.rate(0.0001, NO_LAG), 1.0 / 60.0);
        close(pace.rate(0.0001, Duration::from_secs(3600)), 1.0);
        for broken in [f64::NAN, f64::INFINITY, -1.0] {
            close(pace.rate(broken, NO_LAG), 1.0 / 60.0);
        }
    }

    #[test]
    fn permission_gathers_up_to_the_burst() {
        let pace = Pace::default();
        let start = pace.refill(None, NOW, 10.0);
        close(start.visits, 300.0);
        let spent = Permission {
            visits: 0.5,
            ..start
        };
        let later = pace.refill(Some(spent), NOW + time::Duration::seconds(2), 10.0);
        close(later.visits, 20.5);
        let much_later = pace.refill(Some(spent), NOW + time::Duration::days(9), 10.0);
        close(much_later.visits, 300.0);
        let back = pace.refill(Some(spent), NOW - time::Duration::days(9), 10.0);
        close(back.visits, 0.5);
        assert_eq!(back.at, NOW - time::Duration::days(9));
        close(pace.refill(None, NOW, 0.001).visits, LEAST_BURST);
    }

    #[test]
    fn a_backlog_is_worked_off_at_twice_the_steady_rate() {
        let pace = Pace::default();
        let (steady, mut now) = (5.0, NOW);
        let mut left = Permission {
            visits: 0.0,
            at: now,
        };
        let mut made = 0.0;
        for _ in 0..600 {
            now += time::Duration::seconds(1);
            left = pace.refill(
                Some(left),
                now,
                pace.rate(steady, Duration::from_secs(7200)),
            );
            let begin = left.visits.floor();
            left.visits -= begin;
            made += begin;
        }
        assert!((5_990.0..=6_000.0).contains(&made), "{made} in ten minutes");
    }
}
