//! The pace of messages to hooks: how many this process sends to one host, or for one account.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of keys from which those are forgotten for which anything may be sent. No further ones are added while none
/// is forgotten.
const MAX_KEYS: usize = 10_000;

/// When the next message for each key may be sent, by the monotonic clock.
#[derive(Debug, Default)]
pub struct WebhookPace(Mutex<HashMap<String, Duration>>);

impl WebhookPace {
    /// Reserves the next place of a key, whose places are an interval apart, and returns how long to wait for it;
    /// `None`, without a reservation, if that is longer than `max_wait`.
    pub fn reserve(
        &self,
        key: &str,
        interval: Duration,
        now: Duration,
        max_wait: Duration,
    ) -> Option<Duration> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_KEYS && !places.contains_key(key) {
            places.retain(|_, next| *next > now);
            if places.len() >= MAX_KEYS {
                return None;
            }
        }
        let next = places.entry(key.to_owned()).or_insert(now);
        let place = (*next).max(now);
        let wait = place - now;
        if wait > max_wait {
            return None;
        }
        *next = place + interval;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_gets_so_many_a_second() {
        let pace = WebhookPace::default();
        let second = Duration::from_secs(1);
        let tenth = second / 10;
        let reserve = |key, now| pace.reserve(key, tenth, now, second * 3);
        for number in 0..=30 {
            assert_eq!(reserve("a", second), Some(tenth * number));
        }
        // A place that is too far away is not taken, so that those who wait longer get it.
        assert_eq!(reserve("a", second), None);
        let patient = pace.reserve("a", tenth, second, second * 4);
        assert_eq!(patient, Some(tenth * 31));
        assert_eq!(reserve("b", second), Some(Duration::ZERO));
        // What was not used is not saved up.
        assert_eq!(reserve("a", second * 100), Some(Duration::ZERO));
        assert_eq!(reserve("a", second * 100), Some(tenth));
    }

    #[test]
    fn keys_are_bounded_and_forgotten_when_they_wait_for_nothing() {
        let pace = WebhookPace::default();
        let second = Duration::from_secs(1);
        let reserve = |key: &str, now| pace.reserve(key, second, now, Duration::ZERO);
        for number in 0..MAX_KEYS {
            assert!(reserve(&number.to_string(), Duration::ZERO).is_some());
        }
        assert_eq!(reserve("another", Duration::ZERO), None);
        assert_eq!(reserve("another", second), Some(Duration::ZERO));
        let places = pace.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(places.len(), 1);
    }
}
