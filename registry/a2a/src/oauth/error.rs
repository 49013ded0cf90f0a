//! Errors of signing in.

use std::time::Duration;

use crate::foreign_text::{colon_prefixed, shorten_to_line};

/// Why there is no token. Each message is one line, and none contains a secret of the user. It may contain text of the
/// card or of the authorization server, which the caller must make safe before it reaches a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum OauthError {
    /// An address that a card or a document names cannot be used.
    #[error(
        "{url} cannot be used to sign in: the address must be https, or http on this machine, without a user and a fragment"
    )]
    NotAnEndpoint { url: String },
    /// No connection could be made, or it was lost.
    #[error("no answer from {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// No answer within the time allowed.
    #[error("no answer from {url} within {} s", .limit.as_secs())]
    TimedOut { url: String, limit: Duration },
    /// The server redirects, which is not followed.
    #[error("{url} redirects to {to}, which is not followed: nothing was sent there")]
    Redirected { url: String, to: String },
    /// The response is too long.
    #[error("the response of {url} is longer than {limit} bytes, which is the limit")]
    TooLarge { url: String, limit: usize },
    /// The response is not what the protocol requires.
    #[error("{url} sent an invalid response: {reason}")]
    Unreadable {
        url: String,
        /// The reason, which quotes nothing of the response.
        reason: String,
    },
    /// The server refuses (RFC 6749 section 5.2).
    #[error("{url} refused: {code}{detail}")]
    Refused {
        url: String,
        code: String,
        /// The server's description after `: `, or empty.
        detail: String,
    },
    /// The document is of another issuer than its address says (RFC 8414 section 3.3).
    #[error("{url} is not the metadata address of its issuer {issuer}; nothing was sent")]
    OtherIssuer { url: String, issuer: String },
    /// The server does not have the flow.
    #[error("{url} offers no {what}")]
    NotOffered { url: String, what: &'static str },
    /// The verifier, the state or the client cannot be used.
    #[error("the sign-in cannot be prepared: {reason}")]
    Unusable { reason: &'static str },
    /// The port for the browser redirect cannot be opened.
    #[error("no port for the browser redirect can be opened: {reason}")]
    PortUnavailable { reason: String },
    /// The browser was not redirected back in time.
    #[error("the sign-in was not completed within {} s", .limit.as_secs())]
    SignInTimedOut { limit: Duration },
}

impl OauthError {
    pub(super) fn from_error_code(url: &str, code: &str, description: Option<&str>) -> Self {
        Self::Refused {
            url: url.to_owned(),
            code: shorten_to_line(code),
            detail: colon_prefixed(description.unwrap_or_default()),
        }
    }

    /// Whether the server says that the grant is over, so that only a new sign-in helps (RFC 6749 section 5.2).
    #[must_use]
    pub fn is_invalid_grant(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant")
    }
}
