//! Revalidation schedule: when a source is fetched next, and whether conditionally or in full. Pure: the time and the
//! random number are arguments.

use ring::digest::{SHA256, digest};
use time::{Duration, OffsetDateTime};

/// Minimum interval between fetches of a source, whatever its server says, such as `no-store`.
pub const MIN_INTERVAL: Duration = Duration::minutes(15);
/// Maximum interval between fetches of a source that responds.
pub const MAX_INTERVAL: Duration = Duration::hours(24);
/// Initial value of the adaptive interval.
pub const FIRST_INTERVAL: Duration = Duration::hours(6);
/// Factor by which the interval grows when the card has not changed.
pub const UNCHANGED_FACTOR: f64 = 1.5;
/// Factor by which the interval shrinks when the card has changed.
pub const CHANGED_FACTOR: f64 = 0.5;
/// Share of the interval by which a due time may be earlier or later, so that sources drift apart.
pub const JITTER: f64 = 0.1;
/// Upper limit of the wait after a first failure; doubled with each further failure.
pub const FIRST_BACKOFF: Duration = Duration::minutes(5);
/// Upper limit of the wait after many failures.
pub const MAX_BACKOFF: Duration = Duration::hours(24);
/// Minimum wait after a failure, whatever the random number: the spacing between visits of a host.
pub const MIN_BACKOFF: Duration = Duration::seconds(60);
/// Wait between a first timeout and its early retry: a sleeping host may take 20 s to respond.
pub const TIMEOUT_RETRY: Duration = Duration::seconds(30);
/// Longest wait that a server can request.
pub const MAX_RETRY_AFTER: Duration = Duration::days(7);
/// Maximum time between unconditional fetches of a source, so that no 304 hides a dropped signature.
pub const FULL_FETCH_INTERVAL: Duration = Duration::days(7);
/// Maximum wait after a failure while the breaker is open, so that sources recover soon after our own outage.
pub const MAX_OPEN_BREAKER_BACKOFF: Duration = Duration::hours(1);
/// Delay beyond the jitter for which a visit still counts as on time: rate limits may defer it.
pub const ON_TIME_SLACK: Duration = Duration::minutes(5);

/// Result of the last fetch, with the facts that the schedule needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastFetch {
    /// The first card of this source. The next fetch is somewhere within the interval, at the [`host_interval_phase`]:
    /// otherwise sources that were registered together would always be fetched together.
    First {
        /// Position within the interval.
        phase: u32,
    },
    /// The card has changed.
    Changed,
    /// The card has not changed.
    Unchanged,
    /// The fetch has failed.
    Failed {
        /// Failures in a row, this one included.
        failures: u32,
        /// Number of seconds that the server asked to wait.
        retry_after: Option<u32>,
        /// Whether the circuit breaker is open.
        breaker_open: bool,
        /// Whether a time limit was exceeded.
        timed_out: bool,
    },
}

/// The next due time, and the interval for the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextDue {
    /// When the source is due.
    pub due_at: OffsetDateTime,
    /// The adaptive interval, to be passed in next time.
    pub interval: Duration,
}

