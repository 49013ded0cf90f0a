//! Callers that decisions were about or that asked for them, the hosts that admins vouch for, and the accounts that
//! policies may hide agents from, so that the next question reads no rows. An event about any account, group, token or
//! vouch makes all of them stale.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_registry_domain::role::Permission;
use moka::sync::Cache;

use crate::visibility::caller::{Caller, CallerAccount};

/// Maximum age of an entry: accounts also change with time alone, when nobody confirms them any more.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Maximum size of all entries, in bytes.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// The approximate size of an entry without its names.
const ENTRY_OVERHEAD_BYTES: usize = 512;

#[derive(Debug)]
pub struct DecisionCallers {
    entries: Cache<String, Arc<CachedCaller>>,
    /// The origins for whose endpoints an admin vouches.
    pub vouched_origins: GenerationValue<HashSet<String>>,
    /// The accounts that policies may hide agents from.
    pub known: GenerationValue<KnownCallers>,
    generation: AtomicU64,
}

/// A value, with the generation before its rows were read.
#[derive(Debug, Default)]
pub struct GenerationValue<T>(Mutex<(u64, Arc<T>)>);

impl<T> GenerationValue<T> {
    /// The value, if it was read in this generation.
    pub fn get(&self, generation: u64) -> Option<Arc<T>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.0 == generation).then(|| Arc::clone(&kept.1))
    }

    pub fn set(&self, generation: u64, value: Arc<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (generation, value);
    }
}

/// Accounts as callers.
#[derive(Debug, Default)]
pub struct KnownCallers {
    pub callers: Vec<Caller>,
    /// Whether there are more.
    pub truncated: bool,
}

impl KnownCallers {
    /// The accounts that policies bind: those that may read and do not see everything.
    pub fn bound_accounts(&self) -> impl Iterator<Item = &CallerAccount> {
        let bound = self.callers.iter().filter(|caller| {
            caller.has_permission(Permission::Read) && !caller.has_permission(Permission::SeeAll)
        });
        bound.filter_map(|caller| caller.account.as_ref())
    }

    /// Which of these groups accounts that policies bind are in: each combination once, and only those of an account.
    pub fn group_combinations(&self, named: &BTreeSet<String>) -> BTreeSet<Vec<String>> {
        let accounts = self.bound_accounts();
        accounts
            .map(|account| account.groups_among(named))
            .collect()
    }
}

#[derive(Debug)]
struct CachedCaller {
    /// The generation before its rows were read.
    generation: u64,
    caller: Caller,
    /// When its token ends, in microseconds since 1970.
    ends_at: Option<i64>,
}

impl Default for DecisionCallers {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl DecisionCallers {
    fn new(max_bytes: u64) -> Self {
        Self {
            entries: Cache::builder()
                .max_capacity(max_bytes)
                .weigher(|key: &String, entry: &Arc<CachedCaller>| entry_weight(key, entry))
                .time_to_live(MAX_AGE)
                .build(),
            vouched_origins: GenerationValue::default(),
            known: GenerationValue::default(),
            // Nothing was read in generation 0.
            generation: AtomicU64::new(1),
        }
    }

    /// The generation, to be read before the rows of a caller.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Makes all entries stale.
    pub fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The caller with this key, if nothing about callers has changed since it was read.
    pub fn get(&self, key: &str, now: i64) -> Option<Caller> {
        let entry = self.entries.get(key)?;
        let is_current = entry.generation == self.generation()
            && entry.ends_at.is_none_or(|ends_at| now < ends_at);
        is_current.then(|| entry.caller.clone())
    }

    pub fn insert(&self, key: String, generation: u64, caller: Caller, ends_at: Option<i64>) {
        let entry = CachedCaller {
            generation,
            caller,
            ends_at,
        };
        self.entries.insert(key, Arc::new(entry));
    }

    /// Frees entries that are too old: without requests the cache would not free them itself.
    pub fn evict_expired(&self) {
        self.entries.run_pending_tasks();
    }
}

fn entry_weight(key: &str, entry: &CachedCaller) -> u32 {
    let names: usize = entry.caller.account.as_ref().map_or(0, |account| {
        let groups = account.group_names.iter().map(String::len);
        account.name.len() + groups.sum::<usize>() + account.groups.len() * 16
    });
    u32::try_from(key.len() + names + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_known_until_anything_about_callers_changes() {
        let callers = DecisionCallers::default();
        let read_before = callers.generation();
        callers.insert("a".into(), read_before, Caller::default(), None);
        assert_eq!(callers.get("a", 0), Some(Caller::default()));
        assert_eq!(callers.get("b", 0), None);
        callers.invalidate();
        assert_eq!(callers.get("a", 0), None);
        // Rows that were read before a change are not current after it.
        callers.insert("a".into(), read_before, Caller::default(), None);
        assert_eq!(callers.get("a", 0), None);
        callers.insert("a".into(), callers.generation(), Caller::default(), None);
        assert_eq!(callers.get("a", 0), Some(Caller::default()));
    }

    #[test]
    fn a_caller_ends_with_its_token() {
        let callers = DecisionCallers::default();
        let generation = callers.generation();
        callers.insert("a".into(), generation, Caller::default(), Some(5));
        assert!(callers.get("a", 4).is_some());
        assert!(callers.get("a", 5).is_none());
    }

    #[test]
    fn the_callers_have_a_bound() {
        let max_bytes = 100 * ENTRY_OVERHEAD_BYTES as u64;
        let callers = DecisionCallers::new(max_bytes);
        for number in 0..1_000 {
            callers.insert(number.to_string(), 0, Caller::default(), None);
        }
        callers.evict_expired();
        assert!(callers.entries.weighted_size() <= max_bytes);
    }
}
