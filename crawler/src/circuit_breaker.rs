//! Circuit breaker for failures of our own network: it opens while many fetches fail at once. Pure.
//!
//! What counts is news: a source that fails for the first time, and any source that answers; and only of sources
//! that have answered before. One that never did, or has been failing for long, says nothing about our network, and
//! would hold the brake for ever.
//!
//! Whoever holds the brake freezes the verdicts on everybody. So of whatever one party can make fail on purpose, the
//! latest [`FETCHES_PER_PARTY`] looks are all that counts, fewer than could set the brake or keep it.

use std::collections::VecDeque;

use ipnet::IpNet;
use time::{Duration, OffsetDateTime};

use crate::schedule::{JITTER, MAX_INTERVAL, PROMISE_SLACK};

/// How many of the last looks are remembered.
pub const WINDOW: usize = 100;
/// Looks older than this do not count as *at once*.
pub const PERIOD: Duration = Duration::HOUR;
/// With fewer looks than this nothing is concluded.
pub const LEAST_FETCHES: usize = 20;
/// Looks that count of one party: the latest ones.
pub const FETCHES_PER_PARTY: usize = 2;
/// More than one failure in so many looks is an outage of ours: 20 %.
const ONE_IN: usize = 5;
/// At most one failure in so many of the last [`LEAST_FETCHES`] means that it is over: 10 %.
const OVER_ONE_IN: usize = 10;

// Two parties that conspire do not set the brake, and one alone does not keep it.
const _: () = assert!(2 * FETCHES_PER_PARTY * ONE_IN <= LEAST_FETCHES);
const _: () = assert!(FETCHES_PER_PARTY * OVER_ONE_IN <= LEAST_FETCHES);

/// Somebody who can make sources fail on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Party {
    /// Whoever brought the source in.
    Registrant(String),
    /// Whose names these are: a registrable domain.
    Site(String),
    /// Whose addresses these are: the block that a source's last answer came from.
    Network(IpNet),
}

/// What a look at a source was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchReport {
    /// Whether it found nothing.
    pub failed: bool,
    /// Whether the one before it did not either.
    pub was_failing: bool,
    /// Whether any before it has found something.
    pub has_succeeded: bool,
    /// Everybody in whose hands the source is.
    pub parties: Vec<Party>,
}

/// A look that counts.
#[derive(Debug, Clone)]
struct CountedFetch {
    at: OffsetDateTime,
    failed: bool,
    parties: Vec<Party>,
}

/// Watches the looks of one process.
#[derive(Debug, Clone, Default)]
pub struct CircuitBreaker {
    fetches: VecDeque<CountedFetch>,
    since: Option<OffsetDateTime>,
    /// Looks that would have counted since it is held, those of one party too.
    seen: usize,
}

/// What a look has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// The circuit breaker opens: so many of so many fetches have failed.
    Opened {
        /// Failures in the window.
        failed: usize,
        /// Looks in the window.
        fetches: usize,
    },
    /// Verdicts are given again; the brake was held since then.
    Closed {
        /// Since when it was held.
        since: OffsetDateTime,
    },
}

impl CircuitBreaker {
    /// A brake that is held since then, as when a process starts in the middle of an outage.
    pub fn opened(since: OffsetDateTime) -> Self {
        Self {
            since: Some(since),
            ..Self::default()
        }
    }

    /// Notes a look.
    pub fn note(&mut self, fetch: FetchReport, now: OffsetDateTime) -> Option<StateChange> {
        if !fetch.has_succeeded || (fetch.failed && fetch.was_failing) {
            return None;
        }
        self.seen = self.seen.saturating_add(1);
        self.forget(&fetch.parties, now);
        self.fetches.push_back(CountedFetch {
            at: now,
            failed: fetch.failed,
            parties: fetch.parties,
        });
        if let Some(since) = self.since {
            return self.is_over().then(|| {
                *self = Self::default();
                StateChange::Closed { since }
            });
        }
        let recent = self.fetches.iter().filter(|fetch| now - fetch.at <= PERIOD);
        let (fetches, failed) = recent.fold((0, 0), |(fetches, failed), fetch| {
            (fetches + 1, failed + usize::from(fetch.failed))
        });
        (fetches >= LEAST_FETCHES && failed * ONE_IN > fetches).then(|| {
            self.since = Some(now);
            self.seen = 0;
            StateChange::Opened { failed, fetches }
        })
    }

