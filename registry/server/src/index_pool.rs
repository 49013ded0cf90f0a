//! The bounded pool of threads that searches run on, in fair turns of the callers.

use a2a_registry_search::{Index, IndexError};

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::memory::turns::NoTurn;

/// Seconds after which a search that was sent away may be tried again.
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
    let turn = context.searches.turns.take(caller.key()).await;
    let turn = turn.map_err(|none| match none {
        NoTurn::Own => AppError {
            retry_after: Some(RETRY_AFTER),
            ..AppError::new(
                ErrorKind::TooManyRequests,
                "Too many of your searches are waiting; wait for some of them, then try again.",
            )
        },
        NoTurn::All => {
            AppError::unavailable("Too many searches are waiting; try again.", RETRY_AFTER)
        }
    })?;
    let index = context.index.clone();
    let outcome = tokio::task::spawn_blocking(move || {
        let _turn = turn;
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
