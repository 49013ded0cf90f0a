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
    /// Reserves the next place of a host, and returns how long to wait for it.
    pub fn reserve(&self, host: &str, per_second: u32, now: Duration) -> Duration {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_HOSTS {
            places.retain(|_, next| *next > now);
        }
        let interval = Duration::from_secs(1) / per_second.max(1);
        let next = places.entry(host.to_owned()).or_insert(now);
        let place = (*next).max(now);
        *next = place + interval;
        place - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_gets_so_many_a_second() {
        let pace = WebhookPace::default();
        let second = Duration::from_secs(1);
        for number in 0..30 {
            assert_eq!(pace.reserve("a", 10, second), second / 10 * number);
        }
        assert_eq!(pace.reserve("b", 10, second), Duration::ZERO);
        // What was not used is not saved up.
        assert_eq!(pace.reserve("a", 10, second * 100), Duration::ZERO);
        assert_eq!(pace.reserve("a", 10, second * 100), second / 10);
    }

    #[test]
    fn hosts_that_wait_for_nothing_are_forgotten() {
        let pace = WebhookPace::default();
        for number in 0..MAX_HOSTS {
            pace.reserve(&number.to_string(), 10, Duration::ZERO);
        }
        pace.reserve("another", 10, Duration::from_secs(1));
        let places = pace.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(places.len(), 1);
    }
}