    /// Since when the circuit breaker is open; `None` while it is closed.
    pub const fn open_since(&self) -> Option<OffsetDateTime> {
        self.since
    }

    /// Makes room for a look of these parties: each keeps one fewer than may count. What every source that is asked
    /// at all has outlived goes too, or the failures of those that were deleted since would hold the brake.
    fn forget(&mut self, parties: &[Party], now: OffsetDateTime) {
        let longest = MAX_INTERVAL * (1.0 + JITTER) + PROMISE_SLACK;
        // A clock that went back has looks of the future; they go as those of the far past do.
        self.fetches
            .retain(|fetch| (now - fetch.at).abs() <= longest);
        for party in parties {
            let of_party = |fetch: &&CountedFetch| fetch.parties.contains(party);
            let mut surplus = (self.fetches.iter().filter(of_party).count() + 1)
                .saturating_sub(FETCHES_PER_PARTY);
            self.fetches.retain(|fetch| {
                let goes = surplus > 0 && fetch.parties.contains(party);
                surplus -= usize::from(goes);
                !goes
            });
        }
        if self.fetches.len() == WINDOW {
            self.fetches.pop_front();
        }
    }

    /// However long ago they were: a small registry looks seldom, and would otherwise never be sure. Nor would one of
    /// few parties, whose looks count as one again and again.
    fn is_over(&self) -> bool {
        if self.fetches.len().max(self.seen) < LEAST_FETCHES {
            return false;
        }
        let last = || self.fetches.iter().rev().take(LEAST_FETCHES);
        let failed = last().filter(|fetch| fetch.failed).count();
        failed * OVER_ONE_IN <= last().count()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:00 UTC);

    /// Parties that nobody else is in the hands of.
    fn alone(number: usize) -> Vec<Party> {
        vec![
            Party::Registrant(format!("account {number}")),
            Party::Site(format!("s{number}.example")),
            Party::Network(format!("2001:db8:{number:x}::/48").parse().unwrap()),
        ]
    }

    fn fetch(failed: bool, parties: Vec<Party>) -> FetchReport {
        FetchReport {
            failed,
            was_failing: false,
            has_succeeded: true,
            parties,
        }
    }

