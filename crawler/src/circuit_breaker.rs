//! Circuit breaker: opens when so many fetches fail at once that our own network is the probable cause. Pure.
//!
//! While the breaker is open, the liveness of sources and the proofs of domains do not change.
//!
//! A fetch counts only if it is a first failure or a success, and the source has answered before. A source that never
//! answered, or has been failing for a long time, says nothing about our network and would keep the breaker open
//! forever.
//!
//! An open breaker freezes all states, which an attacker could exploit. Therefore, of all the sources that one party
//! can make fail on purpose, only the latest [`MAX_FETCHES_PER_PARTY`] fetches count: too few to open the breaker or
//! keep it open.

use std::collections::VecDeque;

use ipnet::IpNet;
use time::{Duration, OffsetDateTime};

use crate::schedule::{JITTER, MAX_INTERVAL, ON_TIME_SLACK};

/// Number of recent fetches kept in the window.
pub const WINDOW_FETCHES: usize = 100;
/// Period in which failures count as simultaneous; older fetches are ignored.
pub const FAILURE_PERIOD: Duration = Duration::HOUR;
/// Minimum number of fetches before the breaker can open or close.
pub const MIN_FETCHES: usize = 20;
/// Maximum number of fetches counted for one party; only its latest ones count.
pub const MAX_FETCHES_PER_PARTY: usize = 2;
/// The breaker opens when more than one fetch in this many fails: 20 %.
const OPENS_ABOVE_ONE_IN: usize = 5;
/// The breaker closes when at most one in this many of the last [`MIN_FETCHES`] fails: 10 %.
const CLOSES_AT_ONE_IN: usize = 10;

// Two colluding parties cannot open the breaker, and one party cannot keep it open.
const _: () = assert!(2 * MAX_FETCHES_PER_PARTY * OPENS_ABOVE_ONE_IN <= MIN_FETCHES);
const _: () = assert!(MAX_FETCHES_PER_PARTY * CLOSES_AT_ONE_IN <= MIN_FETCHES);

/// A party that can make sources fail on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureParty {
    /// The account that registered the source.
    Registrant(String),
    /// The owner of the host name: a registrable domain.
    Site(String),
    /// The operator of the addresses: the block from which the source last answered.
    Network(IpNet),
}

/// One fetch of a source, with the facts that the breaker needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchSample {
    /// Whether the fetch failed.
    pub failed: bool,
    /// Whether the fetch before it failed too.
    pub was_failing: bool,
    /// Whether any earlier fetch of the source succeeded.
    pub has_succeeded: bool,
    /// All parties that can make the source fail.
    pub parties: Vec<FailureParty>,
}

#[derive(Debug, Clone)]
struct CountedFetch {
    fetched_at: OffsetDateTime,
    failed: bool,
    parties: Vec<FailureParty>,
}

/// Counts the fetches of one process.
#[derive(Debug, Clone, Default)]
pub struct CircuitBreaker {
    fetches: VecDeque<CountedFetch>,
    opened_at: Option<OffsetDateTime>,
    /// Fetches counted since the breaker opened, including those beyond a party's limit.
    counted_since_open: usize,
}

/// A change of the breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerTransition {
    /// The breaker opened: too many fetches failed at once.
    Opened {
        /// Failures in the window.
        failed: usize,
        /// Fetches in the window.
        fetches: usize,
    },
    /// The breaker closed again.
    Closed {
        /// When it had opened.
        opened_at: OffsetDateTime,
    },
}

impl CircuitBreaker {
    /// A breaker that opened at `opened_at`, for a process that starts in the middle of an outage.
    pub fn new_open(opened_at: OffsetDateTime) -> Self {
        Self {
            opened_at: Some(opened_at),
            ..Self::default()
        }
    }

    /// Counts a fetch; returns the state change that it causes, if any.
    pub fn record_fetch(
        &mut self,
        fetch: FetchSample,
        now: OffsetDateTime,
    ) -> Option<BreakerTransition> {
        if !fetch.has_succeeded || (fetch.failed && fetch.was_failing) {
            return None;
        }
        self.counted_since_open = self.counted_since_open.saturating_add(1);
        self.drop_excess_fetches(&fetch.parties, now);
        self.fetches.push_back(CountedFetch {
            fetched_at: now,
            failed: fetch.failed,
            parties: fetch.parties,
        });
        if let Some(opened_at) = self.opened_at {
            return self.is_outage_over().then(|| {
                *self = Self::default();
                BreakerTransition::Closed { opened_at }
            });
        }
        let recent = self
            .fetches
            .iter()
            .filter(|fetch| now - fetch.fetched_at <= FAILURE_PERIOD);
        let (fetches, failed) = recent.fold((0, 0), |(fetches, failed), fetch| {
            (fetches + 1, failed + usize::from(fetch.failed))
        });
        (fetches >= MIN_FETCHES && failed * OPENS_ABOVE_ONE_IN > fetches).then(|| {
            self.opened_at = Some(now);
            self.counted_since_open = 0;
            BreakerTransition::Opened { failed, fetches }
        })
    }

