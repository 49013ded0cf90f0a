//! Circuit breaker for failures of our own network: it opens while many fetches fail at once. Pure.
//!
//! What counts is news: a source that fails for the first time, and any source that answers; and only of sources
//! that have answered before. One that never did, or has been failing for long, says nothing about our network, and
//! would hold the brake for ever.
//!
//! Whoever holds the brake freezes the verdicts on everybody. So of whatever one party can make fail on purpose, the
//! latest [`LOOKS_PER_PARTY`] looks are all that counts, fewer than could set the brake or keep it.

use std::collections::VecDeque;

use ipnet::IpNet;
use time::{Duration, OffsetDateTime};

use crate::schedule::{JITTER, MAX_INTERVAL, PROMISE_SLACK};

/// How many of the last looks are remembered.
pub const WINDOW: usize = 100;
/// Looks older than this do not count as *at once*.
pub const PERIOD: Duration = Duration::HOUR;
/// With fewer looks than this nothing is concluded.
pub const LEAST_LOOKS: usize = 20;
/// Looks that count of one party: the latest ones.
pub const LOOKS_PER_PARTY: usize = 2;
/// More than one failure in so many looks is an outage of ours: 20 %.
const ONE_IN: usize = 5;
/// At most one failure in so many of the last [`LEAST_LOOKS`] means that it is over: 10 %.
const OVER_ONE_IN: usize = 10;

// Two parties that conspire do not set the brake, and one alone does not keep it.
const _: () = assert!(2 * LOOKS_PER_PARTY * ONE_IN <= LEAST_LOOKS);
const _: () = assert!(LOOKS_PER_PARTY * OVER_ONE_IN <= LEAST_LOOKS);

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
pub struct Look {
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
struct Counted {
    at: OffsetDateTime,
    failed: bool,
    parties: Vec<Party>,
}

/// Watches the looks of one process.
#[derive(Debug, Clone, Default)]
pub struct Brake {
    looks: VecDeque<Counted>,
    since: Option<OffsetDateTime>,
    /// Looks that would have counted since it is held, those of one party too.
    seen: usize,
}

/// What a look has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The circuit breaker opens, because `failed` of `looks` fetches have failed.
    Braked {
        /// Failures in the window.
        failed: usize,
        /// Looks in the window.
        looks: usize,
    },
    /// Verdicts are given again; the brake was held since then.
    Released {
        /// Since when it was held.
        since: OffsetDateTime,
    },
}

impl Brake {
    /// A brake that is held since then, as when a process starts in the middle of an outage.
    pub fn held(since: OffsetDateTime) -> Self {
        Self {
            since: Some(since),
            ..Self::default()
        }
    }

    /// Notes a look.
    pub fn note(&mut self, look: Look, now: OffsetDateTime) -> Option<Turn> {
        if !look.has_succeeded || (look.failed && look.was_failing) {
            return None;
        }
        self.seen = self.seen.saturating_add(1);
        self.forget(&look.parties, now);
        self.looks.push_back(Counted {
            at: now,
            failed: look.failed,
            parties: look.parties,
        });
        if let Some(since) = self.since {
            return self.is_over().then(|| {
                *self = Self::default();
                Turn::Released { since }
            });
        }
        let recent = self.looks.iter().filter(|look| now - look.at <= PERIOD);
        let (looks, failed) = recent.fold((0, 0), |(looks, failed), look| {
            (looks + 1, failed + usize::from(look.failed))
        });
        (looks >= LEAST_LOOKS && failed * ONE_IN > looks).then(|| {
            self.since = Some(now);
            self.seen = 0;
            Turn::Braked { failed, looks }
        })
    }

    /// Since when the circuit breaker is open; `None` while it is closed.
    pub const fn held_since(&self) -> Option<OffsetDateTime> {
        self.since
    }

    /// Makes room for a look of these parties: each keeps one fewer than may count. What every source that is asked
    /// at all has outlived goes too, or the failures of those that were deleted since would hold the brake.
    fn forget(&mut self, parties: &[Party], now: OffsetDateTime) {
        let longest = MAX_INTERVAL * (1.0 + JITTER) + PROMISE_SLACK;
        // A clock that went back has looks of the future; they go as those of the far past do.
        self.looks.retain(|look| (now - look.at).abs() <= longest);
        for party in parties {
            let of_party = |look: &&Counted| look.parties.contains(party);
            let mut surplus =
                (self.looks.iter().filter(of_party).count() + 1).saturating_sub(LOOKS_PER_PARTY);
            self.looks.retain(|look| {
                let goes = surplus > 0 && look.parties.contains(party);
                surplus -= usize::from(goes);
                !goes
            });
        }
        if self.looks.len() == WINDOW {
            self.looks.pop_front();
        }
    }

