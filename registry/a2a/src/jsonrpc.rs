//! Calls over JSON-RPC 2.0.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::TalkError;
use super::choice::Route;
use super::error::{hint_for, shorten};
use super::operation::HttpCall;
use super::reply::HttpReply;

/// The `id` of each request. A request has an HTTP exchange of its own, so nothing else tells responses apart.
const ID: u64 = 1;

/// A call of `method`. The content type is `application/json` in every version.
pub(super) fn call(
    route: &Route,
    version: Option<&'static str>,
    method: &str,
    params: Value,
) -> HttpCall {
    HttpCall {
        method: Method::POST,
        url: route.url.clone(),
        version,
        body: Some(json!({"jsonrpc": "2.0", "id": ID, "method": method, "params": params})),
    }
}

/// The `result` in a response.
///
/// A protocol error is read with any HTTP status, since some servers send one with an error status. The response's
/// `id` is not compared: it belongs to this very request.
pub(super) fn result(reply: &HttpReply) -> Result<Value, TalkError> {
    let mut document = match reply.json() {
        Ok(document) => document,
        Err(_) if reply.status != StatusCode::OK => return Err(reply.http_error()),
        Err(error) => return Err(error),
    };
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        return Err(protocol_error(error).unwrap_or_else(|| reply.http_error()));
    }
    if !reply.status.is_success() {
        return Err(reply.http_error());
    }
    match document.get_mut("result").map(Value::take) {
        Some(result) if !result.is_null() => Ok(result),
        _ => Err(TalkError::NotAnAnswer {
            beginning: shorten(&reply.beginning()),
        }),
    }
}

/// The `result` in one event of a stream, which is a response of its own (1.0 section 9.4.2). An event with the id of
/// another call is refused: on a connection that several callers share, it would be another caller's answer.
pub(super) fn event(mut document: Value) -> Result<Value, TalkError> {
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        return Err(
            protocol_error(error).unwrap_or_else(|| TalkError::NotAnEvent {
                beginning: shorten(&document.to_string()),
            }),
        );
    }
    let id = document.get("id").filter(|id| !id.is_null());
    if let Some(id) = id
        && *id != ID
        && id.as_str() != Some("1")
    {
        return Err(TalkError::ForeignEvent {
            expected: format!("call {ID}"),
            found: shorten(&format!("call {id}")),
        });
    }
    match document.get_mut("result").map(Value::take) {
        Some(result) if !result.is_null() => Ok(result),
        _ => Err(TalkError::NotAnEvent {
            beginning: shorten(&document.to_string()),
        }),
    }
}

fn protocol_error(error: &Value) -> Option<TalkError> {
    let code = error.get("code").and_then(Value::as_i64)?;
    Some(TalkError::Protocol {
        code,
        reason: reason(error.get("data")),
        message: said(error),
        hint: hint_for(code),
    })
}

pub(super) fn said(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    shorten(message.unwrap_or("no message"))
}

/// The reason of the first `google.rpc.ErrorInfo` among an error's details (1.0 section 5.4).
pub(super) fn reason(details: Option<&Value>) -> Option<String> {
    details?
        .as_array()?
        .iter()
        .find_map(|detail| detail.get("reason")?.as_str())
        .map(shorten)
}
