//! Sends one message to a receiver, at the pace of its host.

use std::time::Duration;

use a2a_crawler::fetch::{FetchRecord, WebhookMessage, parse_retry_after};
use a2a_registry_domain::timestamp::{DAY, SECOND, Timestamp};
use url::Url;
use uuid::Uuid;

use crate::context::AppContext;
use crate::mailer::{Mail, MailFailure};

/// Mails that an account, and that all accounts for one address, may ask for at once: to confirm it, and as tests.
/// Later they get one more after each of these times.
const REQUESTED_PER_ACCOUNT: (u32, Duration) = (10, Duration::from_secs(60 * 60));
const REQUESTED_PER_ADDRESS: (u32, Duration) = (3, Duration::from_secs(6 * 60 * 60));

/// What is sent to a receiver.
#[derive(Debug)]
pub enum OutgoingMessage {
    Webhook(WebhookMessage),
    Mail(Mail),
}

/// The outcome of a message to a receiver.
#[derive(Debug, Clone)]
pub struct SentMessage {
    /// The status of the answer, of HTTP or SMTP.
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

    fn from_mail(sent: Result<u16, MailFailure>) -> Self {
        let (status, error) = match sent {
            Ok(status) => (Some(status), None),
            Err(failure) => (failure.status, Some(failure.error)),
        };
        Self {
            status,
            error,
            retry_after: 0,
            answer: Vec::new(),
        }
    }

    pub fn unsent(error: &str) -> Self {
        Self::from_mail(Err(MailFailure {
            status: None,
            error: error.to_owned(),
        }))
    }
}

/// Sends a message at the pace of its host, all mails at that of one; `None` if it would wait longer than `max_wait`.
pub async fn send_paced(
    context: &AppContext,
    url: &Url,
    message: OutgoingMessage,
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
    Some(match (message, &context.network.mailer) {
        (OutgoingMessage::Webhook(message), _) => {
            let fetcher = &context.network.webhook_fetcher;
            let record = fetcher.post_webhook(url, message).await;
            SentMessage::from_record(record, context.now())
        }
        (OutgoingMessage::Mail(mail), Some(mailer)) => {
            SentMessage::from_mail(mailer.send(url.path(), mail).await)
        }
        (OutgoingMessage::Mail(_), None) => SentMessage::unsent("this registry sends no mails"),
    })
}

/// Whether an account may have a mail sent to an address now that its reader has not asked for. A tag after a plus
/// sign makes no other address.
pub fn reserve_requested_mail(context: &AppContext, account: Uuid, address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let (reader, domain) = address.split_once('@').unwrap_or_default();
    let reader = reader.split('+').next().unwrap_or_default();
    let reserve = |key: String, (at_once, interval): (u32, Duration)| {
        let now = context.monotonic_time();
        let pace = &context.requested_mail_pace;
        let reserved = pace.reserve(&key, interval, now, interval * (at_once - 1));
        reserved.is_some()
    };
    reserve(account.to_string(), REQUESTED_PER_ACCOUNT)
        && reserve(format!("{reader}@{domain}"), REQUESTED_PER_ADDRESS)
}