/// When a source is due after a fetch at `now`.
///
/// After a success: the server's own freshness (`max_age`, in seconds) or else the adaptive `interval`, limited to
/// [`MIN_INTERVAL`] and [`MAX_INTERVAL`], then shifted by up to [`JITTER`] in either direction. After a failure:
/// full-jitter backoff, and never before `Retry-After` ends. `random` is clamped to 0..1.
pub fn next_due(
    now: OffsetDateTime,
    fetch: LastFetch,
    interval: Option<Duration>,
    max_age: Option<u32>,
    random: f64,
) -> NextDue {
    let random = if random.is_finite() {
        random.clamp(0.0, 1.0)
    } else {
        0.5
    };
    let current_interval = interval
        .unwrap_or(FIRST_INTERVAL)
        .clamp(MIN_INTERVAL, MAX_INTERVAL);
    let (wait, interval) = match fetch {
        LastFetch::Failed {
            failures,
            retry_after,
            breaker_open,
            timed_out,
        } => {
            let max_backoff = if breaker_open {
                MAX_OPEN_BREAKER_BACKOFF
            } else {
                MAX_BACKOFF
            };
            let soon = is_retried_soon(failures, timed_out, breaker_open);
            let wait = match soon && retry_after.is_none() {
                true => with_jitter(TIMEOUT_RETRY, random),
                false => failure_backoff(failures, retry_after, max_backoff, random),
            };
            (wait, current_interval)
        }
        LastFetch::First { phase } => {
            let lifetime = freshness_lifetime(FIRST_INTERVAL, max_age);
            let part = f64::from(phase) / (f64::from(u32::MAX) + 1.0);
            let wait = MIN_INTERVAL + (lifetime - MIN_INTERVAL) * part;
            (with_jitter(wait, random), FIRST_INTERVAL)
        }
        LastFetch::Changed => {
            let interval = (current_interval * CHANGED_FACTOR).max(MIN_INTERVAL);
            (
                with_jitter(freshness_lifetime(interval, max_age), random),
                interval,
            )
        }
        LastFetch::Unchanged => {
            let interval = (current_interval * UNCHANGED_FACTOR).min(MAX_INTERVAL);
            (
                with_jitter(freshness_lifetime(interval, max_age), random),
                interval,
            )
        }
    };
    NextDue {
        due_at: now.saturating_add(wait),
        interval,
    }
}

/// Whether a source is fetched again after [`TIMEOUT_RETRY`]: it has just begun to time out, and the circuit breaker
/// is closed, so the host is probably asleep.
pub const fn is_retried_soon(failures: u32, timed_out: bool, breaker_open: bool) -> bool {
    failures == 1 && timed_out && !breaker_open
}

/// Position of a host within its interval. A host has the same phase in every process, whatever compiler built it.
pub fn host_interval_phase(host: &str) -> u32 {
    let hash = digest(&SHA256, host.as_bytes());
    let first = hash.as_ref().first_chunk().copied();
    first.map_or(0, u32::from_be_bytes)
}

