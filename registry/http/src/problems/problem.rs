//! Problem documents (RFC 9457): converts [`AppError`] and invalid requests to responses.
//!
//! Handlers and extractors only return a [`Problem`]; the middleware writes the document, because only there the path
//! for `instance` is known for every kind of error.

use std::fmt;

use a2a_registry_api::{OutcomeProblem, PolicyNotice};
use a2a_registry_core::commit::audit_log::AUDIT_LOG;
use a2a_registry_core::error::{AppError, CredentialRefusal, ErrorKind, PolicyDenial};
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::problems::problem_kinds::{self, ProblemKind};

/// Media type of problem documents.
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
    /// Explanation of the error in this request, and what to do.
    pub detail: String,
    /// Path of the request.
    pub instance: String,
    /// Invalid members and parameters.
    #[serde(default)]
    pub errors: Vec<MemberError>,
    /// Id of the decision if policies deny the request; the caller can look it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Uuid>,
    /// Messages of these policies, at most 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<Vec<PolicyNotice>>,
}

/// An invalid member of the body, or an invalid parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberError {
    /// RFC 6901 pointer into the body; for a parameter, `/` and its name.
    pub pointer: String,
    /// Reason why the value is invalid.
    pub detail: String,
}

#[derive(Debug)]
pub struct Problem {
    kind: &'static ProblemKind,
    detail: String,
    extras: Box<ProblemExtras>,
}

/// Rarely used members, boxed so that results with a problem stay small.
#[derive(Debug, Default)]
struct ProblemExtras {
    errors: Vec<MemberError>,
    retry_after: Option<u32>,
    allow: Option<String>,
    extension: Option<Map<String, Value>>,
    internal: Option<String>,
    refusal: Option<CredentialRefusal>,
    denial: Option<Box<PolicyDenial>>,
}

impl Problem {
    /// Creates a problem. `detail` is one sentence about the error in this request.
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

    /// Problem 405 for a path with other methods, which are in `Allow`.
    pub fn method_not_allowed(allow: &str) -> Self {
        let detail = format!("This path supports {allow}.");
        let mut problem = Self::new(&problem_kinds::WRONG_METHOD, detail);
        problem.extras.allow = Some(allow.to_owned());
        problem
    }

    /// Sets the number of seconds to wait before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.extras.retry_after = Some(seconds);
        self
    }

    /// Adds the decision by which policies refuse the request.
    #[must_use]
    pub fn with_denial(mut self, denial: PolicyDenial) -> Self {
        self.extras.denial = Some(Box::new(denial));
        self
    }

    /// Adds extension members to the document (RFC 9457 section 3.2). Names of standard members are ignored.
    #[must_use]
    pub fn with_extension_members(mut self, members: Map<String, Value>) -> Self {
        self.extras.extension = Some(members);
        self
    }

    /// Converts this problem to the result of one item of a bulk request.
    pub(crate) fn to_outcome_problem(&self) -> OutcomeProblem {
        if let Some(internal) = self.internal_text() {
            tracing::error!(internal, "an item of a bulk request failed");
        }
        self.log_refusal();
        OutcomeProblem {
            kind: format!("/problems/{}", self.kind.slug),
            status: self.kind.status.as_u16(),
            detail: self.detail.clone(),
        }
    }

    /// Detail with the pointer of the first invalid member, for responses that have only one text.
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
    pub(crate) fn with_refusal(mut self, reason: CredentialRefusal) -> Self {
        self.extras.refusal = Some(reason);
        self
    }

    /// Reason for a rejected credential or sign-in; `None` for other problems.
    pub(crate) fn refusal_reason(&self) -> Option<CredentialRefusal> {
        self.extras.refusal
    }

    /// Internal text, for the log only.
    pub fn internal_text(&self) -> Option<&str> {
        self.extras.internal.as_deref()
    }

    /// Whether a caller may not do what was requested. Refused credentials and sign-ins have lines of their own, and
    /// forms of other sites none, because anyone can cause any number of them.
    fn is_refused_action(&self) -> bool {
        self.kind.status == StatusCode::FORBIDDEN
            && self.extras.refusal.is_none()
            && *self.kind != problem_kinds::FORM_REFUSED
    }

    /// Logs that a caller may not do what was requested; nothing for other problems.
    pub(crate) fn log_refusal(&self) {
        if self.is_refused_action() {
            tracing::info!(
                target: AUDIT_LOG,
                event = "request.refused",
                problem = self.kind.slug,
                reason = self.detail,
                "refused"
            );
        }
    }

    /// Response with the problem document, for a request to this path.
    pub fn to_response(&self, instance: &str) -> HttpResponse {
        let denial = self.extras.denial.as_deref();
        let document = ProblemDocument {
            kind: format!("/problems/{}", self.kind.slug),
            title: self.kind.title.to_owned(),
            status: self.kind.status.as_u16(),
            detail: self.detail.clone(),
            instance: instance.to_owned(),
            errors: self.extras.errors.clone(),
            decision: denial.map(|denial| denial.decision),
            notices: denial.map(|denial| denial.notices.clone()),
        };
        let mut response = self.response_builder();
        response.insert_header((header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON)));
        response.body(self.document_bytes(&document))
    }

    /// Response builder with the status and headers of this problem, for the document and for a page.
    pub fn response_builder(&self) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(self.kind.status);
        // Without this a cache may store a 404 for a heuristic time (RFC 9111 section 4.2.2).
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

    /// A placeholder, which the middleware replaces by the document.
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
            denial: error.denial,
            ..ProblemExtras::default()
        };
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anyone_can_cause_is_not_in_the_audit_log() {
        let problem = |kind| Problem::new(kind, "no");
        assert!(problem(&problem_kinds::FORBIDDEN).is_refused_action());
        for kind in [&problem_kinds::FORBIDDEN, &problem_kinds::SIGN_IN_REFUSED] {
            let sign_in = problem(kind).with_refusal(CredentialRefusal::Connection);
            assert!(!sign_in.is_refused_action(), "{}", kind.slug);
        }
        for kind in [
            &problem_kinds::FORM_REFUSED,
            &problem_kinds::UNAUTHENTICATED,
        ] {
            assert!(!problem(kind).is_refused_action(), "{}", kind.slug);
        }
    }
}
