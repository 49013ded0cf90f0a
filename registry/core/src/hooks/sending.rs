//! Sends one message to a receiver, at the pace of its host.

use std::time::Duration;

use a2a_crawler::fetch::{FetchRecord, WebhookMessage, parse_retry_after};
use a2a_registry_domain::timestamp::{DAY, SECOND, Timestamp};
use url::Url;

use crate::context::AppContext;

/// The outcome of a message to a receiver.
#[derive(Debug)]
pub struct SentMessage {
    pub status: Option<u16>,
    /// Why it failed; `None` after a status of success.
    pub error: Option<String>,
    /// Microseconds for which the receiver wants no further message, at most a day.
    pub retry_after: i64,
    /// The body of the answer, if it was asked for.
    pub answer: Vec<u8>,
}

impl SentMessage {
    /// Any status of success counts, however the answer goes on: the receiver has the message.
    fn from_record(record: FetchRecord, now: Timestamp) -> Self {
        match record.result {
            Ok(response) => {
                let is_success = (200..300).contains(&response.status);
                let status = response.status;
                let retry_after = parse_retry_after(&response.headers, now.into());
                Self {
                    status: Some(status),
                    error: (!is_success).then(|| format!("the receiver answered with {status}")),
                    retry_after: (i64::from(retry_after.unwrap_or(0)) * SECOND).min(DAY),
                    answer: response.body,
                }
            }
            Err(error) => {
                let is_success = error
                    .status
                    .is_some_and(|status| (200..300).contains(&status));
                Self {
                    status: error.status,
                    error: (!is_success).then_some(error.detail),
                    retry_after: 0,
                    answer: Vec::new(),
                }
            }
        }
    }

    pub fn unsent(error: &str) -> Self {
        Self {
            status: None,
            error: Some(error.to_owned()),
            retry_after: 0,
            answer: Vec::new(),
        }
    }
}

/// Sends a message at the pace of its host; `None` if it would wait longer than `max_wait`.
pub async fn send_paced(
    context: &AppContext,
    url: &Url,
    message: WebhookMessage,
    max_wait: Duration,
) -> Option<SentMessage> {
    let rate = context.config().webhooks.per_target_per_second;
    let interval = Duration::from_secs(1) / rate.max(1);
    let origin = url.origin().ascii_serialization();
    let now = context.monotonic_time();
    let pace = &context.webhook_pace;
    let wait = pace.reserve(&origin, interval, now, max_wait)?;
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let fetcher = &context.network.webhook_fetcher;
    let record = fetcher.post_webhook(url, message).await;
    Some(SentMessage::from_record(record, context.now()))
}
