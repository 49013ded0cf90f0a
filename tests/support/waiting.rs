//! Polling for changes that send no event.

use std::time::Duration;

use tokio::time::Instant;

use super::DEADLINE;

/// Polls until `ask` returns a value, or [`DEADLINE`] has passed: for changes in another process, a browser or a
/// database that are reported by no event. Each poll is a round trip, and no pause is made in between.
pub async fn answer_in_time<T, F: Future<Output = Option<T>>>(
    mut ask: impl FnMut() -> F,
) -> Option<T> {
    let end = Instant::now() + DEADLINE;
    loop {
        let answer = ask().await;
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

/// Polls until `ask` returns a value, like [`answer_in_time`].
///
/// # Panics
///
/// If it returns none.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl FnMut() -> F) -> T {
    let answer = answer_in_time(ask).await;
    answer.unwrap_or_else(|| panic!("timed out waiting for: {what}"))
}

/// Waits for this long between two samples. The sampled process goes on by itself: only here is time itself what a test
/// waits for.
pub async fn until_next_sample(pause: Duration) {
    tokio::time::sleep(pause).await;
}
