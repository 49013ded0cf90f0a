//! Numbers of planned visits by minute, so that a new visit is planned for a quiet minute. Pure.
//!
//! A due time may vary within some jitter. Chosen at random, a small registry would have busy and idle minutes, and
//! the hosts of a large import would come back as a wave every day. So several times within the jitter are compared,
//! and the one with the fewest planned visits is taken.

use time::{Duration, OffsetDateTime};

use crate::schedule::{JITTER, MAX_INTERVAL};

const SLOT: Duration = Duration::MINUTE;
/// Number of slots: the longest wait with jitter, and one more hour.
const SLOTS: usize = 28 * 60;
const CANDIDATES: u32 = 32;

/// The visits planned for the next 28 hours, by minute, and their total rate.
#[derive(Debug, Clone)]
pub struct Planned {
    slots: Vec<u32>,
    /// Number of the first minute that is kept.
    first: i64,
    steady: f64,
}

impl Planned {
    /// A plan without any visits.
    pub fn new(now: OffsetDateTime) -> Self {
        debug_assert!(MAX_INTERVAL * (1.0 + JITTER) <= SLOT * i32::try_from(SLOTS).unwrap_or(0));
        Self {
            slots: vec![0; SLOTS],
            first: minute(now),
            steady: 0.0,
        }
    }

    /// Counts visits planned for a time. A time outside the 28 hours is ignored.
    pub fn add(&mut self, at: OffsetDateTime, now: OffsetDateTime, visits: u32) {
        self.forget_before(now);
        if let Some(slot) = self.slot(at) {
            self.slots[slot] = self.slots[slot].saturating_add(visits);
        }
    }

    /// Number of visits planned for that minute.
    pub fn count(&self, at: OffsetDateTime) -> u32 {
        self.slot(at).map_or(0, |slot| self.slots[slot])
    }

    /// The random number, in 0..1, that leads to the time with the fewest planned visits. `seed`, in 0..1, is where
    /// the comparison starts, so that equal candidates are chosen at random.
    pub fn least(&self, seed: f64, moment: impl Fn(f64) -> OffsetDateTime) -> f64 {
        let candidate = |number: u32| (seed + f64::from(number) / f64::from(CANDIDATES)).fract();
        (0..CANDIDATES)
            .map(candidate)
            .min_by_key(|random| self.count(moment(*random)))
            .unwrap_or(seed)
    }

    /// Visits a second, as planned.
    pub const fn steady(&self) -> f64 {
        self.steady
    }

    /// Sets the rate, as counted in the database.
    pub const fn set_steady(&mut self, visits_a_second: f64) {
        self.steady = visits_a_second;
    }

    /// Updates the rate after a domain's interval changed; `None` if it was or is not visited regularly.
    pub fn change_interval(&mut self, before: Option<Duration>, after: Option<Duration>) {
        let rate = |interval: Option<Duration>| {
            interval.map_or(0.0, |interval| 1.0 / interval.as_seconds_f64().max(1.0))
        };
        self.steady = (self.steady + rate(after) - rate(before)).max(0.0);
    }

    fn forget_before(&mut self, now: OffsetDateTime) {
        let now = minute(now);
        let passed = now.saturating_sub(self.first);
        if passed <= 0 {
            return;
        }
        let count = usize::try_from(passed).unwrap_or(SLOTS).min(SLOTS);
        for number in 0..count {
            let slot = slot_of(self.first.saturating_add(number as i64));
            self.slots[slot] = 0;
        }
        self.first = now;
    }

    fn slot(&self, at: OffsetDateTime) -> Option<usize> {
        let minute = minute(at);
        let ahead = minute.checked_sub(self.first)?;
        (0..SLOTS as i64).contains(&ahead).then(|| slot_of(minute))
    }
}

fn minute(at: OffsetDateTime) -> i64 {
    at.unix_timestamp().div_euclid(SLOT.whole_seconds())
}

fn slot_of(minute: i64) -> usize {
    usize::try_from(minute.rem_euclid(SLOTS as i64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:30 UTC);

    #[test]
    fn plans_are_counted_by_the_minute_and_pass() {
        let mut planned = Planned::new(NOW);
        let at = NOW + Duration::hours(26);
        planned.add(at, NOW, 2);
        planned.add(at + Duration::seconds(29), NOW, 1);
        assert_eq!(planned.count(at), 3);
        assert_eq!(planned.count(at + Duration::seconds(30)), 0);
        // Outside of the 28 hours.
        for outside in [NOW - Duration::MINUTE, NOW + Duration::hours(28)] {
            planned.add(outside, NOW, 1);
            assert_eq!(planned.count(outside), 0);
        }
        planned.add(at + Duration::hours(20), at, 1);
        assert_eq!(planned.count(at), 3, "this minute is not over");
        planned.add(at + Duration::hours(20), at + Duration::MINUTE, 1);
        assert_eq!(planned.count(at + Duration::hours(20)), 2);
        assert_eq!(planned.slots.iter().sum::<u32>(), 2);
        planned.add(at + Duration::days(400), at + Duration::days(400), 1);
        assert_eq!(planned.slots.iter().sum::<u32>(), 1);
    }

    #[test]
    fn a_wave_is_spread_over_the_whole_jitter() {
        let mut planned = Planned::new(NOW);
        let moment = |random: f64| NOW + MAX_INTERVAL * (1.0 - JITTER + 2.0 * JITTER * random);
        for number in 0..2_880_u32 {
            let seed = f64::from(number * 7 % 2_880) / 2_880.0;
            let random = planned.least(seed, moment);
            assert!((0.0..1.0).contains(&random));
            planned.add(moment(random), NOW, 1);
        }
        // The jitter is 288 minutes wide, so an even distribution has ten visits a minute.
        let busiest = planned.slots.iter().max().copied();
        assert!(busiest <= Some(12), "{busiest:?} in a minute");
    }

    #[test]
    fn the_rate_follows_the_intervals() {
        let mut planned = Planned::new(NOW);
        planned.set_steady(1.0);
        planned.change_interval(None, Some(Duration::seconds(2)));
        assert!((planned.steady() - 1.5).abs() < 1e-9);
        planned.change_interval(Some(Duration::seconds(2)), Some(Duration::seconds(4)));
        assert!((planned.steady() - 1.25).abs() < 1e-9);
        planned.change_interval(Some(Duration::ZERO), None);
        planned.change_interval(Some(Duration::ZERO), None);
        assert!(planned.steady().abs() < 1e-9);
    }
}
