//! Classifies the response to a request for a task that does not exist.

use crate::fetch::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use serde_json::Value;

use super::EndpointVerdict::{Answers, DoesNotAnswer, NeedsCredentials, NotA2a, Unclear};
use super::{ABSENT_TASK_ID, EndpointForm, EndpointVerdict};
use crate::foreign_text::{MAX_DETAIL, sanitize_text};

/// The scheme of servers that want a TLS client certificate, as cards name it.
pub(super) const CLIENT_CERTIFICATE_SCHEME: &str = "mutualTLS";

/// Maximum length in characters of a scheme that a server names.
const MAX_SCHEME_CHARS: usize = 40;

/// Domain of the reasons of A2A errors (1.0 section 5.4), which is also in the types of its problem documents.
const A2A_DOMAIN: &str = "a2a-protocol.org";

/// Reason of the A2A error for a task that does not exist (1.0 section 5.4).
const TASK_NOT_FOUND: &str = "TASK_NOT_FOUND";

const ANSWERS_WITH_TASK: &str = "The agent answers with a task.";

/// The verdict on a response, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Classification {
    pub(super) verdict: EndpointVerdict,
    /// One sentence on it.
    pub(super) reason: String,
    /// Authentication scheme that the server named.
    pub(super) auth_scheme: Option<String>,
}

