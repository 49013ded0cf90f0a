//! Errors of the sample agents (1.0 section 5.4, which 0.2 and 0.3 share as far as they have the code).

use actix_web::http::StatusCode;
use serde_json::{Value, json};

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The JSON-RPC code.
    pub code: i64,
    /// The reason of 1.0's `google.rpc.ErrorInfo`.
    pub reason: &'static str,
    /// Description for people.
    pub message: String,
}

impl Fault {
    fn new(code: i64, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
        }
    }

    /// The body is not JSON.
    pub fn not_json(detail: impl std::fmt::Display) -> Self {
        Self::new(
            -32700,
            "PARSE_ERROR",
            format!("the body is not JSON: {detail}"),
        )
    }

    /// The body is not a JSON-RPC request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, "INVALID_REQUEST", message)
    }

    /// The agent has no such method.
    pub fn unknown_method(name: &str) -> Self {
        let name: String = name.chars().take(80).collect();
        Self::new(
            -32601,
            "METHOD_NOT_FOUND",
            format!("there is no method {name}"),
        )
    }

    /// The parameters are not those of the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, "INVALID_PARAMS", message)
    }

    /// The task does not exist, or no longer.
    pub fn task_not_found() -> Self {
        Self::new(
            -32001,
            "TASK_NOT_FOUND",
            "the task does not exist, or no longer",
        )
    }

    /// The task is already completed.
    pub fn task_not_cancelable() -> Self {
        Self::new(
            -32002,
            "TASK_NOT_CANCELABLE",
            "the task is completed and cannot be canceled",
        )
    }

    /// The agent does not send push notifications.
    pub fn push_not_supported() -> Self {
        Self::new(
            -32003,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
            "this agent does not send push notifications",
        )
    }

    /// The operation exists in the protocol, but this agent does not offer it.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(-32004, "UNSUPPORTED_OPERATION", message)
    }

    /// The message has no text.
    pub fn only_text() -> Self {
        Self::new(
            -32005,
            "CONTENT_TYPE_NOT_SUPPORTED",
            "this agent reads text parts only",
        )
    }

    /// The call is for another protocol version than this agent's.
    pub fn version(asked: &str) -> Self {
        let asked: String = asked.chars().take(20).collect();
        let asked = if asked.is_empty() {
            "no A2A-Version".to_owned()
        } else {
            format!("A2A-Version {asked}")
        };
        Self::new(
            -32009,
            "VERSION_NOT_SUPPORTED",
            format!("the call names {asked}; this agent speaks 1.0"),
        )
    }

    /// The error object of 0.2 and 0.3.
    pub fn v0(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }

    /// The error object of 1.0 over JSON-RPC, with its details.
    pub fn v1(&self) -> Value {
        json!({"code": self.code, "message": self.message, "data": self.details()})
    }

    /// The error body of 1.0 over HTTP+JSON, and its status.
    pub fn rest(&self) -> (StatusCode, Value) {
        let (status, name) = match self.code {
            -32001 => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            -32601 => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            -32700 | -32600 | -32602 | -32005 => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
            _ => (StatusCode::BAD_REQUEST, "FAILED_PRECONDITION"),
        };
        let body = json!({"error": {
            "code": status.as_u16(),
            "status": name,
            "message": self.message,
            "details": self.details(),
        }});
        (status, body)
    }

    fn details(&self) -> Value {
        json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.reason,
            "domain": "a2a-protocol.org",
        }])
    }
}
