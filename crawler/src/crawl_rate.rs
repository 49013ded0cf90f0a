//! Crawl rate: how many visits may start, at a steady rate normally and at a faster one after a backlog. Pure.
//!
//! The *steady rate* is the sum of the rates of all planned visits; the rate of a visit is one over its interval.
//! While visits start on time, the rate limit is slightly above the steady rate, which cuts off peaks. The longer the
//! oldest visit is overdue, for example after a restart or an outage, the higher the limit, up to twice the steady
//! rate. A backlog is therefore cleared without a wave of requests.

use std::time::Duration;

use time::OffsetDateTime;

/// Rate limit relative to the steady rate while visits are on time.
pub const ON_TIME_FACTOR: f64 = 1.1;
/// Rate limit relative to the steady rate during a full backlog.
pub const BACKLOG_FACTOR: f64 = 2.0;
/// Delay of the oldest visit at which the backlog counts as full.
pub const BACKLOG_LAG: Duration = Duration::from_secs(180);
/// Number of visits that may always start at once after a pause, whatever the rate.
const MIN_BURST: f64 = 2.0;
/// Factor on the minimum rate without a backlog, so that a small registry's visits are spread out too.
const ON_TIME_SHARE_OF_MIN: f64 = 1.0 / 60.0;

/// Limits that apply whatever the steady rate is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrawlRateLimits {
    /// Minimum rate in visits per second during a backlog: 1. Ten domains would otherwise take half a day to catch up.
    pub min_backlog_rate: f64,
    /// Time for which an unused budget is kept: 30 s.
    pub burst_duration: Duration,
}

impl Default for CrawlRateLimits {
    fn default() -> Self {
        Self {
            min_backlog_rate: 1.0,
            burst_duration: Duration::from_secs(30),
        }
    }
}

/// Budget of visits that may start, at a point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisitBudget {
    /// Number of visits that may start; the fraction is carried over.
    pub visits: f64,
    /// Time at which `visits` was computed.
    pub updated_at: OffsetDateTime,
}

impl CrawlRateLimits {
    /// Visits per second that may start while the oldest one is overdue by `lag`.
    pub fn visits_per_second(&self, steady_rate: f64, lag: Duration) -> f64 {
        let steady_rate = if steady_rate.is_finite() {
            steady_rate.max(0.0)
        } else {
            0.0
        };
        let overdue = (lag.as_secs_f64() / BACKLOG_LAG.as_secs_f64()).min(1.0);
        let factor = ON_TIME_FACTOR + (BACKLOG_FACTOR - ON_TIME_FACTOR) * overdue;
        let min_rate_share = if lag > BACKLOG_LAG {
            1.0
        } else {
            ON_TIME_SHARE_OF_MIN
        };
        (steady_rate * factor).max(self.min_backlog_rate * min_rate_share)
    }

    /// The budget at `now`, computed from the remaining one; unchanged if the clock was set back.
    pub fn refill_budget(
        &self,
        remaining: Option<VisitBudget>,
        now: OffsetDateTime,
        rate: f64,
    ) -> VisitBudget {
        let max_visits = (rate * self.burst_duration.as_secs_f64()).max(MIN_BURST);
        let visits = match remaining {
            None => max_visits,
            Some(remaining) => {
                let elapsed = (now - remaining.updated_at).as_seconds_f64().max(0.0);
                (remaining.visits.max(0.0) + elapsed * rate).min(max_visits)
            }
        };
        VisitBudget {
            visits,
            updated_at: now,
        }
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
        let pace = CrawlRateLimits::default();
        close(pace.visits_per_second(10.0, NO_LAG), 11.0);
        close(pace.visits_per_second(10.0, BACKLOG_LAG / 3), 14.0);
        close(pace.visits_per_second(10.0, BACKLOG_LAG), 20.0);
        close(
            pace.visits_per_second(10.0, BACKLOG_LAG + Duration::from_micros(1)),
            20.0,
        );
        // A small registry: one visit a minute normally, one a second during a backlog.
        close(pace.visits_per_second(0.0001, NO_LAG), 1.0 / 60.0);
        close(
            pace.visits_per_second(0.0001, Duration::from_secs(3600)),
            1.0,
        );
        for broken in [f64::NAN, f64::INFINITY, -1.0] {
            close(pace.visits_per_second(broken, NO_LAG), 1.0 / 60.0);
        }
    }

    #[test]
    fn permission_gathers_up_to_the_burst() {
        let pace = CrawlRateLimits::default();
        let start = pace.refill_budget(None, NOW, 10.0);
        close(start.visits, 300.0);
        let spent = VisitBudget {
            visits: 0.5,
            ..start
        };
        let later = pace.refill_budget(Some(spent), NOW + time::Duration::seconds(2), 10.0);
        close(later.visits, 20.5);
        let much_later = pace.refill_budget(Some(spent), NOW + time::Duration::days(9), 10.0);
        close(much_later.visits, 300.0);
        let back = pace.refill_budget(Some(spent), NOW - time::Duration::days(9), 10.0);
        close(back.visits, 0.5);
        assert_eq!(back.updated_at, NOW - time::Duration::days(9));
        close(pace.refill_budget(None, NOW, 0.001).visits, MIN_BURST);
    }

    #[test]
    fn a_backlog_is_worked_off_at_twice_the_steady_rate() {
        let pace = CrawlRateLimits::default();
        let (steady, mut now) = (5.0, NOW);
        let mut left = VisitBudget {
            visits: 0.0,
            updated_at: now,
        };
        let mut made = 0.0;
        for _ in 0..600 {
            now += time::Duration::seconds(1);
            left = pace.refill_budget(
                Some(left),
                now,
                pace.visits_per_second(steady, Duration::from_secs(7200)),
            );
            let begin = left.visits.floor();
            left.visits -= begin;
            made += begin;
        }
        assert!((5_990.0..=6_000.0).contains(&made), "{made} in ten minutes");
    }
}