    /// Notes one look at each of these sources, all of other parties, at once.
    fn note(
        breaker: &mut CircuitBreaker,
        sources: std::ops::Range<usize>,
        failed: bool,
    ) -> Vec<StateChange> {
        sources
            .filter_map(|number| breaker.note(fetch(failed, alone(number)), NOW))
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
        let opened = StateChange::Opened {
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
        assert_eq!(breaker.fetches.len(), WINDOW);
    }

    #[test]
    fn a_few_looks_say_nothing() {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(note(&mut breaker, 0..LEAST_FETCHES - 1, true), []);
        assert_eq!(note(&mut breaker, 90..91, true).len(), 1);
    }

    #[test]
    fn what_has_been_failing_or_never_worked_says_nothing() {
        let mut breaker = CircuitBreaker::default();
        for number in 0..1_000 {
            let failing = FetchReport {
                was_failing: true,
                ..fetch(true, alone(number))
            };
            assert_eq!(breaker.note(failing, NOW), None);
            for failed in [true, false] {
                let never_worked = FetchReport {
                    has_succeeded: false,
                    ..fetch(failed, alone(number))
                };
                assert_eq!(breaker.note(never_worked, NOW), None);
            }
        }
        assert!(breaker.fetches.is_empty());
        assert_eq!(breaker.open_since(), None);
    }

    /// One party's sources, however many and however often they come back in between.
    #[test]
    fn one_party_can_do_nothing_nor_can_two() {
        for kind in 0..3 {
            for conspirators in [1, 2] {
                let mut breaker = CircuitBreaker::default();
                assert_eq!(
                    note(
                        &mut breaker,
                        0..LEAST_FETCHES - 2 * FETCHES_PER_PARTY,
                        false
                    ),
                    []
                );
                for number in 1_000..2_000 {
                    let mut parties = alone(number);
                    parties[kind] = alone(number % conspirators)[kind].clone();
                    for failed in [false, true, true] {
                        assert_eq!(breaker.note(fetch(failed, parties.clone()), NOW), None);
                    }
                }
                let failed = breaker.fetches.iter().filter(|fetch| fetch.failed).count();
                assert_eq!(failed, FETCHES_PER_PARTY * conspirators);
            }
        }
    }

    #[test]
    fn one_party_does_not_keep_it_held_nor_dilutes_it() {
        let mut breaker = CircuitBreaker::default();
        note(&mut breaker, 0..LEAST_FETCHES, true);
        assert!(breaker.open_since().is_some());
        // All of the world fails, and somebody's own sources answer as often as they like.
        for _ in 0..1_000 {
            assert_eq!(breaker.note(fetch(false, alone(5_000)), NOW), None);
        }
        // The world answers again, and somebody's sources fail anew as often as they can.
        let mut changes = Vec::new();
        for number in 0..LEAST_FETCHES {
            changes.extend(breaker.note(fetch(true, alone(6_000)), NOW));
            changes.extend(breaker.note(fetch(false, alone(number)), NOW));
        }
        assert_eq!(changes, [StateChange::Closed { since: NOW }]);
    }

    #[test]
    fn failures_of_hours_ago_are_not_at_once() {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(note(&mut breaker, 0..LEAST_FETCHES - 1, true), []);
        let later = NOW + PERIOD + Duration::SECOND;
        for number in 0..LEAST_FETCHES {
            let failed = number % 6 == 5;
            assert_eq!(
                breaker.note(fetch(failed, alone(100 + number)), later),
                None
            );
        }
    }

    #[test]
    fn one_that_starts_held_is_released_by_looks_and_not_by_their_absence() {
        let mut breaker = CircuitBreaker::opened(NOW);
        assert_eq!(note(&mut breaker, 0..LEAST_FETCHES - 1, false), []);
        assert_eq!(breaker.open_since(), Some(NOW));
        let closed = StateChange::Closed { since: NOW };
        assert_eq!(note(&mut breaker, 90..91, false), [closed]);
    }

    /// Of few parties there are never as many looks as are wanted, and what they say again and again does.
    #[test]
    fn few_parties_release_it_too() {
        let mut breaker = CircuitBreaker::opened(NOW);
        for number in 0..LEAST_FETCHES - 1 {
            assert_eq!(breaker.note(fetch(false, alone(number % 3)), NOW), None);
        }
        let closed = breaker.note(fetch(false, alone(0)), NOW);
        assert_eq!(closed, Some(StateChange::Closed { since: NOW }));
        // As long as one of the three fails they say nothing.
        let mut breaker = CircuitBreaker::opened(NOW);
        assert_eq!(breaker.note(fetch(true, alone(3)), NOW), None);
        for number in 0..1_000 {
            assert_eq!(breaker.note(fetch(false, alone(number % 3)), NOW), None);
        }
        // Asked no more, as when it was deleted, it is forgotten.
        let later = NOW + Duration::days(2);
        let closed = breaker.note(fetch(false, alone(0)), later);
        assert_eq!(closed, Some(StateChange::Closed { since: NOW }));
    }

    #[test]
    fn it_is_over_when_nearly_everything_answers() {
        let mut breaker = CircuitBreaker::default();
        note(&mut breaker, 0..LEAST_FETCHES, true);
        assert_eq!(note(&mut breaker, 100..100 + LEAST_FETCHES - 3, false), []);
        // Hours later, as in a small registry; what was failing and answers again counts like any other.
        let again = FetchReport {
            was_failing: true,
            ..fetch(false, alone(200))
        };
        let closed = breaker.note(again, NOW + Duration::hours(20));
        assert_eq!(closed, Some(StateChange::Closed { since: NOW }));
        assert_eq!(breaker.open_since(), None);
        assert_eq!(
            note(&mut breaker, 0..LEAST_FETCHES - 1, true),
            [],
            "it begins anew"
        );
    }
}
