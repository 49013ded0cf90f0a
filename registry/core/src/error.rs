//! Errors of actions, independent of the transport: a kind, a text for the caller, and a text for the log.

use std::fmt;

use a2a_card::named_enum;
use a2a_registry_api::PolicyNotice;
use a2a_registry_search::IndexError;
use a2a_registry_store::{StoreError, StoreErrorKind};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The resource does not exist, or is hidden from the caller.
    NotFound,
    Invalid,
    NotJson,
    NotACard,
    Unauthenticated,
    Forbidden,
    /// The request does not fit the present state.
    Conflict,
    /// The resource is not in the state that the caller has seen.
    Changed,
    /// No policy of a policy set permits finding agents.
    NoPermit,
    /// A policy set hides every agent, and the caller has not seen its preview.
    PreviewNeeded,
    TargetRefused,
    DomainDenied,
    PolicyDenied,
    LimitReached,
    /// Too many requests in too short a time.
    TooManyRequests,
    /// The database does not respond, or the load is too high.
    Unavailable,
    /// The database accepts no writes.
    ReadOnly,
    /// A bug of the registry.
    Internal,
}

named_enum! {
    /// Why a credential or a sign-in was refused, for metrics, the log and events.
    pub enum CredentialRefusal {
        /// An `Authorization` header without a bearer token.
        NoToken = "no_token",
        /// A token that this registry never issued, or that was revoked.
        UnknownToken = "unknown_token",
        /// An expired token.
        EndedToken = "ended_token",
        DisabledAccount = "disabled_account",
        /// The identity provider has not confirmed the token's account for too long.
        SuspendedToken = "suspended_token",
        /// An invalid access token.
        AccessToken = "access_token",
        /// The identity provider's rules do not admit this person or service.
        NotAdmitted = "not_admitted",
        /// A response that matches no open sign-in attempt of this browser: none, an expired or a used one.
        Attempt = "attempt",
        /// The identity provider rejected the sign-in, or its response is invalid.
        ProviderAnswer = "provider_answer",
        /// The connection is not encrypted, so a secret would be sent in plain text.
        Connection = "connection",
        TooMany = "too_many",
    }
}

/// A refusal by policies: its decision, which was recorded, and what the policies say about it.
#[derive(Debug, Clone)]
pub struct PolicyDenial {
    pub decision: Uuid,
    pub notices: Vec<PolicyNotice>,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{public}")]
pub struct AppError {
    pub kind: ErrorKind,
    /// A sentence for the caller: what is wrong and what to do.
    pub public: String,
    /// A text for the log only.
    pub internal: Option<String>,
    /// Invalid members of the request: RFC 6901 pointer and sentence.
    pub members: Vec<(String, String)>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<u32>,
    /// The reason, if a credential or a sign-in was refused.
    pub refusal: Option<CredentialRefusal>,
    /// The refusal, if policies refused it.
    pub denial: Option<Box<PolicyDenial>>,
}

/// The result of an action.
pub type Result<T, E = AppError> = std::result::Result<T, E>;

/// Maximum number of characters that an error repeats of an identifier in the request.
const MAX_QUOTED_CHARS: usize = 200;

/// Cuts an identifier from the request that is too long to be valid.
fn truncate_identifier(identifier: impl fmt::Display) -> String {
    let identifier = identifier.to_string();
    match identifier.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &identifier[..end]),
        None => identifier,
    }
}

impl AppError {
    pub fn new(kind: ErrorKind, public: impl Into<String>) -> Self {
        Self {
            kind,
            public: public.into(),
            internal: None,
            members: Vec::new(),
            retry_after: None,
            refusal: None,
            denial: None,
        }
    }

    /// Marks this error as a refusal of a credential or a sign-in.
    #[must_use]
    pub fn with_refusal(self, reason: CredentialRefusal) -> Self {
        Self {
            refusal: Some(reason),
            ..self
        }
    }

    /// Marks this error of an identity provider as a refusal for this reason, unless the provider does not respond.
    #[must_use]
    pub fn with_provider_refusal(self, reason: CredentialRefusal) -> Self {
        match self.kind {
            ErrorKind::Unauthenticated => self.with_refusal(reason),
            ErrorKind::Forbidden => self.with_refusal(CredentialRefusal::NotAdmitted),
            _ => self,
        }
    }

