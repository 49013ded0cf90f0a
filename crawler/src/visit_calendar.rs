//! Planned visits counted by minute, so that a new visit is planned for a quiet minute. Pure.
//!
//! A due time may vary within the jitter. With purely random times, a small registry would have busy and idle minutes,
//! and the hosts of a large import would return as a wave every day. Therefore several times within the jitter are
//! compared, and the one with the fewest planned visits is chosen.

use time::{Duration, OffsetDateTime};

use crate::schedule::{JITTER, MAX_INTERVAL};

const SLOT_DURATION: Duration = Duration::MINUTE;
/// Number of minutes: the longest wait with jitter, and one more hour.
const SLOT_COUNT: usize = 28 * 60;
const CANDIDATE_COUNT: u32 = 32;

/// The visits planned for the next 28 hours, by minute, and their total rate.
#[derive(Debug, Clone)]
pub struct VisitCalendar {
    visits_by_minute: Vec<u32>,
    /// Number of the first minute in the calendar.
    first_minute: i64,
    steady_rate: f64,
}

impl VisitCalendar {
    /// A calendar without visits.
    pub fn new(now: OffsetDateTime) -> Self {
        debug_assert!(
            MAX_INTERVAL * (1.0 + JITTER) <= SLOT_DURATION * i32::try_from(SLOT_COUNT).unwrap_or(0)
        );
        Self {
            visits_by_minute: vec![0; SLOT_COUNT],
            first_minute: unix_minute(now),
            steady_rate: 0.0,
        }
    }

    /// Counts visits planned for a time. Times outside the 28 hours are ignored.
    pub fn add_visits(&mut self, at: OffsetDateTime, now: OffsetDateTime, visits: u32) {
        self.clear_past_minutes(now);
        if let Some(slot) = self.slot_index_at(at) {
            self.visits_by_minute[slot] = self.visits_by_minute[slot].saturating_add(visits);
        }
    }

    /// Number of visits planned for the minute of this time.
    pub fn visits_in_minute(&self, at: OffsetDateTime) -> u32 {
        self.slot_index_at(at)
            .map_or(0, |slot| self.visits_by_minute[slot])
    }

    /// The random number in 0..1 that leads to the time with the fewest planned visits. The comparison starts at
    /// `seed`, also in 0..1, so that one of several equal candidates is chosen at random.
    pub fn least_busy_jitter(&self, seed: f64, time_for: impl Fn(f64) -> OffsetDateTime) -> f64 {
        let candidate =
            |number: u32| (seed + f64::from(number) / f64::from(CANDIDATE_COUNT)).fract();
        (0..CANDIDATE_COUNT)
            .map(candidate)
            .min_by_key(|random| self.visits_in_minute(time_for(*random)))
            .unwrap_or(seed)
    }

    /// The planned visits per second.
    pub const fn steady_rate(&self) -> f64 {
        self.steady_rate
    }

    /// Sets the rate, as counted in the database.
    pub const fn set_steady_rate(&mut self, visits_a_second: f64) {
        self.steady_rate = visits_a_second;
    }

    /// Updates the rate after a domain's interval changed; `None` if the domain was not or is no longer visited
    /// regularly.
    pub fn apply_interval_change(&mut self, before: Option<Duration>, after: Option<Duration>) {
        let rate = |interval: Option<Duration>| {
            interval.map_or(0.0, |interval| 1.0 / interval.as_seconds_f64().max(1.0))
        };
        self.steady_rate = (self.steady_rate + rate(after) - rate(before)).max(0.0);
    }

    fn clear_past_minutes(&mut self, now: OffsetDateTime) {
        let now = unix_minute(now);
        let passed = now.saturating_sub(self.first_minute);
        if passed <= 0 {
            return;
        }
        let count = usize::try_from(passed)
            .unwrap_or(SLOT_COUNT)
            .min(SLOT_COUNT);
        for number in 0..count {
            let index = minute_index(self.first_minute.saturating_add(number as i64));
            self.visits_by_minute[index] = 0;
        }
        self.first_minute = now;
    }

    fn slot_index_at(&self, at: OffsetDateTime) -> Option<usize> {
        let minute = unix_minute(at);
        let ahead = minute.checked_sub(self.first_minute)?;
        (0..SLOT_COUNT as i64)
            .contains(&ahead)
            .then(|| minute_index(minute))
    }
}

fn unix_minute(at: OffsetDateTime) -> i64 {
    at.unix_timestamp()
        .div_euclid(SLOT_DURATION.whole_seconds())
}

fn minute_index(minute: i64) -> usize {
    usize::try_from(minute.rem_euclid(SLOT_COUNT as i64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00:30 UTC);

    #[test]
    fn plans_are_counted_by_the_minute_and_pass() {
        let mut planned = VisitCalendar::new(NOW);
        let at = NOW + Duration::hours(26);
        planned.add_visits(at, NOW, 2);
        planned.add_visits(at + Duration::seconds(29), NOW, 1);
        assert_eq!(planned.visits_in_minute(at), 3);
        assert_eq!(planned.visits_in_minute(at + Duration::seconds(30)), 0);
        // Times outside the 28 hours.
        for outside in [NOW - Duration::MINUTE, NOW + Duration::hours(28)] {
            planned.add_visits(outside, NOW, 1);
            assert_eq!(planned.visits_in_minute(outside), 0);
        }
        planned.add_visits(at + Duration::hours(20), at, 1);
        assert_eq!(planned.visits_in_minute(at), 3, "this minute is not over");
        planned.add_visits(at + Duration::hours(20), at + Duration::MINUTE, 1);
        assert_eq!(planned.visits_in_minute(at + Duration::hours(20)), 2);
        assert_eq!(planned.visits_by_minute.iter().sum::<u32>(), 2);
        planned.add_visits(at + Duration::days(400), at + Duration::days(400), 1);
        assert_eq!(planned.visits_by_minute.iter().sum::<u32>(), 1);
    }

    #[test]
    fn a_wave_is_spread_over_the_whole_jitter() {
        let mut planned = VisitCalendar::new(NOW);
        let moment = |random: f64| NOW + MAX_INTERVAL * (1.0 - JITTER + 2.0 * JITTER * random);
        for number in 0..2_880_u32 {
            let seed = f64::from(number * 7 % 2_880) / 2_880.0;
            let random = planned.least_busy_jitter(seed, moment);
            assert!((0.0..1.0).contains(&random));
            planned.add_visits(moment(random), NOW, 1);
        }
        // The jitter is 288 minutes wide, so an even distribution has ten visits a minute.
        let busiest = planned.visits_by_minute.iter().max().copied();
        assert!(busiest <= Some(12), "{busiest:?} in a minute");
    }

    #[test]
    fn the_rate_follows_the_intervals() {
        let mut planned = VisitCalendar::new(NOW);
        planned.set_steady_rate(1.0);
        planned.apply_interval_change(None, Some(Duration::seconds(2)));
        assert!((planned.steady_rate() - 1.5).abs() < 1e-9);
        planned.apply_interval_change(Some(Duration::seconds(2)), Some(Duration::seconds(4)));
        assert!((planned.steady_rate() - 1.25).abs() < 1e-9);
        planned.apply_interval_change(Some(Duration::ZERO), None);
        planned.apply_interval_change(Some(Duration::ZERO), None);
        assert!(planned.steady_rate().abs() < 1e-9);
    }
}
