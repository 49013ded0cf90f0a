//! Calls over HTTP+JSON (1.0 section 11).

use reqwest::Method;
use serde_json::Value;

use super::choice::Route;
use super::error::{hint_for, shorten};
use super::exchange::{Exchange, HttpReply};
use super::jsonrpc::reason;
use super::{TalkError, v1};

/// Sends a message: `POST /message:send`, or `POST /{tenant}/message:send`.
///
/// The body is sent as `application/json`, as 1.0.0 requires. 1.0.1 prefers `application/a2a+json`, which servers of
/// the earlier release may not know, while every server accepts the former.
pub(super) async fn send(
    exchange: &Exchange,
    route: &Route,
    text: &str,
    message_id: &str,
) -> Result<Value, TalkError> {
    let url = route.below(&["message:send"]);
    let body = v1::send_params(text, message_id, None);
    read(
        exchange
            .request(Method::POST, &url, Some(v1::VERSION), Some(&body))
            .await?,
    )
}

/// Gets a task: `GET /tasks/{id}`.
pub(super) async fn get_task(
    exchange: &Exchange,
    route: &Route,
    id: &str,
) -> Result<Value, TalkError> {
    let url = route.below(&["tasks", id]);
    read(
        exchange
            .request(Method::GET, &url, Some(v1::VERSION), None)
            .await?,
    )
}

fn read(reply: HttpReply) -> Result<Value, TalkError> {
    if reply.status.is_success() {
        return reply.json();
    }
    let Ok(document) = reply.json() else {
        return Err(reply.http_error());
    };
    // 1.0 section 11.6 wraps a google.rpc.Status in `error`.
    let Some(error) = document.get("error").filter(|error| error.is_object()) else {
        return Err(reply.http_error());
    };
    let reason = reason(error.get("details"));
    let hint = match reason.as_deref() {
        Some("VERSION_NOT_SUPPORTED") => hint_for(-32009),
        Some("EXTENSION_SUPPORT_REQUIRED") => hint_for(-32008),
        Some("CONTENT_TYPE_NOT_SUPPORTED") => hint_for(-32005),
        _ => "",
    };
    Err(TalkError::Protocol {
        code: error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or(i64::from(reply.status.as_u16())),
        reason,
        message: shorten(
            error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("no message"),
        ),
        hint,
    })
}
