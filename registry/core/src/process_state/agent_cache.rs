//! The cache of rendered agents.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_policy::{PolicyMatches, PolicySet};
use a2a_registry_search::is_visible_to;
use moka::sync::Cache;
use uuid::Uuid;

use crate::entity_tag::RenderedJson;
use crate::process_state::CACHE_IDLE_TTL;
use crate::visibility::caller::Caller;

/// Maximum age of an entry if other processes write to the database: a fetch that finds a card unchanged changes
/// displayed times without appending an event.
pub const MAX_ENTRY_AGE: Duration = Duration::from_secs(1);
/// The approximate size of an entry without its bodies.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// The stamp that shows whether the rows of an entry are unchanged; it is read before the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCacheStamp {
    /// The number of the agent's events, including those of other processes.
    pub events: u64,
    /// The number of changes of the agent's and its domain's rows by this process.
    pub row_changes: u64,
    /// The numbers of the policy sets under which the agent was evaluated.
    pub policies: (u64, Option<u64>),
}

/// A URL of an interface in an approved card.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApprovedUrl {
    pub url: String,
    /// Whether the agent's domain has proved the host, or is this host and an admin vouches for it. Others count while
    /// an admin vouches for the endpoints of the host.
    pub is_own: bool,
}

/// An agent rendered for each class of callers, and the facts that decide the class of a caller.
#[derive(Debug)]
pub struct RenderedAgent {
    pub id: Uuid,
    pub stamp: AgentCacheStamp,
    /// The uptime at which its rows were read.
    pub read_at: Duration,
    pub domain: i64,
    pub visible_to: Vec<String>,
    /// Whether a client without an account may see it, while its stamp holds.
    pub is_public: bool,
    /// The matching policies of the set in force about calling the agent.
    pub invoke_matches: PolicyMatches,
    /// The matching policies of the set in force about finding the agent.
    pub discover_matches: PolicyMatches,
    /// Whether the agent is on hold, pending, approved, and so on, as lists show it.
    pub lifecycle: String,
    pub card_digest: String,
    /// The URLs by which gateways may ask about the agent.
    pub approved_urls: Vec<ApprovedUrl>,
    /// Whether groups can see the agent while it is restricted.
    pub has_audience: bool,
    /// The account that can see the agent's holds, besides callers who see everything.
    pub responsible_account: Option<Uuid>,
    /// The replacement that the agent's deprecation names, which not every caller may see.
    pub replacement: Option<Uuid>,
    pub without_holds: RenderedJson,
    /// The rendering with holds; `None` if the agent is on no hold.
    pub with_holds: Option<RenderedJson>,
}

impl RenderedAgent {
    /// Whether a caller may see the agent, by the policies of a set under which it was evaluated.
    pub fn is_visible_to(&self, caller: &Caller, policies: &PolicySet) -> bool {
        is_visible_to(&caller.labels(policies), &self.visible_to)
    }

    fn cache_weight(&self) -> u32 {
        let hold_bytes = self.with_holds.as_ref().map_or(0, |one| one.body.len());
        let urls = self.approved_urls.iter().map(|one| &one.url);
        let texts = self.visible_to.iter().chain(urls);
        let texts: usize = texts.map(String::len).sum();
        let bytes = self.without_holds.body.len() + hold_bytes + texts + ENTRY_OVERHEAD_BYTES;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// The cache of rendered agents, bounded by the bytes it holds.
#[derive(Debug)]
pub struct AgentCache {
    entries: Cache<Uuid, Arc<RenderedAgent>>,
    /// [`MAX_ENTRY_AGE`]; `None` if no other process writes.
    max_age: Option<Duration>,
}

impl AgentCache {
    /// Makes an empty cache of at most this many megabytes.
    pub fn new(megabytes: u64, max_age: Option<Duration>) -> Self {
        Self {
            entries: Cache::builder()
                .max_capacity(megabytes * 1024 * 1024)
                .weigher(|_, agent: &Arc<RenderedAgent>| agent.cache_weight())
                .time_to_idle(CACHE_IDLE_TTL)
                .build(),
            max_age,
        }
    }

    /// The entry of an agent, if it is young enough; the caller compares its stamp.
    pub fn get(&self, id: Uuid, uptime: Duration) -> Option<Arc<RenderedAgent>> {
        let entry = self.entries.get(&id)?;
        let age = uptime.saturating_sub(entry.read_at);
        let young = self.max_age.is_none_or(|oldest| age < oldest);
        young.then_some(entry)
    }

    /// The entry of an agent, however old it is, for decisions: whatever decides about an agent is changed with an
    /// event of the agent, which the stamp shows.
    pub fn get_at_any_age(&self, id: Uuid) -> Option<Arc<RenderedAgent>> {
        self.entries.get(&id)
    }

    pub fn insert(&self, id: Uuid, agent: Arc<RenderedAgent>) {
        self.entries.insert(id, agent);
    }

    /// Removes all entries and frees them at once.
    pub fn clear(&self) {
        self.entries.invalidate_all();
        self.entries.run_pending_tasks();
    }

    /// Frees entries that were not used recently: without requests the cache would not free them itself.
    pub fn evict_expired(&self) {
        self.entries.run_pending_tasks();
    }

    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        self.entries.run_pending_tasks();
        self.entries.weighted_size()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::visibility::caller::PUBLIC_LABEL;

    fn agent(read_at: u64, bytes: usize) -> Arc<RenderedAgent> {
        Arc::new(RenderedAgent {
            id: Uuid::nil(),
            discover_matches: PolicyMatches::default(),
            lifecycle: "approved".into(),
            card_digest: String::new(),
            approved_urls: Vec::new(),
            has_audience: false,
            stamp: AgentCacheStamp {
                events: 0,
                row_changes: 0,
                policies: (0, None),
            },
            invoke_matches: PolicyMatches::default(),

            read_at: Duration::from_secs(read_at),
            domain: 1,
            visible_to: vec![PUBLIC_LABEL.into()],
            is_public: true,
            responsible_account: None,
            replacement: None,
            without_holds: RenderedJson::render(&"x".repeat(bytes)).unwrap(),
            with_holds: None,
        })
    }

    #[test]
    fn the_cache_holds_its_megabytes_and_no_more() {
        let cache = AgentCache::new(1, None);
        for id in 0..1000 {
            cache.insert(Uuid::from_u128(id), agent(0, 10_000));
            let _ = cache.get(Uuid::from_u128(id), Duration::ZERO);
        }
        let bytes = cache.bytes();
        assert!((500_000..=1024 * 1024).contains(&bytes), "{bytes}");
    }

    #[test]
    fn an_entry_ends_with_its_age_where_others_may_write() {
        let id = Uuid::from_u128(1);
        for (oldest, ends) in [(Some(Duration::from_secs(1)), true), (None, false)] {
            let cache = AgentCache::new(1, oldest);
            cache.insert(id, agent(5, 10));
            let at = |seconds| cache.get(id, Duration::from_secs(seconds));
            assert!(at(5).is_some());
            assert_eq!(at(6).is_none(), ends);
            assert_eq!(at(1_000_000).is_none(), ends);
            assert!(cache.get_at_any_age(id).is_some());
        }
    }
}
