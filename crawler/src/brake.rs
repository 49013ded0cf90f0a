//! Whether so many fetches fail at once that the fault is likely ours. Pure.
//!
//! What counts is news: a source that fails for the first time, and any source that answers. A source that has
//! been failing for long says nothing about our network, and would hold the brake for ever.

use std::collections::VecDeque;

use time::{Duration, OffsetDateTime};

/// How many of the last looks are remembered.
pub const WINDOW: usize = 100;
/// Looks older than this do not count as *at once*.
pub const PERIOD: Duration = Duration::HOUR;
/// With fewer looks than this nothing is concluded.
pub const LEAST_LOOKS: usize = 20;
/// More than one failure in so many looks is an outage of ours: 20 %.
const ONE_IN: usize = 5;
/// At most one failure in so many of the last [`LEAST_LOOKS`] means that it is over: 10 %.
const OVER_ONE_IN: usize = 10;

/// Watches the looks of one process.
#[derive(Debug, Clone, Default)]
pub struct Brake {
    looks: VecDeque<(OffsetDateTime, bool)>,
    since: Option<OffsetDateTime>,
}

/// What a look has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// From now on verdicts are frozen: so many of so many looks have failed.
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
            looks: VecDeque::new(),
            since: Some(since),
        }
    }

    /// Notes a look. `was_failing` says whether the source's look before this one failed already.
    pub fn note(&mut self, failed: bool, was_failing: bool, now: OffsetDateTime) -> Option<Turn> {
        if failed && was_failing {
            return None;
        }
        if self.looks.len() == WINDOW {
            self.looks.pop_front();
        }
        self.looks.push_back((now, failed));
        if let Some(since) = self.since {
            return self.is_over().then(|| {
                self.since = None;
                self.looks.clear();
                Turn::Released { since }
            });
        }
        let recent = self.looks.iter().filter(|(at, _)| now - *at <= PERIOD);
        let (looks, failed) = recent.fold((0, 0), |(looks, failed), (_, bad)| {
            (looks + 1, failed + usize::from(*bad))
        });
        (looks >= LEAST_LOOKS && failed * ONE_IN > looks).then(|| {
            self.since = Some(now);
            Turn::Braked { failed, looks }
        })
    }

    /// Since when verdicts are frozen; `None` where they are not.
    pub const fn held_since(&self) -> Option<OffsetDateTime> {
        self.since
    }

    /// However long ago they were: a small registry looks seldom, and would otherwise never be sure.
    fn is_over(&self) -> bool {
        if self.looks.len() < LEAST_LOOKS {
            return false;
        }
        let last = self.looks.iter().rev().take(LEAST_LOOKS);
        let failed = last.filter(|(_, failed)| *failed).count();
        failed * OVER_ONE_IN <= LEAST_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:00 UTC);

    /// Notes so many looks at once.
    fn note(brake: &mut Brake, count: usize, failed: bool) -> Vec<Turn> {
        (0..count)
            .filter_map(|_| brake.note(failed, false, NOW))
            .collect()
    }

    #[test]
    fn more_than_a_fifth_at_once_brakes() {
        let mut brake = Brake::default();
        assert_eq!(note(&mut brake, 80, false), []);
        assert_eq!(
            note(&mut brake, 20, true),
            [],
            "a fifth is not more than that"
        );
        assert_eq!(brake.held_since(), None);
        let braked = Turn::Braked {
            failed: 21,
            looks: 100,
        };
        assert_eq!(brake.note(true, false, NOW), Some(braked));
        assert_eq!(brake.held_since(), Some(NOW));
        assert_eq!(note(&mut brake, 1_000, true), [], "it is held already");
        assert_eq!(brake.looks.len(), WINDOW);
    }

    #[test]
    fn a_few_looks_say_nothing() {
        let mut brake = Brake::default();
        assert_eq!(note(&mut brake, LEAST_LOOKS - 1, true), []);
        assert!(brake.note(true, false, NOW).is_some());
    }

    #[test]
    fn what_has_been_failing_says_nothing() {
        let mut brake = Brake::default();
        for _ in 0..1_000 {
            assert_eq!(brake.note(true, true, NOW), None);
        }
        assert_eq!(brake.held_since(), None);
    }

    #[test]
    fn failures_of_hours_ago_are_not_at_once() {
        let mut brake = Brake::default();
        assert_eq!(note(&mut brake, LEAST_LOOKS - 1, true), []);
        let later = NOW + PERIOD + Duration::SECOND;
        for number in 0..LEAST_LOOKS {
            assert_eq!(brake.note(number % 6 == 5, false, later), None);
        }
    }

    #[test]
    fn one_that_starts_held_is_released_by_looks_and_not_by_their_absence() {
        let mut brake = Brake::held(NOW);
        assert_eq!(note(&mut brake, LEAST_LOOKS - 1, false), []);
        assert_eq!(brake.held_since(), Some(NOW));
        let released = brake.note(false, false, NOW);
        assert_eq!(released, Some(Turn::Released { since: NOW }));
    }

    #[test]
    fn it_is_over_when_nearly_everything_answers() {
        let mut brake = Brake::default();
        note(&mut brake, LEAST_LOOKS, true);
        assert_eq!(note(&mut brake, LEAST_LOOKS - 3, false), []);
        // Days later, as in a small registry; what was failing and answers again counts like any other.
        let later = NOW + Duration::days(2);
        let released = brake.note(false, true, later);
        assert_eq!(released, Some(Turn::Released { since: NOW }));
        assert_eq!(brake.held_since(), None);
        assert_eq!(
            note(&mut brake, LEAST_LOOKS - 1, true),
            [],
            "it begins anew"
        );
    }
}
