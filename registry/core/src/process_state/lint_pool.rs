//! Slots for cards that are linted on request.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Maximum number of cards that are linted or wait for it; further ones get 503. Each holds its bytes for that time, at
/// most 1 MiB.
pub const MAX_PENDING_LINTS: usize = 32;

/// Slots for cards that are linted on request, and permits for the threads that do it.
#[derive(Debug)]
pub struct LintPool {
    pub pending: Semaphore,
    pub running: Arc<Semaphore>,
}

impl Default for LintPool {
    /// Half of the cores lint at once, so that others stay free for everything else.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            pending: Semaphore::new(MAX_PENDING_LINTS),
            running: Arc::new(Semaphore::new(cores.div_ceil(2))),
        }
    }
}
