//! The pace of messages to the receivers of hooks: how many this process sends in a time to each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of hosts. Those to which anything may be sent are forgotten first.
const MAX_HOSTS: usize = 10_000;

/// When the next delivery to each host may begin, by the monotonic clock.
#[derive(Debug, Default)]
pub struct WebhookPace(Mutex<HashMap<String, Duration>>);

impl WebhookPace {
    /// Reserves the next place of a host, each an interval after the last one, and returns how long to wait for it;
    /// `None`, without a reservation, if that is longer than `max_wait`. A caller that does not wait can thus use as
    /// many places at once as fit into `max_wait`.
    pub fn reserve(
        &self,
        host: &str,
        interval: Duration,
        now: Duration,
        max_wait: Duration,
    ) -> Option<Duration> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_HOSTS && !places.contains_key(host) {
            places.retain(|_, next| *next > now);
            if places.len() >= MAX_HOSTS {
                return None;
            }
        }
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
        let reserve = |host, now| pace.reserve(host, second / 10, now, second * 3);
        for number in 0..=30 {
            assert_eq!(reserve("a", second), Some(second / 10 * number));
        }
        // A place that is too far away is not taken, so that those who wait longer get it.
        assert_eq!(reserve("a", second), None);
        let patient = pace.reserve("a", second / 10, second, second * 4);
        assert_eq!(patient, Some(second / 10 * 31));
        assert_eq!(reserve("b", second), Some(Duration::ZERO));
        // What was not used is not saved up.
        assert_eq!(reserve("a", second * 100), Some(Duration::ZERO));
        assert_eq!(reserve("a", second * 100), Some(second / 10));
    }

    #[test]
    fn hosts_that_wait_for_nothing_are_forgotten() {
        let (pace, second) = (WebhookPace::default(), Duration::from_secs(1));
        for number in 0..MAX_HOSTS {
            pace.reserve(&number.to_string(), second, Duration::ZERO, second);
        }
        let reserve = |host, now| pace.reserve(host, second, now, second);
        assert_eq!(reserve("another", second / 2), None);
        assert_eq!(reserve("0", second / 2), Some(second / 2));
        assert_eq!(reserve("another", second * 2), Some(Duration::ZERO));
        let places = pace.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(places.len(), 1);
    }
}