    /// However long ago they were: a small registry looks seldom, and would otherwise never be sure. Nor would one of
    /// few parties, whose looks count as one again and again.
    fn is_over(&self) -> bool {
        if self.looks.len().max(self.seen) < LEAST_LOOKS {
            return false;
        }
        let last = || self.looks.iter().rev().take(LEAST_LOOKS);
        let failed = last().filter(|look| look.failed).count();
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

    fn look(failed: bool, parties: Vec<Party>) -> Look {
        Look {
            failed,
            was_failing: false,
            has_succeeded: true,
            parties,
        }
    }

    /// Notes one look at each of these sources, all of other parties, at once.
    fn note(brake: &mut Brake, sources: std::ops::Range<usize>, failed: bool) -> Vec<Turn> {
        sources
            .filter_map(|number| brake.note(look(failed, alone(number)), NOW))
            .collect()
    }

    #[test]
    fn more_than_a_fifth_at_once_brakes() {
        let mut brake = Brake::default();
        assert_eq!(note(&mut brake, 0..80, false), []);
        assert_eq!(
            note(&mut brake, 80..100, true),
            [],
            "a fifth is not more than that"
        );
        assert_eq!(brake.held_since(), None);
        let braked = Turn::Braked {
            failed: 21,
            looks: 100,
        };
        assert_eq!(note(&mut brake, 100..101, true), [braked]);
        assert_eq!(brake.held_since(), Some(NOW));
        assert_eq!(note(&mut brake, 101..1_100, true), [], "it is held already");
        assert_eq!(brake.looks.len(), WINDOW);
    }

    #[test]
    fn a_few_looks_say_nothing() {
        let mut brake = Brake::default();
        assert_eq!(note(&mut brake, 0..LEAST_LOOKS - 1, true), []);
        assert_eq!(note(&mut brake, 90..91, true).len(), 1);
    }

    #[test]
    fn what_has_been_failing_or_never_worked_says_nothing() {
        let mut brake = Brake::default();
        for number in 0..1_000 {
            let failing = Look {
                was_failing: true,
                ..look(true, alone(number))
            };
            assert_eq!(brake.note(failing, NOW), None);
            for failed in [true, false] {
                let never_worked = Look {
                    has_succeeded: false,
                    ..look(failed, alone(number))
                };
                assert_eq!(brake.note(never_worked, NOW), None);
            }
        }
        assert!(brake.looks.is_empty());
        assert_eq!(brake.held_since(), None);
    }

    /// One party's sources, however many and however often they come back in between.
    #[test]
    fn one_party_can_do_nothing_nor_can_two() {
        for kind in 0..3 {
            for conspirators in [1, 2] {
                let mut brake = Brake::default();
                assert_eq!(
                    note(&mut brake, 0..LEAST_LOOKS - 2 * LOOKS_PER_PARTY, false),
                    []
                );
                for number in 1_000..2_000 {
                    let mut parties = alone(number);
                    parties[kind] = alone(number % conspirators)[kind].clone();
                    for failed in [false, true, true] {
                        assert_eq!(brake.note(look(failed, parties.clone()), NOW), None);
                    }
                }
                let failed = brake.looks.iter().filter(|look| look.failed).count();
                assert_eq!(failed, LOOKS_PER_PARTY * conspirators);
            }
        }
    }

    #[test]
    fn one_party_does_not_keep_it_held_nor_dilutes_it() {
        let mut brake = Brake::default();
        note(&mut brake, 0..LEAST_LOOKS, true);
        assert!(brake.held_since().is_some());
        // All of the world fails, and somebody's own sources answer as often as they like.
        for _ in 0..1_000 {
            assert_eq!(brake.note(look(false, alone(5_000)), NOW), None);
        }
        // The world answers again, and somebody's sources fail anew as often as they can.
        let mut turns = Vec::new();
        for number in 0..LEAST_LOOKS {
            turns.extend(brake.note(look(true, alone(6_000)), NOW));
            turns.extend(brake.note(look(false, alone(number)), NOW));
        }
        assert_eq!(turns, [Turn::Released { since: NOW }]);
    }

    #[test]
    fn failures_of_hours_ago_are_not_at_once() {
        let mut brake = Brake::default();
        assert_eq!(note(&mut brake, 0..LEAST_LOOKS - 1, true), []);
        let later = NOW + PERIOD + Duration::SECOND;
        for number in 0..LEAST_LOOKS {
            let failed = number % 6 == 5;
            assert_eq!(brake.note(look(failed, alone(100 + number)), later), None);
        }
    }

    #[test]
    fn one_that_starts_held_is_released_by_looks_and_not_by_their_absence() {
        let mut brake = Brake::held(NOW);
        assert_eq!(note(&mut brake, 0..LEAST_LOOKS - 1, false), []);
        assert_eq!(brake.held_since(), Some(NOW));
        let released = Turn::Released { since: NOW };
        assert_eq!(note(&mut brake, 90..91, false), [released]);
    }

    /// Of few parties there are never as many looks as are wanted, and what they say again and again does.
    #[test]
    fn few_parties_release_it_too() {
        let mut brake = Brake::held(NOW);
        for number in 0..LEAST_LOOKS - 1 {
            assert_eq!(brake.note(look(false, alone(number % 3)), NOW), None);
        }
        let released = brake.note(look(false, alone(0)), NOW);
        assert_eq!(released, Some(Turn::Released { since: NOW }));
        // As long as one of the three fails they say nothing.
        let mut brake = Brake::held(NOW);
        assert_eq!(brake.note(look(true, alone(3)), NOW), None);
        for number in 0..1_000 {
            assert_eq!(brake.note(look(false, alone(number % 3)), NOW), None);
        }
        // Asked no more, as when it was deleted, it is forgotten.
        let later = NOW + Duration::days(2);
        let released = brake.note(look(false, alone(0)), later);
        assert_eq!(released, Some(Turn::Released { since: NOW }));
    }

    #[test]
    fn it_is_over_when_nearly_everything_answers() {
        let mut brake = Brake::default();
        note(&mut brake, 0..LEAST_LOOKS, true);
        assert_eq!(note(&mut brake, 100..100 + LEAST_LOOKS - 3, false), []);
        // Hours later, as in a small registry; what was failing and answers again counts like any other.
        let again = Look {
            was_failing: true,
            ..look(false, alone(200))
        };
        let released = brake.note(again, NOW + Duration::hours(20));
        assert_eq!(released, Some(Turn::Released { since: NOW }));
        assert_eq!(brake.held_since(), None);
        assert_eq!(
            note(&mut brake, 0..LEAST_LOOKS - 1, true),
            [],
            "it begins anew"
        );
    }
}
