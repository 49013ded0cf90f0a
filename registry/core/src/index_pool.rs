//! The bounded pool of threads that searches run on, shared fairly among the callers.

use a2a_registry_search::{Index, IndexError};
use tokio::sync::oneshot;

use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::memory::fair_semaphore::{QueueFull, QueuedWork};
use crate::visibility::caller::Caller;

/// Seconds after which a refused search may be tried again.
const RETRY_AFTER: u32 = 1;

struct QueuedSearch<S, T> {
    index: Index,
    search: S,
    answer: oneshot::Sender<Result<T, IndexError>>,
}

impl<S, T> QueuedWork for QueuedSearch<S, T>
where
    S: Fn(&Index) -> Result<T, IndexError> + Send,
    T: Send,
{
    fn is_cancelled(&self) -> bool {
        self.answer.is_closed()
    }

    fn run(self: Box<Self>) {
        let Self {
            index,
            search,
            answer,
        } = *self;
        // Its client may have gone meanwhile.
        drop(answer.send(index.asked(search)));
    }
}

/// Runs a search of the caller on a thread of the bounded pool.
///
/// # Errors
/// `TooManyRequests` where too many searches of the caller wait, `Unavailable` where too many wait in all; and failures of
/// the index.
pub async fn run<T: Send + 'static>(
    context: &Context,
    caller: &Caller,
    search: impl Fn(&Index) -> Result<T, IndexError> + Send + 'static,
) -> Result<T, AppError> {
    let (answer, answered) = oneshot::channel();
    let search = QueuedSearch {
        index: context.index.clone(),
        search,
        answer,
    };
    let permits = &context.searches.permits;
    let queued = permits.run(caller.key(), Box::new(search));
    queued.map_err(refusal)?;
    // It is dropped without an answer where it loses its place in the full queue.
    let outcome = answered.await.map_err(|_| refusal(QueueFull::OfCaller))?;
    if context.index.damage().is_some() {
        context.wake.damage.notify_one();
    }
    Ok(outcome?)
}

fn refusal(full: QueueFull) -> AppError {
    match full {
        QueueFull::OfCaller => AppError {
            retry_after: Some(RETRY_AFTER),
            ..AppError::new(
                ErrorKind::TooManyRequests,
                "Too many of your searches are waiting; wait for some of them, then try again.",
            )
        },
        QueueFull::OfAll => {
            AppError::unavailable("Too many searches are waiting; try again.", RETRY_AFTER)
        }
    }
}