    pub fn log_message(&self) -> &str {
        self.internal.as_deref().unwrap_or(&self.public)
    }

    /// Whether the whole database fails, so that a job would fail for its next row too.
    pub const fn is_database_failure(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::ReadOnly)
    }

    /// The error for something that is missing or hidden from the caller. The text depends only on the request, so
    /// that callers cannot tell the two apart.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, text)
    }

    pub fn no_decision(id: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Decision {} does not exist.",
            truncate_identifier(id)
        ))
    }

    pub fn no_waiver(id: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "No waiver {} is in force.",
            truncate_identifier(id)
        ))
    }

    /// The error for an agent that is missing or hidden; `agent` is its id or URN from the request.
    pub fn no_agent(agent: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Agent {} is not registered.",
            truncate_identifier(agent)
        ))
    }

    pub fn no_domain(domain: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Domain {} is not registered.",
            truncate_identifier(domain)
        ))
    }

    pub fn no_version(agent: impl fmt::Display, version: impl fmt::Display) -> Self {
        let (agent, version) = (truncate_identifier(agent), truncate_identifier(version));
        Self::not_found(format!("Agent {agent} has no version {version}."))
    }

    pub fn no_preview(id: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Preview {} does not exist, or was requested more than an hour ago.",
            truncate_identifier(id)
        ))
    }

    pub fn no_review(review: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Review {} does not exist.",
            truncate_identifier(review)
        ))
    }

    pub fn no_token(token: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Token {} does not exist.",
            truncate_identifier(token)
        ))
    }

    pub fn no_session(session: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Session {} does not exist.",
            truncate_identifier(session)
        ))
    }

    pub fn no_account(account: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Account {} does not exist.",
            truncate_identifier(account)
        ))
    }

    pub fn no_group(group: impl fmt::Display) -> Self {
        Self::not_found(format!(
            "Group {} does not exist.",
            truncate_identifier(group)
        ))
    }

    pub fn no_saved_search(search: impl fmt::Display) -> Self {
        let search = truncate_identifier(search);
        Self::not_found(format!("Saved search {search} does not exist."))
    }

    pub fn no_hook(hook: impl fmt::Display) -> Self {
        let hook = truncate_identifier(hook);
        Self::not_found(format!("You have no hook {hook}."))
    }

    pub fn no_collection(collection: impl fmt::Display) -> Self {
        let collection = truncate_identifier(collection);
        Self::not_found(format!("Collection {collection} does not exist."))
    }

    /// No page or resource has the requested address.
    pub fn no_resource() -> Self {
        Self::not_found("Nothing exists at this path. /openapi.json lists all paths of the API.")
    }

    /// The request does not fit the present state.
    pub fn conflict(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, text)
    }

    /// The caller may not do this.
    pub fn forbidden(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, text)
    }

    /// The caller must authenticate.
    pub fn unauthenticated(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unauthenticated, text)
    }

    /// A limit of the caller is reached.
    pub fn limit_reached(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::LimitReached, text)
    }

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
            StoreErrorKind::Unavailable => Self::unavailable(
                "The database did not respond. The change may or may not have been made: check before you repeat it.",
                5,
            ),
            StoreErrorKind::ReadOnly | StoreErrorKind::StorageFull => Self {
                retry_after: Some(5),
                ..Self::new(
                    ErrorKind::ReadOnly,
                    "The database does not accept writes at present. Try again later.",
                )
            },
            StoreErrorKind::Conflict => Self::new(
                ErrorKind::Conflict,
                "Another request changed this at the same time, so your change was not made. Check the current \
                 state and try again.",
            ),
            StoreErrorKind::CorruptRow(_)
            | StoreErrorKind::DigestMismatch(_)
            | StoreErrorKind::Other => Self::internal(String::new()),
        };
        Self {
            internal: Some(error.to_string()),
            ..public
        }
    }
}

impl From<IndexError> for AppError {
    fn from(error: IndexError) -> Self {
        if let IndexError::TooMany { what, limit } = error {
            return Self::invalid("", format!("at most {limit} {what} in one search"));
        }
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

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        Self(format!("the database failed: {error}"))
    }
}