    /// When the breaker opened; `None` while it is closed.
    pub const fn open_since(&self) -> Option<OffsetDateTime> {
        self.opened_at
    }

    /// Makes room for a fetch by these parties by keeping one fewer than the limit for each. Also drops fetches older
    /// than the longest interval, so that failures of deleted sources cannot keep the breaker open.
    fn drop_excess_fetches(&mut self, parties: &[FailureParty], now: OffsetDateTime) {
        let longest = MAX_INTERVAL * (1.0 + JITTER) + ON_TIME_SLACK;
        // If the clock was set back, fetches lie in the future; they are dropped like expired ones.
        self.fetches
            .retain(|fetch| (now - fetch.fetched_at).abs() <= longest);
        for party in parties {
            let of_party = |fetch: &&CountedFetch| fetch.parties.contains(party);
            let mut surplus = (self.fetches.iter().filter(of_party).count() + 1)
                .saturating_sub(MAX_FETCHES_PER_PARTY);
            self.fetches.retain(|fetch| {
                let goes = surplus > 0 && fetch.parties.contains(party);
                surplus -= usize::from(goes);
                !goes
            });
        }
        if self.fetches.len() == WINDOW_FETCHES {
            self.fetches.pop_front();
        }
    }

    /// Whether the outage is over. The age of the fetches is ignored, because a small registry fetches rarely. Fetches
    /// beyond a party's limit count in `counted_since_open`, so that a registry with sources of few parties can
    /// recover.
    fn is_outage_over(&self) -> bool {
        if self.fetches.len().max(self.counted_since_open) < MIN_FETCHES {
            return false;
        }
        let last = || self.fetches.iter().rev().take(MIN_FETCHES);
        let failed = last().filter(|fetch| fetch.failed).count();
        failed * CLOSES_AT_ONE_IN <= last().count()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:00 UTC);

    /// Parties that control only this source.
    fn alone(number: usize) -> Vec<FailureParty> {
        vec![
            FailureParty::Registrant(format!("account {number}")),
            FailureParty::Site(format!("s{number}.example")),
            FailureParty::Network(format!("2001:db8:{number:x}::/48").parse().unwrap()),
        ]
    }

    fn fetch(failed: bool, parties: Vec<FailureParty>) -> FetchSample {
        FetchSample {
            failed,
            was_failing: false,
            has_succeeded: true,
            parties,
        }
    }

    /// Counts one simultaneous fetch for each of these sources, all of different parties.
    fn note(
        breaker: &mut CircuitBreaker,
        sources: std::ops::Range<usize>,
        failed: bool,
    ) -> Vec<BreakerTransition> {
        sources
            .filter_map(|number| breaker.record_fetch(fetch(failed, alone(number)), NOW))
            .collect()
    }

    #[test]
    fn more_than_a_fifth_at_once_brakes() {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(note(&mut breaker, 0..80, false), []);
        assert_eq!(
            note(&mut breaker, 80..100, true),
            [],
            "a fifth is not more than that"
        );
        assert_eq!(breaker.open_since(), None);
        let opened = BreakerTransition::Opened {
            failed: 21,
            fetches: 100,
        };
        assert_eq!(note(&mut breaker, 100..101, true), [opened]);
        assert_eq!(breaker.open_since(), Some(NOW));
        assert_eq!(
            note(&mut breaker, 101..1_100, true),
            [],
            "it is held already"
        );
        assert_eq!(breaker.fetches.len(), WINDOW_FETCHES);
    }

    #[test]
    fn a_few_looks_say_nothing() {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(note(&mut breaker, 0..MIN_FETCHES - 1, true), []);
        assert_eq!(note(&mut breaker, 90..91, true).len(), 1);
    }

    #[test]
    fn what_has_been_failing_or_never_worked_says_nothing() {
        let mut breaker = CircuitBreaker::default();
        for number in 0..1_000 {
            let failing = FetchSample {
                was_failing: true,
                ..fetch(true, alone(number))
            };
            assert_eq!(breaker.record_fetch(failing, NOW), None);
            for failed in [true, false] {
                let never_worked = FetchSample {
                    has_succeeded: false,
                    ..fetch(failed, alone(number))
                };
                assert_eq!(breaker.record_fetch(never_worked, NOW), None);
            }
        }
        assert!(breaker.fetches.is_empty());
        assert_eq!(breaker.open_since(), None);
    }

