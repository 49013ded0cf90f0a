//! Why there is no answer.

use reqwest::StatusCode;

use super::choice::NoRoute;

/// Why [`send_text`](super::send_text) gives no answer. Each message is one line that says what to do.
/// Parts of it may come from the card or the agent: make it safe before it reaches a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TalkError {
    /// The card lists no address at all.
    #[error("the card lists no interface, so there is no address to send to")]
    NoInterface,
    /// The card lists interfaces, and this client can use none of them.
    #[error(
        "none of the card's interfaces can be used: {reasons}; send speaks JSONRPC 0.2, 0.3 and 1.0 and HTTP+JSON 1.0"
    )]
    NoneUsable {
        /// Why not, interface by interface, shortened.
        reasons: String,
    },
    /// The card asks for credentials, and what was given meets none of its alternatives.
    #[error("the agent asks for credentials: {needed}; {hint}")]
    CredentialsNeeded {
        /// What the card, or the agent's refusal, asks for.
        needed: String,
        /// Which flag gives it.
        hint: String,
    },
    /// Credentials were sent, and the agent refused them.
    #[error(
        "the agent refused the credentials (HTTP {status}){detail}; check that they are valid for it"
    )]
    CredentialsRefused {
        /// 401 or 403.
        status: u16,
        /// What the agent said, led in by `: `, or empty.
        detail: String,
    },
    /// A key was given, and the card does not say where it would go.
    #[error(
        "the card names no API key scheme, so there is no place for the key; use --header 'NAME: VALUE'"
    )]
    KeyHasNoPlace,
    /// A header, token or key holds what no header can hold.
    #[error(
        "{name} cannot be sent as a header: names take letters, digits and hyphens, values no control characters"
    )]
    BadHeader {
        /// Which one; never its value, which may be secret.
        name: String,
    },
    /// No connection came about.
    #[error("no connection to {url}: {reason}; is the agent running?")]
    Unreachable {
        /// The address.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// The connection broke while the request or the answer was under way.
    #[error("the exchange with {url} broke off: {reason}; the agent may have received the message")]
    Broken {
        /// The address.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// No answer within the time allowed.
    #[error("no answer from {url} within {seconds} s; allow more time with --timeout")]
    TimedOut {
        /// The address.
        url: String,
        /// The time allowed.
        seconds: u64,
    },
    /// The agent sends callers elsewhere, which is not followed to another host.
    #[error("{url} redirects to {to}, which is not followed; the card should name the new address")]
    Redirected {
        /// The address.
        url: String,
        /// The `Location`, shortened.
        to: String,
    },
    /// An HTTP error without a protocol error in it.
    #[error("{url} answered HTTP {status}{detail}")]
    Http {
        /// The address.
        url: String,
        /// The status.
        status: u16,
        /// What the body says, led in by `: `, or empty.
        detail: String,
    },
    /// The agent answered with a protocol error (1.0 section 5.4).
    #[error("the agent answered error {code}: {message}{hint}")]
    Protocol {
        /// The JSON-RPC code, or the HTTP status over HTTP+JSON.
        code: i64,
        /// `google.rpc.ErrorInfo`'s reason, where there is one, such as `VERSION_NOT_SUPPORTED`.
        reason: Option<String>,
        /// The agent's words, shortened.
        message: String,
        /// What it means for the sender, led in by `; `, or empty.
        hint: &'static str,
    },
    /// The answer is longer than [`BODY_LIMIT`](super::BODY_LIMIT).
    #[error("the answer of {url} is longer than {limit} bytes and was not read to its end")]
    TooLarge {
        /// The address.
        url: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The answer is no JSON.
    #[error(
        "{url} answered {content_type} instead of JSON ({beginning}); is this the agent's endpoint?"
    )]
    NotJson {
        /// The address.
        url: String,
        /// Its `Content-Type`, or `nothing named`.
        content_type: String,
        /// How it begins, shortened.
        beginning: String,
    },
    /// The answer is JSON, and neither a task nor a message.
    #[error("the agent's answer is neither a task nor a message: {beginning}")]
    NotAnAnswer {
        /// How it begins, shortened.
        beginning: String,
    },
    /// The machine's TLS set-up cannot be used.
    #[error("the HTTP client cannot start: {reason}")]
    NoClient {
        /// The cause.
        reason: String,
    },
}

impl From<NoRoute> for TalkError {
    fn from(why: NoRoute) -> Self {
        match why {
            NoRoute::NoInterface => Self::NoInterface,
            NoRoute::NoneUsable { reasons } => Self::NoneUsable { reasons },
        }
    }
}

impl TalkError {
    /// Whether the agent certainly did not take the message up, so that another interface may be tried.
    pub(super) fn not_taken_up(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Protocol { code, reason, .. } => {
                matches!(code, -32601 | -32009)
                    || reason.as_deref() == Some("VERSION_NOT_SUPPORTED")
            }
            Self::Http { status, .. } => matches!(status, 404 | 405 | 501),
            _ => false,
        }
    }
}

/// What a protocol error code means for the sender (1.0 section 5.4, JSON-RPC 2.0 section 5.1).
pub(super) fn hint_for(code: i64) -> &'static str {
    match code {
        -32601 => {
            "; the agent does not know the method, its card may name the wrong protocol version"
        }
        -32009 => "; the agent does not speak the protocol version its card names",
        -32008 => "; the agent needs a protocol extension that send does not speak",
        -32005 => "; the agent does not take plain text",
        _ => "",
    }
}

/// The error for a refused caller: what is needed, or that what was sent did not do.
pub(super) fn refused(
    status: StatusCode,
    sent: bool,
    challenge: Option<&str>,
    said: &str,
) -> TalkError {
    if sent {
        return TalkError::CredentialsRefused {
            status: status.as_u16(),
            detail: led_in(challenge.filter(|text| !text.is_empty()).unwrap_or(said)),
        };
    }
    let named = challenge.map(shorten).filter(|text| !text.is_empty());
    let needed = match named {
        Some(challenge) => format!("it answered HTTP {} and wants {challenge}", status.as_u16()),
        None => format!("it answered HTTP {}{}", status.as_u16(), led_in(said)),
    };
    TalkError::CredentialsNeeded {
        needed,
        hint: "try --bearer TOKEN, --api-key KEY or --header 'NAME: VALUE'".to_owned(),
    }
}

/// `: text`, shortened, or nothing.
pub(super) fn led_in(text: &str) -> String {
    let text = shorten(text);
    if text.is_empty() {
        text
    } else {
        format!(": {text}")
    }
}

/// At most 200 characters of a foreign text, on one line.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut words = String::new();
    // Only so much is looked at that a huge text costs nothing.
    for word in text.split_whitespace().take(LONGEST) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().take(LONGEST + 1));
        if words.chars().nth(LONGEST).is_some() {
            let mut cut: String = words.chars().take(LONGEST).collect();
            cut.push('…');
            return cut;
        }
    }
    words
}
