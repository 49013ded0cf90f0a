//! The cache of search responses and frozen lists, and the thread pool of searches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;

use crate::memory::KEPT_UNUSED;
use crate::memory::fair_semaphore::{FairSemaphore, MAX_WAITING, MAX_WAITING_PER_CALLER};
use crate::memory::meanings::Mode;
use crate::memory::orders::FrozenResults;

/// Cached responses, frozen lists, and the thread pool of searches.
#[derive(Debug)]
pub(crate) struct SearchCache {
    /// By query, labels, index generation and overlay: an entry can expire, but never be wrong.
    pub(crate) answers: Cache<String, Bytes>,
    pub(crate) frozen: Cache<u64, Arc<FrozenResults>>,
    /// A permit for each thread of the pool.
    pub(crate) permits: Arc<FairSemaphore>,
}

impl SearchCache {
    /// Frees expired entries: without searches the caches would not free them.
    pub(crate) fn forget_ended(&self) {
        self.answers.run_pending_tasks();
        self.frozen.run_pending_tasks();
    }

    /// An empty cache of at most that many megabytes, and a pool with one thread per core.
    pub(crate) fn new(megabytes: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            answers: Cache::builder()
                .max_capacity(megabytes * 1024 * 1024)
                .weigher(|key: &String, answer: &Bytes| {
                    u32::try_from(key.capacity() + answer.len() + ENTRY_BYTES).unwrap_or(u32::MAX)
                })
                .time_to_idle(KEPT_UNUSED)
                .build(),
            frozen: Cache::builder()
                .max_capacity(FROZEN_ORDERS)
                .weigher(
                    |_, order: &Arc<FrozenResults>| match (order.mode, order.groups) {
                        (Mode::Lexical, None) => 1,
                        _ => HEAVY,
                    },
                )
                .time_to_live(FROZEN_FOR)
                .build(),
            permits: FairSemaphore::new(cores, MAX_WAITING, MAX_WAITING_PER_CALLER),
        }
    }
}

/// How long a list stays frozen.
pub(crate) const FROZEN_FOR: Duration = Duration::from_secs(300);

/// The most frozen lists; fewer if they hold nearest neighbours or duplicates, which take more memory.
pub(crate) const FROZEN_ORDERS: u64 = 2000;

/// The weight of a list with nearest neighbours or duplicates, against one of a plain full text search.
pub(crate) const HEAVY: u32 = 4;

/// A rough size of a cache entry beside its key and value.
pub(crate) const ENTRY_BYTES: usize = 256;
