//! One call over JSON-RPC 2.0.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::TalkError;
use super::choice::{Dialect, Route};
use super::error::{hint_for, shorten};
use super::exchange::{Exchange, HttpReply};

/// Calls `method` and returns its `result`. The content type is `application/json` in every version.
///
/// A protocol error is read with any HTTP status, since some servers send one with an error status. The response's
/// `id` is not compared: it belongs to this very request.
pub(super) async fn call(
    exchange: &Exchange,
    route: &Route,
    method: &str,
    params: Value,
) -> Result<Value, TalkError> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let version = (route.dialect == Dialect::V1JsonRpc).then_some(super::v1::VERSION);
    let reply = exchange
        .request(Method::POST, &route.url, version, Some(&body))
        .await?;
    let mut document = match reply.json() {
        Ok(document) => document,
        Err(_) if reply.status != StatusCode::OK => return Err(reply.http_error()),
        Err(error) => return Err(error),
    };
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        return Err(protocol_error(error, &reply));
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

fn protocol_error(error: &Value, reply: &HttpReply) -> TalkError {
    let Some(code) = error.get("code").and_then(Value::as_i64) else {
        return reply.http_error();
    };
    TalkError::Protocol {
        code,
        reason: reason(error.get("data")),
        message: shorten(
            error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("no message"),
        ),
        hint: hint_for(code),
    }
}

/// The reason of the first `google.rpc.ErrorInfo` among an error's details (1.0 section 5.4).
pub(super) fn reason(details: Option<&Value>) -> Option<String> {
    details?
        .as_array()?
        .iter()
        .find_map(|detail| detail.get("reason")?.as_str())
        .map(shorten)
}
