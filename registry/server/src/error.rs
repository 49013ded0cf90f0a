//! Failures of acts, independent of the transport: a kind, a text for the caller, a text for the log.

use a2a_registry_search::IndexError;
use a2a_registry_store::{StoreError, StoreErrorKind};

/// The kind of a failure. The transport maps each kind once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The resource does not exist, or is hidden from the caller.
    NotFound,
    /// The request cannot be understood.
    Invalid,
    /// The caller must authenticate.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// The request does not fit the present state.
    Conflict,
    /// The guard refuses the target.
    TargetRefused,
    /// The domain is on `deny_domains`.
    DomainDenied,
    /// A limit of the caller is reached.
    LimitReached,
    /// Too many requests in too short a time.
    TooManyRequests,
    /// Temporarily unavailable: the database does not respond, or the load is too high.
    Unavailable,
    /// The database accepts no writes.
    ReadOnly,
    /// A bug of the registry.
    Internal,
}

/// A failure.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{public}")]
pub struct AppError {
    /// The kind.
    pub kind: ErrorKind,
    /// One sentence for the caller: what is wrong and what to do.
    pub public: String,
    /// For the log only.
    pub internal: Option<String>,
    /// Members of the request that are wrong: RFC 6901 pointer and sentence.
    pub members: Vec<(String, String)>,
    /// Seconds after which trying again makes sense.
    pub retry_after: Option<u32>,
}

impl AppError {
    /// A failure of that kind with a sentence for the caller.
    pub fn new(kind: ErrorKind, public: impl Into<String>) -> Self {
        Self {
            kind,
            public: public.into(),
            internal: None,
            members: Vec::new(),
            retry_after: None,
        }
    }

    /// The resource does not exist. The text is the same whether it is missing or hidden.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("There is no such {what}."))
    }

    /// A member of the request is invalid.
    pub fn invalid(pointer: &str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            members: vec![(pointer.to_owned(), detail.clone())],
            ..Self::new(ErrorKind::Invalid, detail)
        }
    }

    /// A bug of the registry; only the log has the reason.
    pub fn internal(text: impl Into<String>) -> Self {
        Self {
            internal: Some(text.into()),
            ..Self::new(
                ErrorKind::Internal,
                "The registry failed because of an internal error; its log has the reason.",
            )
        }
    }

    /// Temporarily unavailable.
    pub fn unavailable(public: impl Into<String>, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..Self::new(ErrorKind::Unavailable, public)
        }
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        let public = match error.kind() {
            StoreErrorKind::Away => Self::unavailable(
                "The database did not respond; nothing was changed. Try again later.",
                5,
            ),
            StoreErrorKind::ReadOnly | StoreErrorKind::Full => Self {
                retry_after: Some(5),
                ..Self::new(
                    ErrorKind::ReadOnly,
                    "The database accepts no writes at present; nothing was changed. Try again later.",
                )
            },
            StoreErrorKind::Conflict => Self::new(
                ErrorKind::Conflict,
                "Another request changed this at the same time, so your change was not made. Check the present state and try again.",
            ),
            StoreErrorKind::CorruptRow(_) | StoreErrorKind::Other => Self::internal(String::new()),
        };
        Self {
            internal: Some(error.to_string()),
            ..public
        }
    }
}

impl From<IndexError> for AppError {
    fn from(error: IndexError) -> Self {
        Self {
            internal: Some(error.to_string()),
            retry_after: Some(5),
            ..Self::new(
                ErrorKind::Unavailable,
                "The search index is being rebuilt. Try again in a moment.",
            )
        }
    }
}

/// The reason why the registry does not start, in one line for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);
