//! Errors of the sample agents (1.0 section 5.4; 0.2 and 0.3 share the codes that they have).

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use super::generation::ProtocolGeneration;

/// JSON-RPC error code, and reason in 1.0's `google.rpc.ErrorInfo`.
type RpcErrorKind = (i64, &'static str);

pub(super) const PARSE_ERROR: RpcErrorKind = (-32700, "PARSE_ERROR");
pub(super) const INVALID_REQUEST: RpcErrorKind = (-32600, "INVALID_REQUEST");
pub(super) const METHOD_NOT_FOUND: RpcErrorKind = (-32601, "METHOD_NOT_FOUND");
pub(super) const INVALID_PARAMS: RpcErrorKind = (-32602, "INVALID_PARAMS");
pub(super) const TASK_NOT_FOUND: RpcErrorKind = (-32001, "TASK_NOT_FOUND");
pub(super) const TASK_NOT_CANCELABLE: RpcErrorKind = (-32002, "TASK_NOT_CANCELABLE");
pub(super) const PUSH_NOT_SUPPORTED: RpcErrorKind = (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED");
pub(super) const UNSUPPORTED_OPERATION: RpcErrorKind = (-32004, "UNSUPPORTED_OPERATION");
pub(super) const CONTENT_TYPE_NOT_SUPPORTED: RpcErrorKind = (-32005, "CONTENT_TYPE_NOT_SUPPORTED");
pub(super) const VERSION_NOT_SUPPORTED: RpcErrorKind = (-32009, "VERSION_NOT_SUPPORTED");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RpcError {
    pub kind: RpcErrorKind,
    message: String,
}

impl RpcError {
    pub fn new(kind: RpcErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub fn invalid_json(error: &serde_json::Error) -> Self {
        Self::new(PARSE_ERROR, format!("the body is not JSON: {error}"))
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub fn method_not_found(name: &str) -> Self {
        let name: String = name.chars().take(80).collect();
        Self::new(
            METHOD_NOT_FOUND,
            format!("the method {name} does not exist"),
        )
    }

    /// Error object for JSON-RPC, with details in 1.0.
    pub fn to_json_rpc(&self, generation: ProtocolGeneration) -> Value {
        let mut error = json!({"code": self.kind.0, "message": self.message});
        if generation == ProtocolGeneration::V1 {
            error["data"] = self.error_details();
        }
        error
    }

    /// Status and error body for 1.0 over HTTP+JSON.
    pub fn to_http_json(&self) -> (StatusCode, Value) {
        let (status, name) = match self.kind {
            TASK_NOT_FOUND | METHOD_NOT_FOUND => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | CONTENT_TYPE_NOT_SUPPORTED => {
                (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT")
            }
            _ => (StatusCode::BAD_REQUEST, "FAILED_PRECONDITION"),
        };
        let body = json!({"error": {
            "code": status.as_u16(),
            "status": name,
            "message": self.message,
            "details": self.error_details(),
        }});
        (status, body)
    }

    fn error_details(&self) -> Value {
        json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.1,
            "domain": "a2a-protocol.org",
        }])
    }
}
