//! Endpoint checks: whether an agent answers at its own address.
//!
//! An agent is asked for a task that does not exist, in its own protocol version and binding, which costs nothing and
//! changes nothing. A message is never sent. [`EndpointAddress`] says where and in which form; the result is a
//! verdict in one word, with a reason.

mod address;
mod classification;

use std::net::IpAddr;
use std::time::Duration;

use a2a_card::named_enum;
use time::OffsetDateTime;

use crate::AttemptOutcome;
use crate::fetch::{FetchError, Fetcher, HttpResponse, parse_retry_after};

pub use address::{EndpointAddress, EndpointForm};
use classification::classify_response;

pub use crate::fetch::MAX_ENDPOINT_RESPONSE_BYTES;

/// Id of the task that is asked for: a UUID, because some agents reject any other text, which no agent assigns.
pub const ABSENT_TASK_ID: &str = "00000000-0000-0000-0000-000000000000";

named_enum! {
    /// The result of a check in one word.
    pub enum EndpointVerdict {
        /// A recognisable A2A answer or error.
        Answers = "answers",
        /// The server wants credentials before it answers.
        NeedsCredentials = "needs_credentials",
        /// Another protocol, or a website.
        NotA2a = "not_a2a",
        /// A response that both an agent and another server could give, such as a bare 404.
        Unclear = "unclear",
        /// No connection, no response in time, or a proxy without its server.
        DoesNotAnswer = "does_not_answer",
        /// The guard rejected the address, or this process failed; nothing is known about the agent.
        NotChecked = "not_checked",
    }
}

/// One check of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointCheck {
    /// When the check began.
    pub started_at: OffsetDateTime,
    /// Time until the response was complete, or until the failure.
    pub elapsed: Duration,
    /// The result in one word.
    pub verdict: EndpointVerdict,
    /// One sentence on the result, at most 300 characters, without control characters and addresses.
    pub reason: String,
    /// Authentication scheme that the server named, if it wants credentials.
    pub auth_scheme: Option<String>,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Address of the peer, if a connection was made.
    pub address: Option<IpAddr>,
    /// Seconds for which the server wants no further requests.
    pub retry_after: Option<u32>,
    /// Whether this process caused the failure by running out of file descriptors.
    pub is_local_failure: bool,
}

impl EndpointCheck {
    /// A check for which no request was sent, for this reason.
    pub fn not_sent(at: OffsetDateTime, reason: &str) -> Self {
        Self {
            started_at: at,
            elapsed: Duration::ZERO,
            verdict: EndpointVerdict::NotChecked,
            reason: reason.to_owned(),
            auth_scheme: None,
            status: None,
            address: None,
            retry_after: None,
            is_local_failure: false,
        }
    }
}

impl Fetcher {
    /// Asks the agent at an address for a task that does not exist. Redirects are not followed.
    pub async fn check_endpoint(&self, address: &EndpointAddress) -> EndpointCheck {
        let record = self.send_endpoint_request(&address.request()).await;
        let unanswered = EndpointCheck {
            elapsed: record.elapsed,
            ..EndpointCheck::not_sent(record.started_at, "")
        };
        match record.result {
            Ok(response) => {
                let HttpResponse {
                    status,
                    headers,
                    body,
                    ..
                } = &response;
                let classified = classify_response(address.form, *status, headers, body);
                EndpointCheck {
                    verdict: classified.verdict,
                    reason: classified.reason,
                    auth_scheme: classified.auth_scheme,
                    status: Some(*status),
                    address: response.address,
                    retry_after: parse_retry_after(headers, record.started_at),
                    ..unanswered
                }
            }
            Err(error) => {
                let (verdict, auth_scheme) = classify_failure(&error);
                EndpointCheck {
                    verdict,
                    reason: error.detail,
                    auth_scheme,
                    status: error.status,
                    address: error.address,
                    is_local_failure: error.is_local_failure,
                    ..unanswered
                }
            }
        }
    }
}

/// The verdict on a request without a usable response, and the scheme that the server wants.
fn classify_failure(error: &FetchError) -> (EndpointVerdict, Option<String>) {
    let verdict = match error.outcome {
        _ if error.is_local_failure => EndpointVerdict::NotChecked,
        AttemptOutcome::Refused => EndpointVerdict::NotChecked,
        _ if error.wants_client_certificate => {
            return (
                EndpointVerdict::NeedsCredentials,
                Some(classification::CLIENT_CERTIFICATE_SCHEME.to_owned()),
            );
        }
        // The server responds, with something that no task or error is.
        AttemptOutcome::BadBody if error.status.is_some() => EndpointVerdict::Unclear,
        // What it sends is not HTTP.
        AttemptOutcome::BadBody => EndpointVerdict::NotA2a,
        _ => EndpointVerdict::DoesNotAnswer,
    };
    (verdict, None)
}
