//! Errors of a call to an agent.

use super::foreign_text::{colon_prefixed, shorten_to_line};
use super::route_selection::RouteError;

/// Why a call returned no answer. Each message is one line that says what to do. It may
/// contain text of the card or the agent, which the caller must make safe before it reaches a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CallError {
    /// The card lists no address at all.
    #[error("the card lists no interface, so there is no address to send to; set one with --url")]
    NoInterface,
    /// The card lists interfaces, but this client can use none of them.
    #[error(
        "none of the card's interfaces can be used: {reasons}; this client supports JSONRPC 0.1, 0.2, 0.3 and 1.0, and HTTP+JSON and GRPC 0.3 and 1.0"
    )]
    NoneUsable { reasons: String },
    /// No usable interface of the card matches the caller's choice.
    #[error("no interface with {wanted} can be used; the card has {offered}")]
    NoMatchingInterface { wanted: String, offered: String },
    /// The card requires credentials, and those given meet none of its alternatives.
    #[error("the agent requires credentials: {needed}; {hint}")]
    CredentialsRequired {
        /// The credentials required by the card, or by the agent's refusal.
        needed: String,
        /// The flag to provide them.
        hint: String,
    },
    /// Credentials were sent, and the agent refused them.
    #[error(
        "the agent refused the credentials ({status}){detail}; check that they are valid for it"
    )]
    CredentialsRejected {
        /// `HTTP 401` or `HTTP 403`; over gRPC `UNAUTHENTICATED` or `PERMISSION_DENIED`.
        status: String,
        /// The agent's message after `: `, or empty.
        detail: String,
    },
    /// A key was given, but the card does not say where to send it.
    #[error(
        "the card names no API key scheme, so it is unknown where to send the key; use --header 'NAME: VALUE'"
    )]
    NoApiKeyScheme,
    /// A header, token or key contains characters that a header cannot contain.
    #[error(
        "{name} cannot be sent as a header: names take letters, digits and hyphens, values no control characters"
    )]
    BadHeader {
        /// Its name; never its value, which may be secret.
        name: String,
    },
    /// The user or the password cannot be sent with HTTP Basic.
    #[error(
        "the user and the password cannot be sent: neither may contain control characters, and the user no colon"
    )]
    InvalidBasicLogin,
    /// The client certificate or its key cannot be used.
    #[error(
        "the client certificate and its key cannot be used: {reason}; both must be PEM, the key without a password"
    )]
    BadCertificate { reason: String },
    /// No access token could be obtained, so nothing was sent.
    #[error("no access token for the agent: {reason}")]
    NoToken {
        /// The cause, with what to do.
        reason: String,
    },
    /// No connection could be made.
    #[error("no connection to {url}: {reason}; is the agent running?")]
    Unreachable { url: String, reason: String },
    /// No connection could be made to a gRPC address without a scheme, which was called with TLS.
    #[error(
        "no connection to {url}: {reason}; --plaintext calls it without TLS; is the agent running?"
    )]
    UnreachableOverTls { url: String, reason: String },
    /// The connection was lost during the request or the response.
    #[error("the connection to {url} was lost: {reason}; the agent may have received the message")]
    ConnectionLost { url: String, reason: String },
    /// No answer within the time allowed.
    #[error("no answer from {url} within {seconds} s; allow more time with --timeout")]
    TimedOut { url: String, seconds: u64 },
    /// The agent redirects to another host, which is not followed.
    #[error("{url} redirects to {to}, which is not followed; the card should name the new address")]
    Redirected { url: String, to: String },
    /// An HTTP error status without a protocol error in the body.
    #[error("{url} answered HTTP {status}{detail}")]
    Http {
        url: String,
        status: u16,
        /// The body's message after `: `, and when to try again after `; `, or empty.
        detail: String,
    },
    /// The agent answered with a protocol error (1.0 section 5.4).
    #[error("the agent responded with error {code}: {message}{hint}")]
    Protocol {
        /// The JSON-RPC code, or the HTTP status over HTTP+JSON.
        code: i64,
        /// `google.rpc.ErrorInfo`'s reason, where there is one, such as `VERSION_NOT_SUPPORTED`.
        reason: Option<String>,
        message: String,
        /// The meaning of the code after `; `, or empty.
        hint: &'static str,
    },
    /// The agent answered with a status of gRPC (1.0 section 10.6).
    #[error("the agent responded with {name}: {message}{hint}")]
    Status {
        /// The name of its code, such as `NOT_FOUND`.
        name: &'static str,
        /// `google.rpc.ErrorInfo`'s reason, where there is one.
        reason: Option<String>,
        message: String,
        /// The meaning of the code after `; `, or empty.
        hint: &'static str,
    },
    /// The response is not one of gRPC.
    #[error("{url} responded with {content_type} instead of gRPC; is this the agent's endpoint?")]
    NotGrpc {
        url: String,
        /// Its `Content-Type`, or `no content type`.
        content_type: String,
    },
    /// The card requires a key in the query of the URL, and the interface uses gRPC.
    #[error(
        "the card requires the API key in the query of the URL, which gRPC does not have; choose another interface with --binding"
    )]
    QueryKeyOverGrpc,
    /// The protocol version does not have the operation over gRPC.
    #[error("this version of A2A has no {name} over gRPC; choose another interface with --binding")]
    GrpcMethodMissing {
        /// The name that the operation has in other versions.
        name: &'static str,
    },
    /// The call cannot be expressed in the messages of gRPC.
    #[error("the message cannot be sent over gRPC: {reason}")]
    NotGrpcEncodable { reason: String },
    /// The response is longer than [`BODY_LIMIT`](super::BODY_LIMIT).
    #[error("the response of {url} is longer than {limit} bytes, which is the limit")]
    TooLarge { url: String, limit: usize },
    /// The response is not JSON.
    #[error(
        "{url} responded with {content_type} instead of JSON ({beginning}); is this the agent's endpoint?"
    )]
    NotJson {
        url: String,
        /// Its `Content-Type`, or `no content type`.
        content_type: String,
        beginning: String,
    },
    /// The response is JSON, but neither a task nor a message.
    #[error("the agent's answer is neither a task nor a message: {beginning}")]
    InvalidResponse { beginning: String },
    /// The stream broke, and its task could not be followed any further.
    #[error(
        "the stream of {url} broke ({reason}), and task {task} could not be followed any further; nothing was sent again"
    )]
    StreamLost {
        url: String,
        /// Why it broke, or why it could not be resumed.
        reason: String,
        task: String,
    },
    /// The agent named no task, so there is none to follow or to cancel.
    #[error("the agent gave no task id, so its progress cannot be read")]
    NoTaskId,
    /// The task was not done within the timeout, or within [`POLL_LIMIT`](super::POLL_LIMIT) requests for it.
    #[error(
        "the task is still {state} after {seconds} s; ask the agent again later, or allow more time"
    )]
    Unfinished { state: String, seconds: u64 },
    /// The stream contains data that is not an event.
    #[error("the agent's stream contains data that is not an event: {beginning}")]
    NotAnEvent { beginning: String },
    /// The stream contains an event of another task or call.
    #[error("the agent's stream contains an event of {found} instead of {expected}")]
    ForeignEvent { expected: String, found: String },
    /// The stream exceeds a limit.
    #[error("the stream of {url} exceeds a limit: {what}")]
    StreamTooLong {
        url: String,
        /// What exceeds which limit, such as `an event longer than 10 bytes`.
        what: String,
    },
    /// The machine's TLS configuration cannot be used.
    #[error("the HTTP client could not be created: {reason}")]
    ClientBuildFailed { reason: String },
}