/// Classifies a response. `headers` include the trailers of a gRPC response.
pub(super) fn classify_response(
    form: EndpointForm,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> Classification {
    let (verdict, reason) = judge_response(form, status, headers, body);
    let auth_scheme = match verdict {
        NeedsCredentials if wants_client_certificate(status, body) => {
            Some(CLIENT_CERTIFICATE_SCHEME.to_owned())
        }
        NeedsCredentials => named_scheme(headers),
        _ => None,
    };
    Classification {
        verdict,
        reason: sanitize_text(&reason, MAX_DETAIL),
        auth_scheme,
    }
}

fn judge_response(
    form: EndpointForm,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> (EndpointVerdict, String) {
    if matches!(status, 401 | 403) {
        let reason = format!("The server requires credentials (status {status}).");
        return (NeedsCredentials, reason);
    }
    if wants_client_certificate(status, body) {
        return (
            NeedsCredentials,
            "The server requires a client certificate.".into(),
        );
    }
    if form.is_grpc() {
        return judge_grpc(status, headers);
    }
    let document: Option<Value> = serde_json::from_slice(body).ok();
    if has_mcp_signs(headers, document.as_ref()) {
        return (
            NotA2a,
            "The server speaks the Model Context Protocol.".into(),
        );
    }
    let by_document = document
        .as_ref()
        .and_then(|document| match form.is_json_rpc() {
            true => judge_json_rpc(document),
            false => judge_http_json(status, document),
        });
    by_document.unwrap_or_else(|| judge_status(form, status, headers, body))
}

/// Whether a proxy in front of the agent says so.
fn wants_client_certificate(status: u16, body: &[u8]) -> bool {
    let text = b"SSL certificate";
    let mut windows = body.windows(text.len());
    matches!(status, 400 | 495 | 496) && windows.any(|window| window == text)
}

/// Judges a JSON-RPC response; `None` for any other document.
fn judge_json_rpc(document: &Value) -> Option<(EndpointVerdict, String)> {
    if text_member(document, "jsonrpc") != Some("2.0") {
        return None;
    }
    if document.get("result").is_some_and(is_task) {
        return Some((Answers, ANSWERS_WITH_TASK.into()));
    }
    let Some(error) = document.get("error").filter(|error| error.is_object()) else {
        let reason = "The server speaks JSON-RPC, but its result is not a task.";
        return Some((NotA2a, reason.into()));
    };
    let code = error.get("code").and_then(Value::as_i64);
    let code_text = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    let message = error_text(error);
    // The JavaScript SDK of 0.3 reports a missing task as an internal error; who names the task has read the method.
    let names_task = message.contains(ABSENT_TASK_ID);
    Some(
        match code.is_some_and(is_a2a_error_code) || has_a2a_details(error) || names_task {
            true => (
                Answers,
                format!("The agent answers with an A2A error: {message} ({code_text})."),
            ),
            false => (
                Unclear,
                format!(
                    "The server speaks JSON-RPC, but its error is not an A2A error: {message} ({code_text})."
                ),
            ),
        },
    )
}

/// Judges a JSON document over HTTP+JSON; `None` if the status decides.
fn judge_http_json(status: u16, document: &Value) -> Option<(EndpointVerdict, String)> {
    if (200..300).contains(&status) {
        return Some(match is_task(document) {
            true => (Answers, ANSWERS_WITH_TASK.into()),
            false => (
                NotA2a,
                "The server answers with a document that is not a task.".into(),
            ),
        });
    }
    let error = document.get("error").filter(|error| error.is_object());
    let error = error.unwrap_or(document);
    let code = error.get("code").and_then(Value::as_i64);
    let is_a2a = code.is_some_and(is_a2a_error_code)
        || has_a2a_details(error)
        // The JavaScript SDK of 0.3 reports a missing task as an internal error.
        || ((status == 404 || code == Some(-32603)) && names_missing_task(error));
    let text = error_text(error);
    let reason = format!("The agent answers with an A2A error: {text} (status {status}).");
    is_a2a.then_some((Answers, reason))
}

/// Judges a response without a document that decides.
fn judge_status(
    form: EndpointForm,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> (EndpointVerdict, String) {
    match status {
        200..300 if is_html(headers, body) => {
            (NotA2a, "The server answers with a web page.".into())
        }
        200..300 => {
            let binding = form.binding();
            let reason = format!("The server answers, but not in the form of A2A over {binding}.");
            (NotA2a, reason)
        }
        300..400 => {
            let what = format!("a redirect (status {status}), which is not followed");
            (Unclear, format!("The server answers with {what}."))
        }
        // Of a proxy whose server does not respond.
        502..=504 | 520..=530 => {
            let reason = format!(
                "A proxy answers that it got no response from the agent (status {status})."
            );
            (DoesNotAnswer, reason)
        }
        _ => {
            let what = format!("status {status} and without an A2A error");
            (Unclear, format!("The server answers with {what}."))
        }
    }
}

/// Judges a gRPC response by its status (1.0 section 10.4).
fn judge_grpc(status: u16, headers: &HeaderMap) -> (EndpointVerdict, String) {
    let is_grpc = header_text(headers, CONTENT_TYPE.as_str())
        .is_some_and(|media_type| media_type.starts_with("application/grpc"));
    if !is_grpc {
        return match status {
            415 => (NotA2a, "The server does not speak gRPC.".into()),
            _ => judge_status(EndpointForm::GrpcV1, status, headers, b""),
        };
    }
    let code: Option<u32> = header_text(headers, "grpc-status").and_then(|code| code.parse().ok());
    let message = header_text(headers, "grpc-message").unwrap_or_default();
    let (verdict, what) = match code {
        Some(0) => return (Answers, ANSWERS_WITH_TASK.into()),
        Some(12) => {
            let reason = "The server speaks gRPC, but does not have the A2A service.";
            return (NotA2a, reason.into());
        }
        None => return (Unclear, "The gRPC response has no status.".into()),
        Some(5) => (Answers, "The agent answers NOT_FOUND"),
        // The service knows the method: a server without it answers UNIMPLEMENTED.
        Some(3 | 9) => (Answers, "The agent answers with an error for this request"),
        Some(7) => (NeedsCredentials, "The server answers PERMISSION_DENIED"),
        Some(16) => (NeedsCredentials, "The server answers UNAUTHENTICATED"),
        Some(4) => (DoesNotAnswer, "The server answers DEADLINE_EXCEEDED"),
        Some(14) => (DoesNotAnswer, "The server answers UNAVAILABLE"),
        // The JavaScript SDK of 0.3 reports a missing task as INTERNAL; who names the task has read the method.
        Some(13) if message.contains(ABSENT_TASK_ID) => (Answers, "The agent answers INTERNAL"),
        Some(code) => {
            let reason = format!("The server answers with gRPC status {code}: {message}");
            return (Unclear, reason);
        }
    };
    (verdict, format!("{what}: {message}"))
}

/// Whether a value is a task in the form of any version: alone, or as the member of a response.
fn is_task(value: &Value) -> bool {
    let value = value.get("task").unwrap_or(value);
    value.get("id").is_some_and(Value::is_string)
        && value.get("status").is_some_and(Value::is_object)
}

/// The codes of A2A's own errors, in all versions.
const fn is_a2a_error_code(code: i64) -> bool {
    matches!(code, -32_009..=-32_001)
}

/// Whether an error is marked as one of A2A: by a detail in its domain, by the type of a problem document, or by the
/// reason for a task that does not exist.
fn has_a2a_details(error: &Value) -> bool {
    let details = ["details", "data"].map(|name| error.get(name).and_then(Value::as_array));
    let has_a2a_detail = details.into_iter().flatten().flatten().any(|detail| {
        text_member(detail, "domain").is_some_and(|domain| domain == A2A_DOMAIN)
            || text_member(detail, "reason").is_some_and(|reason| reason == TASK_NOT_FOUND)
    });
    let type_url = text_member(error, "type").unwrap_or_default();
    has_a2a_detail || type_url.contains(A2A_DOMAIN) || type_url == "TaskNotFoundError"
}

/// Whether an error says that a task is missing, as those of 0.3 do, which have no other mark. A framework that
/// repeats the path of the request, which has the word too, says nothing about tasks.
fn names_missing_task(error: &Value) -> bool {
    let texts = ["message", "detail", "title", "error"].map(|name| text_member(error, name));
    texts.into_iter().flatten().any(|text| {
        let text = text.to_ascii_lowercase();
        text.contains("task") && !text.contains("tasks/")
    })
}

/// Whether a server of the Model Context Protocol responds. Its error codes overlap with those of A2A, so this is
/// decided first.
fn has_mcp_signs(headers: &HeaderMap, document: Option<&Value>) -> bool {
    if headers.contains_key("mcp-session-id") || headers.contains_key("mcp-protocol-version") {
        return true;
    }
    let error = document.and_then(|document| document.get("error"));
    let message = error
        .map(error_text)
        .unwrap_or_default()
        .to_ascii_lowercase();
    [
        "mcp",
        "session id",
        "session not found",
        "text/event-stream",
        "not initialized",
    ]
    .iter()
    .any(|sign| message.contains(sign))
}

fn is_html(headers: &HeaderMap, body: &[u8]) -> bool {
    header_text(headers, CONTENT_TYPE.as_str())
        .is_some_and(|media_type| media_type.contains("html"))
        || body.trim_ascii_start().starts_with(b"<")
}

/// The message of an error, or an error that is only a text.
fn error_text(error: &Value) -> &str {
    let members = ["message", "detail", "title"].map(|name| text_member(error, name));
    let message = members.into_iter().flatten().next();
    message.or(error.as_str()).unwrap_or("no message")
}

fn text_member<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The first scheme of `WWW-Authenticate` (RFC 9110 section 11.6.1).
fn named_scheme(headers: &HeaderMap) -> Option<String> {
    let challenge = header_text(headers, WWW_AUTHENTICATE.as_str())?;
    let scheme = challenge.split([' ', ',']).next()?;
    let scheme = sanitize_text(scheme, MAX_SCHEME_CHARS);
    Some(scheme).filter(|scheme| !scheme.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use reqwest::header::{HeaderName, HeaderValue};

    use super::EndpointForm::{GrpcV1, HttpJsonV0, HttpJsonV1, JsonRpcV0, JsonRpcV1};
    use super::*;

    fn headers(lines: &str) -> HeaderMap {
        lines
            .lines()
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap();
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    #[test]
    fn json_rpc_is_judged_by_its_error() {
        let error = |code: i64, message: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{message}"}}}}"#)
        };
        let marked = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x","data":[
            {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"OTHER","domain":"a2a-protocol.org"}]}}"#;
        for (status, head, body, expected) in [
            (200, "", error(-32001, "Task not found"), Answers),
            (404, "", error(-32001, "Task not found"), Answers),
            (200, "", error(-32009, "Version not supported"), Answers),
            (200, "", marked.to_owned(), Answers),
            (
                200,
                "",
                r#"{"jsonrpc":"2.0","id":1,"result":{"id":"x","status":{"state":"completed"}}}"#
                    .to_owned(),
                Answers,
            ),
            (
                200,
                "",
                r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#.to_owned(),
                NotA2a,
            ),
            (200, "", error(-32601, "Method not found"), Unclear),
            (200, "", error(-32602, "Invalid params"), Unclear),
            (500, "", error(-32603, "Internal error"), Unclear),
            (
                200,
                "",
                error(-32603, &format!("Task not found: {ABSENT_TASK_ID}")),
                Answers,
            ),
            (
                400,
                "",
                error(-32000, "Bad Request: No valid session ID provided"),
                NotA2a,
            ),
            (404, "", error(-32001, "Session not found"), NotA2a),
            (
                406,
                "",
                error(
                    -32000,
                    "Not Acceptable: Client must accept text/event-stream",
                ),
                NotA2a,
            ),
            (200, "mcp-session-id: 7", error(-32001, "anything"), NotA2a),
            (200, "content-type: text/html", "<html>".to_owned(), NotA2a),
            (200, "", r#"{"ok":true}"#.to_owned(), NotA2a),
            (
                200,
                "content-type: text/event-stream",
                "data: {}\n\n".to_owned(),
                NotA2a,
            ),
            (200, "", String::new(), NotA2a),
            (404, "", String::new(), Unclear),
            (404, "content-type: text/html", "<html>".to_owned(), Unclear),
            (
                405,
                "",
                r#"{"detail":"Method Not Allowed"}"#.to_owned(),
                Unclear,
            ),
            (302, "location: /login", String::new(), Unclear),
            (429, "", String::new(), Unclear),
            (500, "", "oops".to_owned(), Unclear),
            (502, "", "<html>Bad gateway".to_owned(), DoesNotAnswer),
            (503, "", String::new(), DoesNotAnswer),
            (401, "", error(-32001, "Task not found"), NeedsCredentials),
            (403, "", String::new(), NeedsCredentials),
            (
                400,
                "",
                "<html>400 No required SSL certificate was sent".to_owned(),
                NeedsCredentials,
            ),
        ] {
            for form in [JsonRpcV0, JsonRpcV1] {
                let found = classify_response(form, status, &headers(head), body.as_bytes());
                assert_eq!(
                    found.verdict, expected,
                    "{status} {head} {body}: {}",
                    found.reason
                );
            }
        }
    }

    #[test]
    fn http_json_is_judged_by_its_document() {
        let v1 = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":[
            {"reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]}}"#;
        let problem = r#"{"type":"https://a2a-protocol.org/errors/task-not-found","status":404,"detail":"x"}"#;
        for (status, head, body, expected) in [
            (404, "", v1, Answers),
            (404, "", problem, Answers),
            (404, "", r#"{"message":"Task not found"}"#, Answers),
            (404, "", r#"{"code":-32001,"message":"gone"}"#, Answers),
            (
                200,
                "",
                r#"{"id":"x","status":{"state":"completed"}}"#,
                Answers,
            ),
            (404, "", r#"{"detail":"Not Found"}"#, Unclear),
            (404, "", r#"{"message":"Cannot GET /v1/tasks/0"}"#, Unclear),
            (
                404,
                "",
                r#"{"error":"Not Found","path":"/tasks/0"}"#,
                Unclear,
            ),
            (404, "", "", Unclear),
            (405, "", "", Unclear),
            (400, "", r#"{"message":"Task id is malformed"}"#, Unclear),
            (200, "content-type: text/html", "<!doctype html>", NotA2a),
            (200, "", r#"{"hello":"world"}"#, NotA2a),
            (301, "location: https://b.example/", "", Unclear),
            (504, "", "", DoesNotAnswer),
            (
                401,
                "www-authenticate: Bearer realm=\"a\"",
                v1,
                NeedsCredentials,
            ),
        ] {
            for form in [HttpJsonV0, HttpJsonV1] {
                let found = classify_response(form, status, &headers(head), body.as_bytes());
                assert_eq!(
                    found.verdict, expected,
                    "{status} {head} {body}: {}",
                    found.reason
                );
            }
        }
    }

    #[test]
    fn grpc_is_judged_by_its_status() {
        let grpc =
            |code: &str| format!("content-type: application/grpc+proto\ngrpc-status: {code}");
        for (status, head, expected) in [
            (200, grpc("5"), Answers),
            (200, grpc("0"), Answers),
            (200, grpc("3"), Answers),
            (200, grpc("12"), NotA2a),
            (200, grpc("16"), NeedsCredentials),
            (200, grpc("7"), NeedsCredentials),
            (200, grpc("14"), DoesNotAnswer),
            (200, grpc("4"), DoesNotAnswer),
            (200, grpc("13"), Unclear),
            (200, grpc("many"), Unclear),
            (200, "content-type: application/grpc".to_owned(), Unclear),
            (200, "content-type: text/html".to_owned(), NotA2a),
            (200, String::new(), NotA2a),
            (404, String::new(), Unclear),
            (415, "content-type: application/json".to_owned(), NotA2a),
            (401, String::new(), NeedsCredentials),
            (502, String::new(), DoesNotAnswer),
        ] {
            let found = classify_response(GrpcV1, status, &headers(&head), b"");
            assert_eq!(found.verdict, expected, "{status} {head}: {}", found.reason);
        }
    }

    #[test]
    fn a_scheme_and_a_message_are_foreign_text() {
        let scheme = |challenge: &str| {
            let head = headers(&format!("www-authenticate: {challenge}"));
            classify_response(JsonRpcV1, 401, &head, b"").auth_scheme
        };
        assert_eq!(scheme("Bearer realm=\"x\""), Some("Bearer".to_owned()));
        assert_eq!(scheme("Basic"), Some("Basic".to_owned()));
        let long = scheme(&"x".repeat(500)).unwrap();
        assert_eq!(long.chars().count(), MAX_SCHEME_CHARS);
        let body = format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":-32001,"message":"\u001b[31m{}"}}}}"#,
            "y".repeat(5000)
        );
        let reason = classify_response(JsonRpcV1, 200, &headers(""), body.as_bytes()).reason;
        assert!(reason.chars().count() <= MAX_DETAIL, "{reason}");
        assert!(!reason.contains('\u{1b}'), "{reason:?}");
    }
}