/// Time for which a card is fresh: the server's value or else the interval, from [`MIN_INTERVAL`] to [`MAX_INTERVAL`].
pub fn freshness_lifetime(interval: Duration, max_age: Option<u32>) -> Duration {
    max_age
        .map_or(interval, |seconds| Duration::seconds(seconds.into()))
        .clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// Whether this request must be unconditional, so that at most [`FULL_FETCH_INTERVAL`] passes between two full
/// fetches. `last_full` is the time of the last full response, if there was one. `wait` is the time since the previous
/// request; the next one may be up to twice as far away.
pub fn needs_full_fetch(
    last_full: Option<OffsetDateTime>,
    now: OffsetDateTime,
    wait: Duration,
) -> bool {
    let next = (wait.max(MIN_INTERVAL) * 2_i32).min(MAX_INTERVAL * (1.0 + JITTER)) + ON_TIME_SLACK;
    last_full.is_none_or(|at| now - at + next > FULL_FETCH_INTERVAL)
}

fn with_jitter(wait: Duration, random: f64) -> Duration {
    wait * (1.0 - JITTER + 2.0 * JITTER * random)
}

fn failure_backoff(
    failures: u32,
    retry_after: Option<u32>,
    max_backoff: Duration,
    random: f64,
) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = (FIRST_BACKOFF * 2_i32.pow(doublings)).min(max_backoff);
    let requested_wait = retry_after.map_or(Duration::ZERO, |s| Duration::seconds(s.into()));
    (ceiling * random)
        .max(MIN_BACKOFF)
        .max(requested_wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:00 UTC);
    /// The middle of the jitter range: no deviation.
    const MIDDLE: f64 = 0.5;
    /// The first fetch of a host with the last phase: almost a whole interval away.
    const LAST: LastFetch = LastFetch::First { phase: u32::MAX };

    fn wait(
        fetch: LastFetch,
        interval: Option<Duration>,
        max_age: Option<u32>,
        random: f64,
    ) -> Duration {
        next_due(NOW, fetch, interval, max_age, random).due_at - NOW
    }

    #[test]
    fn intervals_adapt_within_their_bounds() {
        let mut interval = None;
        let mut seen = Vec::new();
        for fetch in [
            LAST,
            LastFetch::Unchanged,
            LastFetch::Unchanged,
            LastFetch::Unchanged,
            LastFetch::Unchanged,
        ] {
            let due = next_due(NOW, fetch, interval, None, MIDDLE);
            interval = Some(due.interval);
            seen.push((due.due_at - NOW).as_seconds_f64().round() as i64 / 60);
        }
        assert_eq!(seen, [360, 540, 810, 1215, 1440]);
        for _ in 0..10 {
            interval = Some(next_due(NOW, LastFetch::Changed, interval, None, MIDDLE).interval);
        }
        assert_eq!(interval, Some(MIN_INTERVAL));
    }

    #[test]
    fn the_servers_word_counts_within_the_bounds() {
        assert_eq!(
            wait(LastFetch::Unchanged, None, Some(3600), MIDDLE),
            Duration::hours(1)
        );
        assert_eq!(
            wait(LastFetch::Unchanged, None, Some(0), MIDDLE),
            MIN_INTERVAL
        );
        assert_eq!(
            wait(LastFetch::Unchanged, None, Some(u32::MAX), MIDDLE),
            MAX_INTERVAL
        );
        // The server's own value does not stop the adaptation of the interval.
        let due = next_due(NOW, LastFetch::Changed, None, Some(60), MIDDLE);
        assert_eq!(due.interval, Duration::hours(3));
    }

    #[test]
    fn jitter_is_a_tenth_to_either_side() {
        let six_hours = Some(Duration::hours(4));
        let waits = [0.0, 1.0].map(|random| wait(LastFetch::Unchanged, six_hours, None, random));
        assert_eq!(waits, [Duration::minutes(324), Duration::minutes(396)]);
    }

    #[test]
    fn hosts_are_spread_over_their_first_interval() {
        let first = |phase| wait(LastFetch::First { phase }, None, None, MIDDLE);
        assert_eq!(first(0), MIN_INTERVAL);
        assert!(first(u32::MAX) > FIRST_INTERVAL - Duration::SECOND);
        assert_eq!(first(1 << 31), (FIRST_INTERVAL + MIN_INTERVAL) / 2);
        // The server's own value limits the phase too; a source that is fetched as often as allowed has no room for
        // one.
        let within = |max_age| wait(LAST, None, Some(max_age), MIDDLE);
        assert!(within(3600) <= Duration::hours(1));
        assert_eq!(within(0), MIN_INTERVAL);
        let mut quarters = [0; 4];
        for number in 0..4_000 {
            quarters[(host_interval_phase(&format!("h{number}.example")) >> 30) as usize] += 1;
        }
        assert!(
            quarters.iter().all(|count| (850..1_150).contains(count)),
            "{quarters:?}"
        );
        assert_eq!(host_interval_phase("a.example"), 0xb8e7_4533);
    }

    #[test]
    fn failures_back_off_and_a_wish_to_wait_is_obeyed() {
        let failed = |failures, retry_after, random| {
            wait(
                LastFetch::Failed {
                    failures,
                    retry_after,
                    breaker_open: false,
                    timed_out: false,
                },
                None,
                None,
                random,
            )
        };
        let breaker_open = LastFetch::Failed {
            failures: u32::MAX,
            retry_after: None,
            breaker_open: true,
            timed_out: true,
        };
        assert_eq!(
            wait(breaker_open, None, None, 1.0),
            MAX_OPEN_BREAKER_BACKOFF
        );
        assert_eq!(failed(1, None, 1.0), FIRST_BACKOFF);
        assert_eq!(failed(2, None, 1.0), Duration::minutes(10));
        assert_eq!(failed(2, None, 0.5), Duration::minutes(5));
        assert_eq!(failed(9, None, 1.0), Duration::minutes(1280));
        assert_eq!(failed(10, None, 1.0), MAX_BACKOFF);
        assert_eq!(failed(u32::MAX, None, 1.0), MAX_BACKOFF);
        assert_eq!(failed(5, None, 0.0), MIN_BACKOFF);
        assert_eq!(failed(1, Some(7200), 0.0), Duration::hours(2));
        assert_eq!(failed(1, Some(1), 1.0), FIRST_BACKOFF);
        assert_eq!(failed(1, Some(u32::MAX), 0.0), MAX_RETRY_AFTER);
    }

    /// A sleeping host needs about 20 s to respond to the request that wakes it.
    #[test]
    fn the_first_timeout_is_retried_soon() {
        let timed_out = |failures, breaker_open, random| {
            let fetch = LastFetch::Failed {
                failures,
                retry_after: None,
                breaker_open,
                timed_out: true,
            };
            wait(fetch, None, None, random)
        };
        assert_eq!(timed_out(1, false, MIDDLE), TIMEOUT_RETRY);
        assert_eq!(timed_out(1, false, 0.0), Duration::seconds(27));
        assert_eq!(timed_out(1, false, 1.0), Duration::seconds(33));
        assert_eq!(timed_out(2, false, 0.0), MIN_BACKOFF);
        assert_eq!(timed_out(1, true, 1.0), FIRST_BACKOFF);
    }

    #[test]
    fn a_full_fetch_is_never_more_than_a_week_away() {
        assert!(needs_full_fetch(None, NOW, MAX_INTERVAL));
        for (wait, next) in [
            (Duration::hours(24), Duration::minutes(1_584)),
            (Duration::hours(6), Duration::hours(12)),
            (Duration::ZERO, Duration::minutes(30)),
            (Duration::days(7), Duration::minutes(1_584)),
        ] {
            let latest = NOW - FULL_FETCH_INTERVAL + next + ON_TIME_SLACK;
            assert!(!needs_full_fetch(Some(latest), NOW, wait), "{wait}");
            assert!(
                needs_full_fetch(Some(latest - Duration::MICROSECOND), NOW, wait),
                "{wait}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_input_breaks_the_bounds(
            minutes in -10_000_i64..10_000_000, max_age: Option<u32>, failures: u32,
            retry_after: Option<u32>, random in proptest::num::f64::ANY, kind in 0..4, breaker_open: bool,
            timed_out: bool,
        ) {
            let fetch = match kind {
                0 => LastFetch::First { phase: failures },
                1 => LastFetch::Changed,
                2 => LastFetch::Unchanged,
                _ => LastFetch::Failed { failures, retry_after, breaker_open, timed_out },
            };
            let interval = Some(Duration::minutes(minutes));
            let due = next_due(NOW, fetch, interval, max_age, random);
            proptest::prop_assert!(due.interval >= MIN_INTERVAL && due.interval <= MAX_INTERVAL);
            let wait = due.due_at - NOW;
            if let LastFetch::Failed { .. } = fetch {
                let least = match is_retried_soon(failures, timed_out, breaker_open) {
                    true => TIMEOUT_RETRY * 0.89,
                    false => MIN_BACKOFF,
                };
                proptest::prop_assert!(wait >= least && wait <= MAX_RETRY_AFTER);
            } else {
                proptest::prop_assert!(wait >= MIN_INTERVAL * 0.89 && wait <= MAX_INTERVAL * 1.11);
            }
        }
    }
}
