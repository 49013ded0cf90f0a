//! Slots for cards that are linted on request.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Maximum number of cards that are being linted or are queued; further ones get 503. Each holds its bytes meanwhile,
/// at most 1 MiB.
pub const MAX_PENDING_LINTS: usize = 32;

/// Slots for cards that are linted on request, and permits for the threads that lint them.
#[derive(Debug)]
pub struct LintPool {
    pub pending: Semaphore,
    pub running: Arc<Semaphore>,
}

impl Default for LintPool {
    /// Lints use at most half of the cores, so that the others stay free.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            pending: Semaphore::new(MAX_PENDING_LINTS),
            running: Arc::new(Semaphore::new(cores.div_ceil(2))),
        }
    }
}
