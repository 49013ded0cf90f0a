//! The cache of search responses, and the thread pool of searches.

use std::sync::Arc;

use bytes::Bytes;
use moka::sync::Cache;

use crate::process_state::CACHE_IDLE_TTL;
use crate::process_state::fair_semaphore::{FairSemaphore, MAX_WAITING, MAX_WAITING_PER_CALLER};

#[derive(Debug)]
pub struct SearchCache {
    /// The responses by query, labels, index generation and overlay: an entry can expire, but is never wrong.
    pub responses: Cache<String, Bytes>,
    /// The permits for the threads of the pool.
    pub permits: Arc<FairSemaphore>,
}

impl SearchCache {
    /// Removes all entries and frees them at once.
    pub fn clear(&self) {
        self.responses.invalidate_all();
        self.responses.run_pending_tasks();
    }

    /// Frees expired entries: without searches the cache would not free them.
    pub fn evict_expired(&self) {
        self.responses.run_pending_tasks();
    }

    pub fn new(megabytes: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            responses: Cache::builder()
                .max_capacity(megabytes * 1024 * 1024)
                .weigher(|key: &String, answer: &Bytes| {
                    u32::try_from(key.capacity() + answer.len() + ENTRY_OVERHEAD_BYTES)
                        .unwrap_or(u32::MAX)
                })
                .time_to_idle(CACHE_IDLE_TTL)
                .build(),
            permits: FairSemaphore::new(cores, MAX_WAITING, MAX_WAITING_PER_CALLER),
        }
    }
}

/// The approximate size of a cache entry without its key and value.
pub const ENTRY_OVERHEAD_BYTES: usize = 256;
