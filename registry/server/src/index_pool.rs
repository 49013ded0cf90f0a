//! The bounded pool of threads that searches run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2a_registry_search::{Index, IndexError};

use crate::context::Context;
use crate::error::AppError;

/// The most searches that wait for a thread; further ones get 503.
pub(crate) const QUEUE: usize = 256;

/// Runs a search on a thread of the bounded pool.
pub(crate) async fn run<T: Send + 'static>(
    context: &Context,
    search: impl Fn(&Index) -> Result<T, IndexError> + Send + 'static,
) -> Result<T, AppError> {
    let pool = &context.searches;
    let Some(place) = QueueSlot::take(&pool.waiting) else {
        return Err(AppError::unavailable(
            "Too many searches are waiting; try again.",
            1,
        ));
    };
    let permit = Arc::clone(&pool.pool).acquire_owned().await;
    drop(place);
    let permit = permit.map_err(|_| AppError::unavailable("The registry is stopping.", 5))?;
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

/// A place in the queue, freed when it is dropped: a caller may disconnect while it waits.
pub(crate) struct QueueSlot<'a>(&'a AtomicUsize);

impl<'a> QueueSlot<'a> {
    /// The next free place; `None` if the queue is full.
    pub(crate) fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::AcqRel) < QUEUE).then_some(place)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_slot_is_free_again() {
        let waiting = AtomicUsize::new(0);
        let places: Vec<_> = (0..QUEUE).map(|_| QueueSlot::take(&waiting)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(QueueSlot::take(&waiting).is_none());
        assert_eq!(waiting.load(Ordering::Acquire), QUEUE);
        drop(places);
        assert_eq!(waiting.load(Ordering::Acquire), 0);
    }
}
