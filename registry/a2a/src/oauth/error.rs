//! Errors of signing in.

use std::time::Duration;

use crate::error::{led_in, shorten};

/// Why there is no token. Each message is one line, and none contains a secret of the user. It may contain text of the
/// card or of the authorization server, which the caller must make safe before it reaches a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OauthError {
    /// An address that a card or a document names cannot be used.
    #[error(
        "{url} cannot be used to sign in: the address must be https, or http on this machine, without a user and a fragment"
    )]
    NotAnEndpoint {
        /// The address, shortened.
        url: String,
    },
    /// No connection could be made, or it was lost.
    #[error("no answer from {url}: {reason}")]
    Unreachable {
        /// The address that was asked.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// No answer within the time allowed.
    #[error("no answer from {url} within {} s", .limit.as_secs())]
    TimedOut {
        /// The address that was asked.
        url: String,
        /// The time that was allowed.
        limit: Duration,
    },
    /// The server redirects, which is not followed.
    #[error("{url} redirects to {to}, which is not followed: nothing was sent there")]
    Redirected {
        /// The address that was asked.
        url: String,
        /// Where it redirects to, shortened.
        to: String,
    },
    /// The response is too long.
    #[error("the response of {url} is longer than {limit} bytes, which is the limit")]
    TooLarge {
        /// The address that was asked.
        url: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The response is not what the protocol requires.
    #[error("{url} did not answer as it should: {reason}")]
    Unreadable {
        /// The address that was asked.
        url: String,
        /// The reason, which quotes nothing of the response.
        reason: String,
    },
    /// The server refuses (RFC 6749 section 5.2).
    #[error("{url} refused: {code}{detail}")]
    Refused {
        /// The address that was asked.
        url: String,
        /// The error code, such as `invalid_grant`.
        code: String,
        /// The server's description after `: `, or empty.
        detail: String,
    },
    /// The document is of another issuer than its address says (RFC 8414 section 3.3).
    #[error(
        "{url} is a document of the issuer {issuer}, to whom it does not belong; nothing was sent"
    )]
    OtherIssuer {
        /// The address of the document.
        url: String,
        /// The issuer that it names, shortened.
        issuer: String,
    },
    /// The server does not have the flow.
    #[error("{url} offers no {what}")]
    NotOffered {
        /// The address of the document or of the token endpoint.
        url: String,
        /// What it does not have.
        what: &'static str,
    },
    /// The verifier, the state or the client cannot be used.
    #[error("the sign-in cannot be prepared: {reason}")]
    Unusable {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The port for the browser's way back cannot be opened.
    #[error("no port for the browser's way back can be opened: {reason}")]
    NoPort {
        /// The cause that was reported.
        reason: String,
    },
    /// The browser did not come back in time.
    #[error("nobody signed in within {} s", .limit.as_secs())]
    NobodyCame {
        /// The time that was allowed.
        limit: Duration,
    },
}

impl OauthError {
    pub(super) fn refused(url: &str, code: &str, description: Option<&str>) -> Self {
        Self::Refused {
            url: url.to_owned(),
            code: shorten(code),
            detail: led_in(description.unwrap_or_default()),
        }
    }

    /// Whether the server says that the grant is over, so that only a new sign-in helps (RFC 6749 section 5.2).
    #[must_use]
    pub fn ends_sign_in(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant")
    }
}