    /// One party cannot change the state, however many sources it has and however often they recover.
    #[test]
    fn one_party_can_do_nothing_nor_can_two() {
        for kind in 0..3 {
            for conspirators in [1, 2] {
                let mut breaker = CircuitBreaker::default();
                assert_eq!(
                    note(
                        &mut breaker,
                        0..MIN_FETCHES - 2 * MAX_FETCHES_PER_PARTY,
                        false
                    ),
                    []
                );
                for number in 1_000..2_000 {
                    let mut parties = alone(number);
                    parties[kind] = alone(number % conspirators)[kind].clone();
                    for failed in [false, true, true] {
                        assert_eq!(
                            breaker.record_fetch(fetch(failed, parties.clone()), NOW),
                            None
                        );
                    }
                }
                let failed = breaker.fetches.iter().filter(|fetch| fetch.failed).count();
                assert_eq!(failed, MAX_FETCHES_PER_PARTY * conspirators);
            }
        }
    }

    #[test]
    fn one_party_does_not_keep_it_held_nor_dilutes_it() {
        let mut breaker = CircuitBreaker::default();
        note(&mut breaker, 0..MIN_FETCHES, true);
        assert!(breaker.open_since().is_some());
        // Every source fails except those of one party, which answer as often as they like.
        for _ in 0..1_000 {
            assert_eq!(breaker.record_fetch(fetch(false, alone(5_000)), NOW), None);
        }
        // Every source answers again except those of one party, which fail as often as they can.
        let mut changes = Vec::new();
        for number in 0..MIN_FETCHES {
            changes.extend(breaker.record_fetch(fetch(true, alone(6_000)), NOW));
            changes.extend(breaker.record_fetch(fetch(false, alone(number)), NOW));
        }
        assert_eq!(changes, [BreakerTransition::Closed { opened_at: NOW }]);
    }

    #[test]
    fn failures_of_hours_ago_are_not_at_once() {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(note(&mut breaker, 0..MIN_FETCHES - 1, true), []);
        let later = NOW + FAILURE_PERIOD + Duration::SECOND;
        for number in 0..MIN_FETCHES {
            let failed = number % 6 == 5;
            assert_eq!(
                breaker.record_fetch(fetch(failed, alone(100 + number)), later),
                None
            );
        }
    }

    #[test]
    fn one_that_starts_held_is_released_by_looks_and_not_by_their_absence() {
        let mut breaker = CircuitBreaker::new_open(NOW);
        assert_eq!(note(&mut breaker, 0..MIN_FETCHES - 1, false), []);
        assert_eq!(breaker.open_since(), Some(NOW));
        let closed = BreakerTransition::Closed { opened_at: NOW };
        assert_eq!(note(&mut breaker, 90..91, false), [closed]);
    }

    /// The sources of a few parties never produce enough counted fetches; repeated success still closes the breaker.
    #[test]
    fn few_parties_release_it_too() {
        let mut breaker = CircuitBreaker::new_open(NOW);
        for number in 0..MIN_FETCHES - 1 {
            assert_eq!(
                breaker.record_fetch(fetch(false, alone(number % 3)), NOW),
                None
            );
        }
        let closed = breaker.record_fetch(fetch(false, alone(0)), NOW);
        assert_eq!(closed, Some(BreakerTransition::Closed { opened_at: NOW }));
        // The breaker stays open while one of the three parties fails.
        let mut breaker = CircuitBreaker::new_open(NOW);
        assert_eq!(breaker.record_fetch(fetch(true, alone(3)), NOW), None);
        for number in 0..1_000 {
            assert_eq!(
                breaker.record_fetch(fetch(false, alone(number % 3)), NOW),
                None
            );
        }
        // A source that is no longer fetched, for example because it was deleted, stops counting.
        let later = NOW + Duration::days(2);
        let closed = breaker.record_fetch(fetch(false, alone(0)), later);
        assert_eq!(closed, Some(BreakerTransition::Closed { opened_at: NOW }));
    }

    #[test]
    fn it_is_over_when_nearly_everything_answers() {
        let mut breaker = CircuitBreaker::default();
        note(&mut breaker, 0..MIN_FETCHES, true);
        assert_eq!(note(&mut breaker, 100..100 + MIN_FETCHES - 3, false), []);
        // Hours later, as in a small registry, a recovering source counts like any other.
        let again = FetchSample {
            was_failing: true,
            ..fetch(false, alone(200))
        };
        let closed = breaker.record_fetch(again, NOW + Duration::hours(20));
        assert_eq!(closed, Some(BreakerTransition::Closed { opened_at: NOW }));
        assert_eq!(breaker.open_since(), None);
        assert_eq!(
            note(&mut breaker, 0..MIN_FETCHES - 1, true),
            [],
            "it begins anew"
        );
    }
}
