//! Calls over JSON-RPC 2.0.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::CallError;
use super::error::error_code_hint;
use super::foreign_text::shorten_to_line;
use super::operation::HttpRequestParts;
use super::reply::HttpReply;
use super::route_selection::AgentRoute;

/// The `id` of each request. Each request has its own HTTP exchange, so responses need not be told apart.
const REQUEST_ID: u64 = 1;

/// Builds a call of `method`. The content type is `application/json` in every version.
pub(super) fn build_jsonrpc_request(
    route: &AgentRoute,
    version: Option<&'static str>,
    method: &str,
    params: Value,
) -> HttpRequestParts {
    HttpRequestParts {
        method: Method::POST,
        url: route.url.clone(),
        version,
        body: Some(json!({"jsonrpc": "2.0", "id": REQUEST_ID, "method": method, "params": params})),
    }
}

/// The `result` in a response.
///
/// A protocol error is read with any HTTP status, since some servers send one with an error status. The response's
/// `id` is not compared: it belongs to this very request.
pub(super) fn parse_jsonrpc_result(reply: &HttpReply) -> Result<Value, CallError> {
    let mut document = match reply.json() {
        Ok(document) => document,
        Err(_) if reply.status != StatusCode::OK => return Err(reply.http_error()),
        Err(error) => return Err(error),
    };
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        return Err(parse_jsonrpc_error(error).unwrap_or_else(|| reply.http_error()));
    }
    if !reply.status.is_success() {
        return Err(reply.http_error());
    }
    match document.get_mut("result").map(Value::take) {
        Some(result) if !result.is_null() => Ok(result),
        _ => Err(CallError::InvalidResponse {
            beginning: shorten_to_line(&reply.body_prefix()),
        }),
    }
}

/// The `result` in one event of a stream, which is a response of its own (1.0 section 9.4.2). An event with the id of
/// another call is rejected: on a connection that several callers share, it would be another caller's answer.
pub(super) fn parse_jsonrpc_event(mut document: Value) -> Result<Value, CallError> {
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        return Err(
            parse_jsonrpc_error(error).unwrap_or_else(|| CallError::NotAnEvent {
                beginning: shorten_to_line(&document.to_string()),
            }),
        );
    }
    let id = document.get("id").filter(|id| !id.is_null());
    if let Some(id) = id
        && *id != REQUEST_ID
        && id.as_str() != Some("1")
    {
        return Err(CallError::ForeignEvent {
            expected: format!("call {REQUEST_ID}"),
            found: shorten_to_line(&format!("call {id}")),
        });
    }
    match document.get_mut("result").map(Value::take) {
        Some(result) if !result.is_null() => Ok(result),
        _ => Err(CallError::NotAnEvent {
            beginning: shorten_to_line(&document.to_string()),
        }),
    }
}

fn parse_jsonrpc_error(error: &Value) -> Option<CallError> {
    let code = error.get("code").and_then(Value::as_i64)?;
    Some(CallError::Protocol {
        code,
        reason: error_info_reason(error.get("data")),
        message: jsonrpc_error_message(error),
        hint: error_code_hint(code),
    })
}

pub(super) fn jsonrpc_error_message(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    shorten_to_line(message.unwrap_or("no message"))
}

/// The reason of the first `google.rpc.ErrorInfo` among an error's details (1.0 section 5.4).
pub(super) fn error_info_reason(details: Option<&Value>) -> Option<String> {
    details?
        .as_array()?
        .iter()
        .find_map(|detail| detail.get("reason")?.as_str())
        .map(shorten_to_line)
}
