//! Search answers kept ready, orders kept frozen, and the pool that searches run in.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;
use tokio::sync::Semaphore;

use crate::memory::KEPT_UNUSED;
use crate::memory::meanings::Mode;
use crate::memory::orders::Frozen;

/// Answers kept ready, orders kept frozen, and the pool that searches run in.
#[derive(Debug)]
pub(crate) struct SearchCache {
    /// By query, labels, index generation and overlay: an entry can only age out, never be wrong.
    pub(crate) answers: Cache<String, Bytes>,
    pub(crate) frozen: Cache<u64, Arc<Frozen>>,
    pub(crate) pool: Arc<Semaphore>,
    pub(crate) waiting: AtomicUsize,
}

impl SearchCache {
    /// Gives back what has ended: without any search nobody else would.
    pub(crate) fn forget_ended(&self) {
        self.answers.run_pending_tasks();
        self.frozen.run_pending_tasks();
    }

    /// A cache of that many megabytes, and a pool of as many threads as there are cores.
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
                .weigher(|_, order: &Arc<Frozen>| match order.mode {
                    Mode::Lexical => 1,
                    Mode::Hybrid | Mode::Semantic => NEAR_WEIGHT,
                })
                .time_to_live(FROZEN_FOR)
                .build(),
            pool: Arc::new(Semaphore::new(cores)),
            waiting: AtomicUsize::new(0),
        }
    }
}

/// How long an order stays frozen.
pub(crate) const FROZEN_FOR: Duration = Duration::from_secs(300);

/// Frozen orders kept at once; fewer where they hold what was near, which takes more memory.
pub(crate) const FROZEN_ORDERS: u64 = 2000;

/// For how many orders by words one stands that holds what was near.
pub(crate) const NEAR_WEIGHT: u32 = 4;

/// What an entry of a cache takes beside its key and its value, roughly.
pub(crate) const ENTRY_BYTES: usize = 256;
