//! Problem documents (RFC 9457): the one conversion of [`AppError`] and of invalid requests into responses.
//!
//! A handler or extractor only returns a [`Problem`]; the envelope writes the document, because only there the path for
//! `instance` is known for every kind of error alike.

use std::fmt;

use a2a_registry_api::OutcomeProblem;
use a2a_registry_core::error::{AppError, ErrorKind, RefusalReason};
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::problems::problem_kinds::{self, ProblemKind};

/// The media type of problem documents.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// A problem document, RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// Kind of the problem: `/problems/<slug>`. The page at this address explains it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Title of the kind.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What is wrong with this request, and what to do.
    pub detail: String,
    /// Path of the request.
    pub instance: String,
    /// Members and parameters that are invalid.
    #[serde(default)]
    pub errors: Vec<MemberError>,
}

/// An invalid member of the body, or an invalid parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberError {
    /// RFC 6901 pointer into the body; for a parameter `/` and its name.
    pub pointer: String,
    /// Why it is invalid.
    pub detail: String,
}

#[derive(Debug)]
pub struct Problem {
    kind: &'static ProblemKind,
    detail: String,
    extras: Box<ProblemExtras>,
}

/// Members that few problems have, boxed so that every result with a problem stays small.
#[derive(Debug, Default)]
struct ProblemExtras {
    errors: Vec<MemberError>,
    retry_after: Option<u32>,
    allow: Option<String>,
    extension: Option<Map<String, Value>>,
    internal: Option<String>,
    refusal: Option<RefusalReason>,
}

impl Problem {
    /// `detail` is one sentence on what is wrong with this request.
    pub fn new(kind: &'static ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            extras: Box::default(),
        }
    }

    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let mut problem = Self::new(&problem_kinds::INVALID_REQUEST, detail.clone());
        problem.extras.errors.push(MemberError {
            pointer: pointer.into(),
            detail,
        });
        problem
    }

    /// The path has other methods: 405, with these in `Allow`.
    pub fn method_not_allowed(allow: &str) -> Self {
        let detail = format!("This address takes {allow}.");
        let mut problem = Self::new(&problem_kinds::WRONG_METHOD, detail);
        problem.extras.allow = Some(allow.to_owned());
        problem
    }

    /// Sets the seconds after which a retry makes sense.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.extras.retry_after = Some(seconds);
        self
    }

    /// Adds members to the document (RFC 9457 section 3.2). Names of the document's own are ignored.
    #[must_use]
    pub fn with_members(mut self, members: Map<String, Value>) -> Self {
        self.extras.extension = Some(members);
        self
    }

    /// This problem as the result of one of the items of a request.
    pub(crate) fn to_outcome_problem(&self) -> OutcomeProblem {
        if let Some(internal) = self.internal() {
            tracing::error!(internal, "one of the items of a request failed");
        }
        OutcomeProblem {
            kind: format!("/problems/{}", self.kind.slug),
            status: self.kind.status.as_u16(),
            detail: self.detail.clone(),
        }
    }

    /// The detail, after the pointer of the first invalid member, for answers that have one text only.
    pub fn detail_with_pointer(&self) -> String {
        let first = self.extras.errors.first();
        match first.filter(|error| !error.pointer.is_empty()) {
            Some(error) => format!("{}: {}", error.pointer, error.detail),
            None => self.detail.clone(),
        }
    }

    pub fn kind(&self) -> &'static ProblemKind {
        self.kind
    }

    #[must_use]
    pub(crate) fn with_refusal(mut self, reason: RefusalReason) -> Self {
        self.extras.refusal = Some(reason);
        self
    }

    /// Set if a credential or a sign-in was refused.
    pub(crate) fn refusal(&self) -> Option<RefusalReason> {
        self.extras.refusal
    }

    /// For the log only.
    pub fn internal(&self) -> Option<&str> {
        self.extras.internal.as_deref()
    }

    /// The answer with its document, to a request for that path.
    pub fn to_response(&self, instance: &str) -> HttpResponse {
        let document = ProblemDocument {
            kind: format!("/problems/{}", self.kind.slug),
            title: self.kind.title.to_owned(),
            status: self.kind.status.as_u16(),
            detail: self.detail.clone(),
            instance: instance.to_owned(),
            errors: self.extras.errors.clone(),
        };
        let mut response = self.response_builder();
        response.insert_header((header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON)));
        response.body(self.document_bytes(&document))
    }

    /// A response without a body, with the status and headers of this problem, for the document and for a page.
    pub fn response_builder(&self) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(self.kind.status);
        // Without this a cache may keep a 404 for as long as it sees fit (RFC 9111 section 4.2.2).
        response.insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
        if self.kind.status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        if let Some(seconds) = self.extras.retry_after {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        if let Some(allow) = &self.extras.allow {
            response.insert_header((header::ALLOW, allow.as_str()));
        }
        response
    }

    fn document_bytes(&self, document: &ProblemDocument) -> Vec<u8> {
        let Some(extension) = &self.extras.extension else {
            return serde_json::to_vec(document).unwrap_or_default();
        };
        let mut members = extension.clone();
        if let Ok(Value::Object(own)) = serde_json::to_value(document) {
            members.extend(own);
        }
        serde_json::to_vec(&members).unwrap_or_default()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.kind.status
    }

    /// A placeholder, which the envelope replaces by the document.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.kind.status)
    }
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        let kind = match error.kind {
            ErrorKind::NotFound => &problem_kinds::NOT_FOUND,
            ErrorKind::Invalid => &problem_kinds::INVALID_REQUEST,
            ErrorKind::NotJson => &problem_kinds::NOT_JSON,
            ErrorKind::NotACard => &problem_kinds::NOT_A_CARD,
            ErrorKind::Unauthenticated => &problem_kinds::UNAUTHENTICATED,
            ErrorKind::Forbidden => &problem_kinds::FORBIDDEN,
            ErrorKind::Conflict => &problem_kinds::CONFLICT,
            ErrorKind::Changed => &problem_kinds::CHANGED_MEANWHILE,
            ErrorKind::NoPermit => &problem_kinds::NO_PERMIT,
            ErrorKind::PreviewNeeded => &problem_kinds::PREVIEW_NEEDED,
            ErrorKind::TargetRefused => &problem_kinds::TARGET_REFUSED,
            ErrorKind::DomainDenied => &problem_kinds::DOMAIN_DENIED,
            ErrorKind::PolicyDenied => &problem_kinds::POLICY_DENIED,
            ErrorKind::LimitReached => &problem_kinds::LIMIT_REACHED,
            ErrorKind::TooManyRequests => &problem_kinds::TOO_MANY_REQUESTS,
            ErrorKind::Unavailable => &problem_kinds::UNAVAILABLE,
            ErrorKind::ReadOnly => &problem_kinds::READ_ONLY,
            ErrorKind::Internal => &problem_kinds::INTERNAL,
        };
        let errors = error.members.into_iter();
        let mut problem = Self::new(kind, error.public);
        *problem.extras = ProblemExtras {
            errors: errors
                .map(|(pointer, detail)| MemberError { pointer, detail })
                .collect(),
            retry_after: error.retry_after,
            internal: error.internal,
            refusal: error.refusal,
            ..ProblemExtras::default()
        };
        problem
    }
}
