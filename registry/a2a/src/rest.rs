//! Calls over HTTP+JSON (1.0 section 11; 0.3 section 11.1.3).

use reqwest::Method;
use serde_json::{Value, json};

use super::CallError;
use super::error::error_code_hint;
use super::jsonrpc::{error_info_reason, jsonrpc_error_message};
use super::operation::{HttpRequestParts, Operation};
use super::reply::HttpReply;
use super::route_selection::AgentRoute;
use super::{protocol_skill, push, v0, v1};

/// The request of an operation, below the interface's address and its tenant.
///
/// The body is sent as `application/json`, as 1.0.0 requires. 1.0.1 prefers `application/a2a+json`, which servers of
/// the earlier release may not know, while every server accepts the former. Subscribing to a task uses GET: the
/// protocol's HTTP rules have that, and the SDKs serve it beside the POST of the specification's table. 0.3 has the
/// same operations below `/v1`, and the a2a-protocol skill has some at other paths.
pub(super) fn build_rest_request(operation: Operation<'_>, route: &AgentRoute) -> HttpRequestParts {
    let is_v1 = route.protocol_binding.is_v1();
    let is_skill = route.protocol_binding.is_protocol_skill();
    let body = |message| match is_v1 {
        true => v1::message_send_params(message, None),
        false => v0::rest_send_body(message),
    };
    let skill_or_standard = |standard: &str, of_skill: &str| {
        let name = if is_skill { of_skill } else { standard };
        vec![name.to_owned()]
    };
    let post_to_task = |id, action| {
        let segments = task_path_segments(id, action);
        (Method::POST, segments, Some(json!({})))
    };
    let (method, segments, body) = match operation {
        Operation::Send(message) => {
            let operation = skill_or_standard("message:send", "messages");
            (Method::POST, operation, Some(body(message)))
        }
        Operation::Stream(message) => {
            let operation = skill_or_standard("message:stream", "messages:stream");
            (Method::POST, operation, Some(body(message)))
        }
        Operation::Get(id) => (Method::GET, task_path_segments(id, ""), None),
        Operation::Cancel(id) => post_to_task(id, ":cancel"),
        Operation::Subscribe(id) if is_skill => post_to_task(id, ":subscribe"),
        Operation::Subscribe(id) => (Method::GET, task_path_segments(id, ":subscribe"), None),
        Operation::List(_) => (Method::GET, vec!["tasks".to_owned()], None),
        Operation::Push(task, call) => {
            push::rest_push_config_request(call, task, route.protocol_binding)
        }
        Operation::ExtendedCard => {
            let standard = if is_v1 { "extendedAgentCard" } else { "card" };
            (Method::GET, skill_or_standard(standard, "agent-card"), None)
        }
    };
    let body = body.map(|body| match is_skill {
        true => protocol_skill::to_protocol_skill_format(operation, body),
        false => body,
    });
    let below = (!is_v1).then_some("v1").into_iter();
    let segments = below.chain(segments.iter().map(String::as_str));
    let segments: Vec<&str> = segments.collect();
    let mut url = route.operation_url(&segments);
    if let Operation::List(query) = operation {
        for (name, value) in query.request_members(route.protocol_binding) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            url.query_pairs_mut().append_pair(name, &value);
        }
    }
    HttpRequestParts {
        method,
        url,
        version: is_v1.then_some(v1::PROTOCOL_VERSION),
        body,
    }
}

fn task_path_segments(id: &str, action: &str) -> Vec<String> {
    vec!["tasks".to_owned(), format!("{id}{action}")]
}

pub(super) fn parse_rest_result(reply: &HttpReply) -> Result<Value, CallError> {
    if reply.status.is_success() {
        return reply.json();
    }
    let document = reply.json().ok();
    // 1.0 section 11.6 wraps a google.rpc.Status in `error`.
    let error = document.as_ref().and_then(|document| document.get("error"));
    let status = i64::from(reply.status.as_u16());
    Err(error.filter(|error| error.is_object()).map_or_else(
        || reply.http_error(),
        |error| parse_rest_error(error, status),
    ))
}

/// The document in one event of a stream, which is sent bare. After the stream has begun, an error is an event too.
pub(super) fn parse_rest_event(document: Value) -> Result<Value, CallError> {
    match document.get("error").filter(|error| error.is_object()) {
        Some(error) => Err(parse_rest_error(error, 500)),
        None => Ok(document),
    }
}

fn parse_rest_error(error: &Value, status: i64) -> CallError {
    let reason = error_info_reason(error.get("details"));
    let hint = match reason.as_deref() {
        Some("VERSION_NOT_SUPPORTED") => error_code_hint(-32009),
        Some("EXTENSION_SUPPORT_REQUIRED") => error_code_hint(-32008),
        Some("CONTENT_TYPE_NOT_SUPPORTED") => error_code_hint(-32005),
        _ => "",
    };
    CallError::Protocol {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(status),
        reason,
        message: jsonrpc_error_message(error),
        hint,
    }
}
