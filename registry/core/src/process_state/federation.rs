//! The state of federation in one process: whether other registries respond, and merged lists whose next page may be
//! requested.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_registry_api::ard::SearchResult;
use moka::sync::Cache;
use tokio::sync::Semaphore;

/// Number of consecutive failures that open the circuit breaker of a peer.
const MAX_FAILURES: u32 = 3;
/// How long the circuit breaker of a peer stays open; then one search tries the peer again.
const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);
/// Maximum size of the cached merged lists in bytes, as they would be sent.
const MAX_RESULT_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum number of concurrent searches that query peers; further searches skip the peers.
const MAX_CONCURRENT_SEARCHES: usize = 32;
/// How long a merged list is kept.
const RESULTS_TTL: Duration = Duration::from_secs(300);

/// A merged list that is served in pages.
#[derive(Debug, Clone)]
pub struct MergedResults {
    /// The results, in order.
    pub results: Vec<SearchResult>,
    /// The token for this registry's own results after those in the list.
    pub own_next_token: Option<String>,
    /// The size of the list in bytes, as it would be sent.
    pub size: u32,
}

#[derive(Debug)]
pub struct FederationState {
    breakers: Mutex<HashMap<String, PeerBreaker>>,
    /// The permits for searches that query peers.
    pub search_permits: Semaphore,
    pub merged_results: Cache<u64, Arc<MergedResults>>,
}

/// The circuit breaker of a peer.
#[derive(Debug, Clone, Default)]
struct PeerBreaker {
    failures: u32,
    /// Until when the peer is not queried.
    open_until: Duration,
    last_failure: Option<String>,
}

impl Default for FederationState {
    fn default() -> Self {
        Self {
            breakers: Mutex::default(),
            search_permits: Semaphore::new(MAX_CONCURRENT_SEARCHES),
            merged_results: Cache::builder()
                .max_capacity(MAX_RESULT_BYTES)
                .weigher(|_, list: &Arc<MergedResults>| list.size)
                .time_to_live(RESULTS_TTL)
                .build(),
        }
    }
}

impl FederationState {
    fn with_breaker<T>(&self, peer: &str, update: impl FnOnce(&mut PeerBreaker) -> T) -> T {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        update(breakers.entry(peer.to_owned()).or_default())
    }

    /// Whether a peer may be queried now. After a pause only one search tries it.
    pub fn allows_query(&self, peer: &str, now: Duration) -> bool {
        self.with_breaker(peer, |breaker| {
            if breaker.failures < MAX_FAILURES {
                return true;
            }
            if now < breaker.open_until {
                return false;
            }
            breaker.open_until = now + BREAKER_COOLDOWN;
            true
        })
    }

    pub fn record_success(&self, peer: &str) {
        self.with_breaker(peer, |breaker| *breaker = PeerBreaker::default());
    }

    pub fn record_failure(&self, peer: &str, reason: &str, now: Duration) {
        self.with_breaker(peer, |breaker| {
            breaker.failures = breaker.failures.saturating_add(1);
            breaker.open_until = now + BREAKER_COOLDOWN;
            breaker.last_failure = Some(reason.to_owned());
        });
    }

    /// Whether the circuit breaker of a peer is open, and why the peer last failed.
    pub fn breaker_state(&self, peer: &str, now: Duration) -> (bool, Option<String>) {
        self.with_breaker(peer, |breaker| {
            let is_open = breaker.failures >= MAX_FAILURES && now < breaker.open_until;
            (is_open, breaker.last_failure.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_is_left_alone_and_tried_again_by_one() {
        let memory = FederationState::default();
        let at = Duration::from_secs;
        for _ in 0..MAX_FAILURES - 1 {
            memory.record_failure("a", "away", at(1));
            assert!(memory.allows_query("a", at(1)));
        }
        memory.record_failure("a", "away", at(1));
        assert!(!memory.allows_query("a", at(2)) && memory.allows_query("b", at(2)));
        assert_eq!(
            memory.breaker_state("a", at(2)),
            (true, Some("away".to_owned()))
        );
        assert!(memory.allows_query("a", at(31)));
        assert!(!memory.allows_query("a", at(31)), "one search tries it");
        memory.record_success("a");
        assert!(memory.allows_query("a", at(31)));
        assert_eq!(memory.breaker_state("a", at(31)), (false, None));
    }
}
