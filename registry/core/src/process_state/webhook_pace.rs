//! The pace of deliveries to hooks: how many this process sends to one host in a second.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of hosts from which those are forgotten to which anything may be sent.
const MAX_HOSTS: usize = 10_000;

/// When the next delivery to each host may begin, by the monotonic clock.
#[derive(Debug, Default)]
pub struct WebhookPace(Mutex<HashMap<String, Duration>>);

impl WebhookPace {
    /// Reserves the next place of a host, and returns how long to wait for it; `None`, without a reservation, if that
    /// is longer than `max_wait`.
    pub fn reserve(
        &self,
        host: &str,
        per_second: u32,
        now: Duration,
        max_wait: Duration,
    ) -> Option<Duration> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_HOSTS {
            places.retain(|_, next| *next > now);
        }
        let interval = Duration::from_secs(1) / per_second.max(1);
        let next = places.entry(host.to_owned()).or_insert(now);
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
    fn each_host_gets_so_many_a_second() {
        let pace = WebhookPace::default();
        let second = Duration::from_secs(1);
        let reserve = |host, now| pace.reserve(host, 10, now, second * 3);
        for number in 0..=30 {
            assert_eq!(reserve("a", second), Some(second / 10 * number));
        }
        // A place that is too far away is not taken, so that those who wait longer get it.
        assert_eq!(reserve("a", second), None);
        let patient = pace.reserve("a", 10, second, second * 4);
        assert_eq!(patient, Some(second / 10 * 31));
        assert_eq!(reserve("b", second), Some(Duration::ZERO));
        // What was not used is not saved up.
        assert_eq!(reserve("a", second * 100), Some(Duration::ZERO));
        assert_eq!(reserve("a", second * 100), Some(second / 10));
    }

    #[test]
    fn hosts_that_wait_for_nothing_are_forgotten() {
        let pace = WebhookPace::default();
        for number in 0..MAX_HOSTS {
            pace.reserve(&number.to_string(), 10, Duration::ZERO, Duration::ZERO);
        }
        pace.reserve("another", 10, Duration::from_secs(1), Duration::ZERO);
        let places = pace.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(places.len(), 1);
    }
}
