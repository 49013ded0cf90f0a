//! Errors for A2A clients: each kind with its JSON-RPC code, HTTP status and reason (1.0 section 5.4).

use a2a_registry_core::error::{AppError, ErrorKind};
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use super::RPC_PATH;
use crate::answers::response::JSON_CONTENT_TYPE;
use crate::problems::problem::Problem;

const ERROR_DOMAIN: &str = "a2a-protocol.org";
pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// `Cache-Control` of responses that depend on tasks or callers.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum A2aErrorKind {
    NotJson,
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    Internal,
    /// The task does not exist or belongs to another caller.
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    /// The operation is not supported, or not for this task.
    UnsupportedOperation,
    /// A part has an unsupported type, or the client accepts none of the output types.
    ContentTypeNotSupported,
    NoExtendedCard,
    VersionNotSupported,
    /// HTTP errors without an A2A code: authentication, sizes, timeouts, load.
    Http(StatusCode),
}

impl A2aErrorKind {
    /// JSON-RPC code, HTTP status, gRPC status and reason.
    fn codes(self) -> (i32, StatusCode, &'static str, &'static str) {
        const FAILED_PRECONDITION: &str = "FAILED_PRECONDITION";
        const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";
        const NOT_FOUND: &str = "NOT_FOUND";
        let (bad_request, missing) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
        let server_error = StatusCode::INTERNAL_SERVER_ERROR;
        match self {
            Self::NotJson => (-32700, bad_request, INVALID_ARGUMENT, "PARSE_ERROR"),
            Self::InvalidRequest => (-32600, bad_request, INVALID_ARGUMENT, "INVALID_REQUEST"),
            Self::UnknownMethod => (-32601, missing, NOT_FOUND, "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32602, bad_request, INVALID_ARGUMENT, "INVALID_PARAMS"),
            Self::Internal => (-32603, server_error, "INTERNAL", "INTERNAL_ERROR"),
            Self::TaskNotFound => (-32001, missing, NOT_FOUND, "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (
                -32002,
                bad_request,
                FAILED_PRECONDITION,
                "TASK_NOT_CANCELABLE",
            ),
            Self::PushNotSupported => (
                -32003,
                bad_request,
                FAILED_PRECONDITION,
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            Self::UnsupportedOperation => (
                -32004,
                bad_request,
                FAILED_PRECONDITION,
                "UNSUPPORTED_OPERATION",
            ),
            Self::ContentTypeNotSupported => (
                -32005,
                bad_request,
                INVALID_ARGUMENT,
                "CONTENT_TYPE_NOT_SUPPORTED",
            ),
            Self::NoExtendedCard => (
                -32007,
                bad_request,
                FAILED_PRECONDITION,
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            ),
            Self::VersionNotSupported => (
                -32009,
                bad_request,
                FAILED_PRECONDITION,
                "VERSION_NOT_SUPPORTED",
            ),
            Self::Http(status) => codes_for_http_status(status),
        }
    }
}

fn codes_for_http_status(status: StatusCode) -> (i32, StatusCode, &'static str, &'static str) {
    let (code, grpc_status, reason) = match status {
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
    (code, status, grpc_status, reason)
}

#[derive(Debug, Clone)]
pub(crate) struct A2aError {
    pub(super) kind: A2aErrorKind,
    pub(super) message: String,
    retry_after: Option<u32>,
}

impl A2aError {
    pub(super) fn new(kind: A2aErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(A2aErrorKind::InvalidParams, message)
    }

    /// The same error for a task that never existed, that has expired, or that belongs to another caller.
    pub(super) fn task_not_found() -> Self {
        Self::new(A2aErrorKind::TaskNotFound, "Task not found.")
    }

    fn error_info(&self) -> Value {
        let (.., reason) = self.kind.codes();
        json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": ERROR_DOMAIN,
            "metadata": {},
        }])
    }

    pub(super) fn to_json_rpc(&self) -> Value {
        let (code, ..) = self.kind.codes();
        json!({"code": code, "message": self.message, "data": self.error_info()})
    }

    /// The HTTP+JSON error body, as in AIP-193.
    fn rest_body(&self) -> Value {
        let (_, status, word, _) = self.kind.codes();
        json!({"error": {
            "code": status.as_u16(),
            "status": word,
            "message": self.message,
            "details": self.error_info(),
        }})
    }

    fn rpc_body(&self, id: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": self.to_json_rpc()})
    }

    /// The JSON-RPC error response: status 200, unless the error has an HTTP status of its own.
    pub(super) fn rpc_response(&self, id: &Value) -> HttpResponse {
        let status = match self.kind {
            A2aErrorKind::Http(status) => status,
            _ => StatusCode::OK,
        };
        self.build_response(status, JSON_CONTENT_TYPE, self.rpc_body(id).to_string())
    }

    /// The JSON-RPC error response as the only event of a stream.
    pub(super) fn rpc_stream_response(&self, id: &Value) -> HttpResponse {
        if matches!(self.kind, A2aErrorKind::Http(_)) {
            return self.rpc_response(id);
        }
        let body = format!("data: {}\n\n", self.rpc_body(id));
        self.build_response(StatusCode::OK, EVENT_STREAM, body)
    }

    pub(super) fn rest_response(&self) -> HttpResponse {
        let (_, status, ..) = self.kind.codes();
        self.build_response(status, JSON_CONTENT_TYPE, self.rest_body().to_string())
    }

    fn build_response(
        &self,
        status: StatusCode,
        content_type: HeaderValue,
        body: String,
    ) -> HttpResponse {
        let mut response = uncached_response(status, content_type, body);
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

pub(super) fn uncached_response(
    status: StatusCode,
    content_type: HeaderValue,
    body: String,
) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header((header::CONTENT_TYPE, content_type))
        .insert_header((header::CACHE_CONTROL, NO_STORE))
        .body(body)
}

impl From<AppError> for A2aError {
    fn from(error: AppError) -> Self {
        if error.kind == ErrorKind::Internal {
            tracing::error!(internal = error.log_message(), "an A2A request failed");
        }
        let kind = match error.kind {
            ErrorKind::Internal => A2aErrorKind::Internal,
            ErrorKind::Invalid | ErrorKind::NotFound => A2aErrorKind::InvalidParams,
            _ => A2aErrorKind::Http(Problem::from(error.clone()).kind().status),
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

/// Error response for a failure outside of the A2A handlers, in the format of the interface that the path belongs to.
pub fn a2a_problem_response(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    let error = A2aError::new(
        A2aErrorKind::Http(problem.kind().status),
        problem.to_string(),
    );
    let body = match request.path().trim_end_matches('/') {
        RPC_PATH => error.rpc_body(&Value::Null),
        _ => error.rest_body(),
    };
    let mut response = problem.response_builder();
    response.insert_header((header::CONTENT_TYPE, JSON_CONTENT_TYPE));
    response.body(body.to_string())
}
