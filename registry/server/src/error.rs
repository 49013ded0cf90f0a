//! Failures of acts, independent of the transport: a kind, a text for the caller, a text for the log.

use std::fmt;

use a2a_registry_search::IndexError;
use a2a_registry_store::{StoreError, StoreErrorKind};

/// The kind of a failure. The transport maps each kind once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The resource does not exist, or is hidden from the caller.
    NotFound,
    /// The request cannot be understood.
    Invalid,
    /// A card that was sent is not JSON.
    NotJson,
    /// A document that was sent is not an agent card.
    NotACard,
    /// The caller must authenticate.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// The request does not fit the present state.
    Conflict,
    /// What is to be changed is not what the caller has seen.
    Changed,
    /// No policy of a set permits finding agents.
    NoPermit,
    /// A set hides every agent, and its preview was not shown.
    PreviewNeeded,
    /// The guard refuses the target.
    TargetRefused,
    /// The domain is on `deny_domains`.
    DomainDenied,
    /// A policy does not allow it.
    PolicyDenied,
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

/// Why a credential or a sign-in was refused, for metrics, the log and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalReason {
    /// An `Authorization` that is no bearer token.
    NoToken,
    /// A token that this registry never made, or that was revoked.
    UnknownToken,
    /// A token past its end.
    EndedToken,
    /// The account is disabled.
    DisabledAccount,
    /// The identity provider of the token's account has not confirmed the account for too long.
    SuspendedToken,
    /// An access token that is not in order.
    AccessToken,
    /// The identity provider's rules let this person or service not in.
    NotAdmitted,
    /// An answer to no attempt to sign in of this browser, or to one that has expired or was used.
    Attempt,
    /// The identity provider has refused, or its answer is not in order.
    ProviderAnswer,
    /// The connection: a secret would travel in the clear.
    Connection,
    /// Too many attempts.
    TooMany,
}

impl RefusalReason {
    /// The reason as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::UnknownToken => "unknown_token",
            Self::EndedToken => "ended_token",
            Self::DisabledAccount => "disabled_account",
            Self::SuspendedToken => "suspended_token",
            Self::AccessToken => "access_token",
            Self::NotAdmitted => "not_admitted",
            Self::Attempt => "attempt",
            Self::ProviderAnswer => "provider_answer",
            Self::Connection => "connection",
            Self::TooMany => "too_many",
        }
    }
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
    /// Why a credential or a sign-in was refused, if that is the failure.
    pub refusal: Option<RefusalReason>,
}

/// Characters of an identifier of the request that an error repeats.
const QUOTED: usize = 200;

/// An identifier as the request has it, cut where it is too long to be one.
fn bounded(identifier: impl fmt::Display) -> String {
    let identifier = identifier.to_string();
    match identifier.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &identifier[..end]),
        None => identifier,
    }
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
            refusal: None,
        }
    }

    /// This failure as a refusal of a credential or a sign-in.
    #[must_use]
    pub(crate) fn refused(self, reason: RefusalReason) -> Self {
        Self {
            refusal: Some(reason),
            ..self
        }
    }

    /// This failure of an identity provider as a refusal: for this reason where something is not in order, and no refusal
    /// where the provider does not respond.
    #[must_use]
    pub(crate) fn refused_by_provider(self, reason: RefusalReason) -> Self {
        match self.kind {
            ErrorKind::Unauthenticated => self.refused(reason),
            ErrorKind::Forbidden => self.refused(RefusalReason::NotAdmitted),
            _ => self,
        }
    }

    /// The text for the log.
    pub(crate) fn for_log(&self) -> &str {
        self.internal.as_deref().unwrap_or(&self.public)
    }

    /// Whether the database fails as a whole, so that a job which goes on with the next row would fail again.
    pub(crate) const fn is_of_database(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::ReadOnly)
    }

    /// Something is missing, or hidden from the caller. The text depends on the request alone, so that callers cannot
    /// tell the two apart.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, text)
    }

    /// A waiver is missing, or has ended.
    pub fn no_waiver(id: impl fmt::Display) -> Self {
        Self::not_found(format!("There is no waiver {} in force.", bounded(id)))
    }

    /// An agent is missing or hidden, by its id or URN as the request has it.
    pub fn no_agent(agent: impl fmt::Display) -> Self {
        Self::not_found(format!("Agent {} is not registered.", bounded(agent)))
    }

    /// A domain is missing or hidden.
    pub fn no_domain(domain: impl fmt::Display) -> Self {
        Self::not_found(format!("Domain {} is not registered.", bounded(domain)))
    }

    /// A version of an agent's card is missing or hidden.
    pub fn no_version(agent: impl fmt::Display, version: impl fmt::Display) -> Self {
        let (agent, version) = (bounded(agent), bounded(version));
        Self::not_found(format!("Agent {agent} has no version {version}."))
    }

    /// A review is missing.
    pub fn no_review(review: impl fmt::Display) -> Self {
        Self::not_found(format!("Review {} does not exist.", bounded(review)))
    }

    /// A token is missing.
    pub fn no_token(token: impl fmt::Display) -> Self {
        Self::not_found(format!("Token {} does not exist.", bounded(token)))
    }

    /// A session is missing.
    pub fn no_session(session: impl fmt::Display) -> Self {
        Self::not_found(format!("Session {} does not exist.", bounded(session)))
    }

    /// An account is missing.
    pub fn no_account(account: impl fmt::Display) -> Self {
        Self::not_found(format!("Account {} does not exist.", bounded(account)))
    }

    /// A group is missing.
    pub fn no_group(group: impl fmt::Display) -> Self {
        Self::not_found(format!("Group {} does not exist.", bounded(group)))
    }

    /// A saved search is missing.
    pub fn no_saved_search(search: impl fmt::Display) -> Self {
        let search = bounded(search);
        Self::not_found(format!("Saved search {search} does not exist."))
    }

    /// A collection is missing or hidden.
    pub fn no_collection(collection: impl fmt::Display) -> Self {
        let collection = bounded(collection);
        Self::not_found(format!("Collection {collection} does not exist."))
    }

    /// No page or resource has the requested address.
    pub fn no_address() -> Self {
        Self::not_found("This address does not exist.")
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
                "The database did not respond. A change may have been made or not: look before you repeat it.",
                5,
            ),
            StoreErrorKind::ReadOnly | StoreErrorKind::Full => Self {
                retry_after: Some(5),
                ..Self::new(
                    ErrorKind::ReadOnly,
                    "The database accepts no writes at present. Try again later.",
                )
            },
            StoreErrorKind::Conflict => Self::new(
                ErrorKind::Conflict,
                "Another request changed this at the same time, so your change was not made. Check the present state and try again.",
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

/// The reason why the registry does not start, in one line for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        Self(format!("the database failed: {error}"))
    }
}
