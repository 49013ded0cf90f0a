//! What a process remembers of other registries: whether they respond, and merged lists whose next page may be
//! requested.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_registry_api::ard::SearchResult;
use moka::sync::Cache;
use tokio::sync::Semaphore;

/// Consecutive failures after which a peer is left alone for a while.
const FAILURES: u32 = 3;
/// How long it is left alone; then one search tries it again.
const ALONE: Duration = Duration::from_secs(30);
/// Maximum number of bytes of merged lists that are kept, as they would be sent.
const MAX_LISTS: u64 = 64 * 1024 * 1024;
/// Concurrent searches that query peers; further ones go without them.
const ASKING: usize = 32;
/// How long a merged list is kept.
const KEPT: Duration = Duration::from_secs(300);

/// A merged list, which is served in pages.
#[derive(Debug, Clone)]
pub struct MergedList {
    /// The results, in order.
    pub results: Vec<SearchResult>,
    /// The token of this registry's own results after those in the list.
    pub own_next: Option<String>,
    /// Its size in bytes, as it would be sent.
    pub size: u32,
}

#[derive(Debug)]
pub struct FederationMemory {
    breakers: Mutex<HashMap<String, Breaker>>,
    /// A permit for each search that may query peers now.
    pub asking: Semaphore,
    pub lists: Cache<u64, Arc<MergedList>>,
}

/// How a peer has answered lately.
#[derive(Debug, Clone, Default)]
struct Breaker {
    failures: u32,
    /// Until when it is left alone.
    alone_until: Duration,
    last_failure: Option<String>,
}

impl Default for FederationMemory {
    fn default() -> Self {
        Self {
            breakers: Mutex::default(),
            asking: Semaphore::new(ASKING),
            lists: Cache::builder()
                .max_capacity(MAX_LISTS)
                .weigher(|_, list: &Arc<MergedList>| list.size)
                .time_to_live(KEPT)
                .build(),
        }
    }
}

impl FederationMemory {
    fn of<T>(&self, peer: &str, with: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        with(breakers.entry(peer.to_owned()).or_default())
    }

    /// Whether a peer may be queried now. Of the searches after a pause only one tries it.
    pub fn may_ask(&self, peer: &str, now: Duration) -> bool {
        self.of(peer, |breaker| {
            if breaker.failures < FAILURES {
                return true;
            }
            if now < breaker.alone_until {
                return false;
            }
            breaker.alone_until = now + ALONE;
            true
        })
    }

    pub fn answered(&self, peer: &str) {
        self.of(peer, |breaker| *breaker = Breaker::default());
    }

    pub fn failed(&self, peer: &str, why: &str, now: Duration) {
        self.of(peer, |breaker| {
            breaker.failures = breaker.failures.saturating_add(1);
            breaker.alone_until = now + ALONE;
            breaker.last_failure = Some(why.to_owned());
        });
    }

    /// Whether a peer is left alone now, and why it last failed.
    pub fn state(&self, peer: &str, now: Duration) -> (bool, Option<String>) {
        self.of(peer, |breaker| {
            let alone = breaker.failures >= FAILURES && now < breaker.alone_until;
            (alone, breaker.last_failure.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_is_left_alone_and_tried_again_by_one() {
        let memory = FederationMemory::default();
        let at = Duration::from_secs;
        for _ in 0..FAILURES - 1 {
            memory.failed("a", "away", at(1));
            assert!(memory.may_ask("a", at(1)));
        }
        memory.failed("a", "away", at(1));
        assert!(!memory.may_ask("a", at(2)) && memory.may_ask("b", at(2)));
        assert_eq!(memory.state("a", at(2)), (true, Some("away".to_owned())));
        assert!(memory.may_ask("a", at(31)));
        assert!(!memory.may_ask("a", at(31)), "one search tries it");
        memory.answered("a");
        assert!(memory.may_ask("a", at(31)));
        assert_eq!(memory.state("a", at(31)), (false, None));
    }
}
