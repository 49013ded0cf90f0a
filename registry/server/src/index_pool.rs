//! The bounded pool of threads that searches run on, shared fairly among the callers.

use a2a_registry_search::{Index, IndexError};

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::memory::fair_semaphore::QueueFull;

/// Seconds after which a refused search may be tried again.
const RETRY_AFTER: u32 = 1;

/// Runs a search of the caller on a thread of the bounded pool.
///
/// # Errors
/// `TooManyRequests` where too many searches of the caller wait, `Unavailable` where too many wait in all; and failures of
/// the index.
pub(crate) async fn run<T: Send + 'static>(
    context: &Context,
    caller: &Caller,
    search: impl Fn(&Index) -> Result<T, IndexError> + Send + 'static,
) -> Result<T, AppError> {
    let permit = context.searches.permits.acquire(caller.key()).await;
    let permit = permit.map_err(|full| match full {
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
    })?;
    let index = context.index.clone();
    let outcome = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        index.asked(search)
    })
    .await;
    if context.index.damage().is_some() {
        context.wake.damage.notify_one();
    }
    match outcome {
        Ok(answer) => Ok(answer?),
        Err(error) => Err(AppError::internal(format!("a search was aborted: {error}"))),
    }
}
