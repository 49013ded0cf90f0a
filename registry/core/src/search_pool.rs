//! The bounded thread pool of searches, shared fairly among callers.

use a2a_registry_search::{Index, IndexError};
use tokio::sync::oneshot;

use crate::context::AppContext;
use crate::error::{AppError, ErrorKind};
use crate::process_state::fair_semaphore::{QueueFull, QueuedWork};
use crate::visibility::caller::Caller;

/// Seconds before a refused search may be retried.
const RETRY_AFTER_SECONDS: u32 = 1;

struct QueuedSearch<S, T> {
    index: Index,
    search: S,
    response: oneshot::Sender<Result<T, IndexError>>,
}

impl<S, T> QueuedWork for QueuedSearch<S, T>
where
    S: Fn(&Index) -> Result<T, IndexError> + Send,
    T: Send,
{
    fn is_cancelled(&self) -> bool {
        self.response.is_closed()
    }

    fn run(self: Box<Self>) {
        let Self {
            index,
            search,
            response: answer,
        } = *self;
        // The client may have disconnected meanwhile.
        drop(answer.send(index.run_with_damage_retry(search)));
    }
}

/// Runs a search of the caller on a thread of the bounded pool.
///
/// # Errors `TooManyRequests` if too many searches of the caller are waiting, `Unavailable` if too many are waiting in
/// total; and failures of the index.
pub async fn run_search<T: Send + 'static>(
    context: &AppContext,
    caller: &Caller,
    search: impl Fn(&Index) -> Result<T, IndexError> + Send + 'static,
) -> Result<T, AppError> {
    let (sender, receiver) = oneshot::channel();
    let search = QueuedSearch {
        index: context.index.clone(),
        search,
        response: sender,
    };
    let permits = &context.search_cache.permits;
    let queued = permits.spawn_work(caller.key(), Box::new(search));
    queued.map_err(queue_full_error)?;
    // The work is dropped without a result if it loses its place in the full queue.
    let result = receiver
        .await
        .map_err(|_| queue_full_error(QueueFull::CallerLimit))?;
    if context.index.damage().is_some() {
        context.signals.index_damage.notify_one();
    }
    Ok(result?)
}

fn queue_full_error(full: QueueFull) -> AppError {
    match full {
        QueueFull::CallerLimit => AppError {
            retry_after: Some(RETRY_AFTER_SECONDS),
            ..AppError::new(
                ErrorKind::TooManyRequests,
                "Too many of your searches are waiting; wait for some of them, then try again.",
            )
        },
        QueueFull::TotalLimit => AppError::unavailable(
            "Too many searches are waiting; try again.",
            RETRY_AFTER_SECONDS,
        ),
    }
}