impl From<RouteError> for CallError {
    fn from(error: RouteError) -> Self {
        match error {
            RouteError::NoInterface => Self::NoInterface,
            RouteError::NoneUsable { reasons } => Self::NoneUsable { reasons },
        }
    }
}

impl CallError {
    /// Whether the agent certainly did not accept the message, so that another interface may be tried.
    pub(super) fn was_not_accepted(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Protocol { code, reason, .. } => {
                matches!(code, -32601 | -32009)
                    || reason.as_deref() == Some("VERSION_NOT_SUPPORTED")
            }
            Self::Status { name, reason, .. } => {
                *name == "UNIMPLEMENTED" || reason.as_deref() == Some("VERSION_NOT_SUPPORTED")
            }
            Self::Http { status, .. } => matches!(status, 404 | 405 | 501),
            _ => false,
        }
    }
}

impl CallError {
    /// Whether the agent does not stream (1.0 section 3.3.4), so that it did not accept the message either.
    pub(super) fn is_streaming_unsupported(&self) -> bool {
        match self {
            Self::Protocol { code, reason, .. } => {
                matches!(code, -32601 | -32004)
                    || reason.as_deref() == Some("UNSUPPORTED_OPERATION")
            }
            Self::Status { name, reason, .. } => {
                *name == "UNIMPLEMENTED" || reason.as_deref() == Some("UNSUPPORTED_OPERATION")
            }
            Self::Http { status, .. } => matches!(status, 404 | 405 | 501),
            _ => false,
        }
    }

    /// Whether the agent does not recognise the request, as agents for 0.1 do not recognise those of later versions.
    pub(super) fn is_invalid_request(&self) -> bool {
        matches!(self, Self::Protocol { code: -32600, .. })
    }

    /// Whether a repeated attempt may succeed: the connection failed, or the server was busy.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::ConnectionLost { .. } => true,
            Self::Status { name, .. } => matches!(*name, "UNAVAILABLE" | "RESOURCE_EXHAUSTED"),
            Self::Http { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502..=504),
            _ => false,
        }
    }
}

/// Meaning of a protocol error code for the sender (1.0 section 5.4, JSON-RPC 2.0 section 5.1).
pub(super) fn error_code_hint(code: i64) -> &'static str {
    match code {
        -32601 => {
            "; the agent does not know the method; its card may name the wrong protocol version"
        }
        -32009 => "; the agent does not support the protocol version that its card names",
        -32008 => "; the agent requires a protocol extension that this client does not support",
        -32005 => "; the agent does not accept plain text",
        _ => "",
    }
}

pub(super) fn auth_error(
    status: &str,
    sent_credentials: bool,
    challenge: Option<&str>,
    message: &str,
) -> CallError {
    if sent_credentials {
        return CallError::CredentialsRejected {
            status: status.to_owned(),
            detail: colon_prefixed(challenge.filter(|text| !text.is_empty()).unwrap_or(message)),
        };
    }
    let named = challenge
        .map(shorten_to_line)
        .filter(|text| !text.is_empty());
    let needed = match named {
        Some(challenge) => format!("it responded with {status} and requires {challenge}"),
        None => format!("it responded with {status}{}", colon_prefixed(message)),
    };
    CallError::CredentialsRequired {
        needed,
        hint: "try --bearer @FILE, --api-key @FILE or --header 'NAME: VALUE'".to_owned(),
    }
}
