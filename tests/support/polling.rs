//! Polling for changes that send no event.

use std::time::Duration;

use tokio::time::Instant;

use super::DEADLINE;

/// Polls until `poll` returns a value, or [`DEADLINE`] has passed: for changes in another process, a browser or a
/// database that no event reports. Each poll is a round trip, so there is no pause between polls.
pub async fn poll_until_deadline<T, F: Future<Output = Option<T>>>(
    mut poll: impl FnMut() -> F,
) -> Option<T> {
    let end = Instant::now() + DEADLINE;
    loop {
        let answer = poll().await;
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

/// Polls until `poll` returns a value, like [`poll_until_deadline`].
///
/// # Panics
///
/// If it returns no value before the deadline.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    poll: impl FnMut() -> F,
) -> T {
    let answer = poll_until_deadline(poll).await;
    answer.unwrap_or_else(|| panic!("timed out waiting for: {what}"))
}

/// Sleeps between two samples of a process that runs by itself. This is the only function with which a test waits for
/// time to pass.
pub async fn sleep_between_samples(pause: Duration) {
    tokio::time::sleep(pause).await;
}
