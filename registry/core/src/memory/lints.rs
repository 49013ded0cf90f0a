//! Slots for cards that are linted on request.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Maximum number of cards that are linted or wait for it; further ones get 503. Each holds its bytes for that time, at
/// most 1 MiB.
pub const PLACES: usize = 32;

/// Slots for cards that are linted on request, and permits for the threads that do it.
#[derive(Debug)]
pub struct LintPlaces {
    pub places: Semaphore,
    pub running: Arc<Semaphore>,
}

impl Default for LintPlaces {
    /// Half of the cores lint at once, so that others stay free for everything else.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            places: Semaphore::new(PLACES),
            running: Arc::new(Semaphore::new(cores.div_ceil(2))),
        }
    }
}
