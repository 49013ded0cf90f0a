//! Errors to clients of A2A: each kind with its code of JSON-RPC, its HTTP status and its reason (1.0 section 5.4).

use a2a_registry_core::error::{AppError, ErrorKind};
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use super::RPC;
use crate::answers::answer::JSON;
use crate::problems::problem::Problem;

const DOMAIN: &str = "a2a-protocol.org";
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// `Cache-Control` of everything that depends on tasks or callers.
pub(super) const NOT_STORED: HeaderValue = HeaderValue::from_static("no-store");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    NotJson,
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    Internal,
    /// There is no such task, or it is another caller's.
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    /// The operation does not exist here, or not for this task.
    Unsupported,
    /// A part has a form that is not read, or no form is accepted that is written.
    ContentType,
    NoExtendedCard,
    Version,
    /// Of HTTP alone: authentication, sizes, times, load.
    Transport(StatusCode),
}

impl FaultKind {
    /// Code of JSON-RPC, HTTP status, status of gRPC, reason.
    fn facts(self) -> (i32, StatusCode, &'static str, &'static str) {
        const FAILED: &str = "FAILED_PRECONDITION";
        const INVALID: &str = "INVALID_ARGUMENT";
        const MISSING: &str = "NOT_FOUND";
        let (bad, missing) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
        let failed = StatusCode::INTERNAL_SERVER_ERROR;
        match self {
            Self::NotJson => (-32700, bad, INVALID, "PARSE_ERROR"),
            Self::InvalidRequest => (-32600, bad, INVALID, "INVALID_REQUEST"),
            Self::UnknownMethod => (-32601, missing, MISSING, "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32602, bad, INVALID, "INVALID_PARAMS"),
            Self::Internal => (-32603, failed, "INTERNAL", "INTERNAL_ERROR"),
            Self::TaskNotFound => (-32001, missing, MISSING, "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, bad, FAILED, "TASK_NOT_CANCELABLE"),
            Self::PushNotSupported => (-32003, bad, FAILED, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::Unsupported => (-32004, bad, FAILED, "UNSUPPORTED_OPERATION"),
            Self::ContentType => (-32005, bad, INVALID, "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::NoExtendedCard => (-32007, bad, FAILED, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            Self::Version => (-32009, bad, FAILED, "VERSION_NOT_SUPPORTED"),
            Self::Transport(status) => transport(status),
        }
    }
}

fn transport(status: StatusCode) -> (i32, StatusCode, &'static str, &'static str) {
    let (code, word, reason) = match status {
        StatusCode::UNAUTHORIZED => (-32000, "UNAUTHENTICATED", "UNAUTHENTICATED"),
        StatusCode::FORBIDDEN => (-32000, "PERMISSION_DENIED", "PERMISSION_DENIED"),
        StatusCode::NOT_FOUND => (-32601, "NOT_FOUND", "METHOD_NOT_FOUND"),
        StatusCode::METHOD_NOT_ALLOWED => (-32600, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"),
        StatusCode::TOO_MANY_REQUESTS => (-32000, "RESOURCE_EXHAUSTED", "RATE_LIMITED"),
        StatusCode::SERVICE_UNAVAILABLE => (-32603, "UNAVAILABLE", "UNAVAILABLE"),
        StatusCode::PAYLOAD_TOO_LARGE => (-32600, "INVALID_ARGUMENT", "TOO_LARGE"),
        StatusCode::REQUEST_TIMEOUT => (-32600, "DEADLINE_EXCEEDED", "REQUEST_TIMEOUT"),
        status if status.is_client_error() => (-32600, "INVALID_ARGUMENT", "INVALID_REQUEST"),
        _ => (-32603, "INTERNAL", "INTERNAL_ERROR"),
    };
    (code, status, word, reason)
}

#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) message: String,
    retry_after: Option<u32>,
}

impl Fault {
    pub(super) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidParams, message)
    }

    /// The same for a task that never was, that has expired, and that is another caller's.
    pub(super) fn no_task() -> Self {
        Self::new(FaultKind::TaskNotFound, "You have no task with this id.")
    }

    fn details(&self) -> Value {
        let (.., reason) = self.kind.facts();
        json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": DOMAIN,
            "metadata": {},
        }])
    }

    pub(super) fn error(&self) -> Value {
        let (code, ..) = self.kind.facts();
        json!({"code": code, "message": self.message, "data": self.details()})
    }

    /// The body of HTTP+JSON, after AIP-193.
    fn status_body(&self) -> Value {
        let (_, status, word, _) = self.kind.facts();
        json!({"error": {
            "code": status.as_u16(),
            "status": word,
            "message": self.message,
            "details": self.details(),
        }})
    }

    fn rpc_body(&self, id: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": self.error()})
    }

    /// The response of JSON-RPC: 200, but where HTTP itself has a status for it.
    pub(super) fn rpc(&self, id: &Value) -> HttpResponse {
        let status = match self.kind {
            FaultKind::Transport(status) => status,
            _ => StatusCode::OK,
        };
        self.response(status, JSON, self.rpc_body(id).to_string())
    }

    /// The same as the only event of a stream.
    pub(super) fn rpc_stream(&self, id: &Value) -> HttpResponse {
        if matches!(self.kind, FaultKind::Transport(_)) {
            return self.rpc(id);
        }
        let body = format!("data: {}\n\n", self.rpc_body(id));
        self.response(StatusCode::OK, EVENTS, body)
    }

    pub(super) fn rest(&self) -> HttpResponse {
        let (_, status, ..) = self.kind.facts();
        self.response(status, JSON, self.status_body().to_string())
    }

    fn response(&self, status: StatusCode, kind: HeaderValue, body: String) -> HttpResponse {
        let mut response = response(status, kind, body);
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

pub(super) fn response(status: StatusCode, kind: HeaderValue, body: String) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header((header::CONTENT_TYPE, kind))
        .insert_header((header::CACHE_CONTROL, NOT_STORED))
        .body(body)
}

impl From<AppError> for Fault {
    fn from(error: AppError) -> Self {
        if error.kind == ErrorKind::Internal {
            tracing::error!(internal = error.for_log(), "a request of A2A failed");
        }
        let kind = match error.kind {
            ErrorKind::Internal => FaultKind::Internal,
            ErrorKind::Invalid | ErrorKind::NotFound => FaultKind::InvalidParams,
            _ => FaultKind::Transport(Problem::from(error.clone()).kind().status),
        };
        let mut message = error.public;
        if let [(pointer, detail)] = error.members.as_slice()
            && *detail == message
            && !pointer.is_empty()
        {
            message = format!("{}: {detail}", pointer.trim_start_matches('/'));
        }
        Self {
            kind,
            message,
            retry_after: error.retry_after,
        }
    }
}

/// A failure before or beside a handler of A2A, in the form of the interface that its path belongs to.
pub fn failure(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    let fault = Fault::new(
        FaultKind::Transport(problem.kind().status),
        problem.to_string(),
    );
    let body = match request.path().trim_end_matches('/') {
        RPC => fault.rpc_body(&Value::Null),
        _ => fault.status_body(),
    };
    let mut response = problem.headed();
    response.insert_header((header::CONTENT_TYPE, JSON));
    response.body(body.to_string())
}
