//! Waiting for what tells of itself by no event.

use std::time::Duration;

use tokio::time::Instant;

use super::DEADLINE;

/// Asks again and again until there is an answer, or [`DEADLINE`] has passed: for what another process, a browser or a
/// database does, where it gives no word of it. Each question is a round trip of its own, and nothing else is done in
/// between.
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

/// Asks again and again until there is an answer, as [`answer_in_time`] does.
///
/// # Panics
///
/// When there is none.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl FnMut() -> F) -> T {
    let answer = answer_in_time(ask).await;
    answer.unwrap_or_else(|| panic!("never came to pass: {what}"))
}

/// Lets that much time pass between two samples. What is sampled goes on by itself: here time is what is waited for,
/// and nothing else.
pub async fn until_next_sample(pause: Duration) {
    tokio::time::sleep(pause).await;
}
