//! Parses answers of every protocol version.

use a2a_card::Interface;
use serde_json::Value;

use super::CallError;
use super::foreign_text::shorten_to_line;
use super::member_spelling::string_member;
use super::route_selection::{AgentRoute, ProtocolBinding};

/// Maximum number of artifacts that are summarized; the others are in [`AgentResponse::raw`] only.
const ARTIFACT_LIMIT: usize = 100;

/// An agent's answer. Every text in it is the agent's own, unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentResponse {
    /// The answer as text: a message's text parts, or the text of a task's artifacts, or of its status or last
    /// message. A task that did not complete starts with its status, which gives the reason. Empty without any text.
    pub text: String,
    /// The text of a task's status, such as a question to the user; empty if the agent answered with a message.
    pub status_text: String,
    /// The task's state as 0.3 spells it, such as `input-required`; `None` if the agent answered with a message.
    pub state: Option<String>,
    /// The task's identifier, for later requests.
    pub task_id: Option<String>,
    /// The conversation's identifier, for later messages.
    pub context_id: Option<String>,
    /// The task's artifacts in order, the first hundred.
    pub artifacts: Vec<ArtifactSummary>,
    /// Descriptions of a message's parts that are not text.
    pub other_parts: Vec<String>,
    /// Why this is not the agent's final answer; `None` if it is.
    pub unfinished_reason: Option<String>,
    /// The interface that answered.
    pub interface: Interface,
    /// How the agent was called.
    pub protocol_binding: ProtocolBinding,
    /// The task or message as received.
    pub raw: Value,
}

/// One artifact of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArtifactSummary {
    /// Its identifier within the task.
    pub id: Option<String>,
    /// Its name for people.
    pub name: Option<String>,
    /// Its text parts, one per line.
    pub text: String,
    /// The media types that its parts name, without duplicates.
    pub media_types: Vec<String>,
    /// Descriptions of its parts that are not text, such as `file report.pdf (application/pdf)`.
    pub other_parts: Vec<String>,
}

impl AgentResponse {
    /// Whether the agent is still working, so that a later request may return more.
    pub(super) fn is_in_progress(&self) -> bool {
        matches!(self.state.as_deref(), Some("submitted" | "working"))
    }
}

/// Reads the result of a send: a task or a message, wrapped (`{"task": …}`, 1.0) or marked by `kind`.
pub(super) fn parse_send_result(
    raw: Value,
    route: &AgentRoute,
) -> Result<AgentResponse, CallError> {
    let kind = raw.get("kind").and_then(Value::as_str);
    if let Some(task) = raw.get("task").filter(|task| task.is_object()) {
        return response_from_task(task.clone(), route);
    }
    if let Some(message) = raw.get("message").filter(|message| message.is_object()) {
        return Ok(response_from_message(message.clone(), route));
    }
    // Without `kind` the members decide: only a task has a status, only a message has parts.
    match kind {
        Some("task") => response_from_task(raw, route),
        Some("message") => Ok(response_from_message(raw, route)),
        _ if raw.get("status").is_some_and(Value::is_object) => response_from_task(raw, route),
        _ if raw.get("parts").is_some_and(Value::is_array) => Ok(response_from_message(raw, route)),
        _ => Err(invalid_response_error(&raw)),
    }
}

pub(super) fn parse_task_response(
    raw: Value,
    route: &AgentRoute,
) -> Result<AgentResponse, CallError> {
    match raw.get("task").filter(|task| task.is_object()) {
        Some(task) => response_from_task(task.clone(), route),
        None => response_from_task(raw, route),
    }
}

pub(super) fn invalid_response_error(raw: &Value) -> CallError {
    CallError::InvalidResponse {
        beginning: shorten_to_line(&raw.to_string()),
    }
}

pub(super) fn response_from_message(message: Value, route: &AgentRoute) -> AgentResponse {
    let parts = summarize_parts(&message);
    AgentResponse {
        text: parts.text,
        status_text: String::new(),
        state: None,
        task_id: string_member(&message, "taskId"),
        context_id: string_member(&message, "contextId"),
        artifacts: Vec::new(),
        other_parts: parts.other_parts,
        unfinished_reason: None,
        interface: route.interface.clone(),
        protocol_binding: route.protocol_binding,
        raw: message,
    }
}

pub(super) fn response_from_task(
    task: Value,
    route: &AgentRoute,
) -> Result<AgentResponse, CallError> {
    let Some(state) = task.pointer("/status/state").and_then(Value::as_str) else {
        return Err(invalid_response_error(&task));
    };
    let state = normalize_task_state(state);
    let list = task
        .get("artifacts")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let artifacts: Vec<_> = list
        .iter()
        .take(ARTIFACT_LIMIT)
        .map(summarize_parts)
        .collect();
    let status_message = task
        .pointer("/status/message")
        .map(summarize_parts)
        .unwrap_or_default();
    let mut texts: Vec<&str> = artifacts
        .iter()
        .map(|artifact| artifact.text.as_str())
        .collect();
    if state != "completed" {
        texts.insert(0, &status_message.text);
    }
    texts.retain(|text| !text.is_empty());
    let text = match texts.is_empty() {
        false => texts.join("\n\n"),
        true if status_message.text.is_empty() => last_agent_text(&task),
        true => status_message.text.clone(),
    };
    Ok(AgentResponse {
        text,
        status_text: status_message.text,
        task_id: string_member(&task, "id"),
        // 0.1 calls a context a session.
        context_id: string_member(&task, "contextId").or_else(|| string_member(&task, "sessionId")),
        artifacts,
        other_parts: status_message.other_parts,
        unfinished_reason: None,
        interface: route.interface.clone(),
        protocol_binding: route.protocol_binding,
        state: Some(state),
        raw: task,
    })
}

fn last_agent_text(task: &Value) -> String {
    let history = task.get("history").and_then(Value::as_array);
    history
        .and_then(|messages| {
            messages.iter().rev().find(|message| {
                let role = message.get("role").and_then(Value::as_str);
                matches!(role, Some("agent" | "ROLE_AGENT"))
            })
        })
        .map(|message| summarize_parts(message).text)
        .unwrap_or_default()
}

/// Normalizes the name of a state. `TASK_STATE_INPUT_REQUIRED` and `input-required` are the same state; so are both
/// spellings of `canceled`, and `created`, as some agents call `submitted`.
pub(super) fn normalize_task_state(state: &str) -> String {
    let state = state.strip_prefix("TASK_STATE_").unwrap_or(state);
    let state = state.to_ascii_lowercase().replace('_', "-");
    match state.as_str() {
        "cancelled" => "canceled".to_owned(),
        "created" => "submitted".to_owned(),
        _ => state,
    }
}

/// Summarizes the parts of a message or an artifact. The protobuf form of 0.3 calls a message's parts `content`.
pub(super) fn summarize_parts(holder: &Value) -> ArtifactSummary {
    let mut summary = ArtifactSummary {
        id: string_member(holder, "artifactId"),
        name: string_member(holder, "name"),
        ..ArtifactSummary::default()
    };
    let parts = ["parts", "content"]
        .iter()
        .find_map(|name| holder.get(*name)?.as_array());
    let mut texts = Vec::new();
    for part in parts.into_iter().flatten() {
        let media_type = part_media_type(part);
        match part.get("text").and_then(Value::as_str) {
            Some(text) => texts.push(text),
            None => summary.other_parts.push(describe_part(part, media_type)),
        }
        if let Some(media_type) = media_type
            && !summary.media_types.iter().any(|known| known == media_type)
        {
            summary.media_types.push(media_type.to_owned());
        }
    }
    summary.text = texts.join("\n");
    summary
}

pub(super) fn part_media_type(part: &Value) -> Option<&str> {
    const MEDIA_TYPE_POINTERS: [&str; 6] = [
        "/mediaType",
        "/file/mimeType",
        "/file/mediaType",
        "/media_type",
        "/file/mime_type",
        "/file/media_type",
    ];
    first_text_at_pointers(part, &MEDIA_TYPE_POINTERS)
}

/// Pointers to the bytes of a file in a part.
pub(super) const BYTES_POINTERS: [&str; 5] = [
    "/raw",
    "/bytes",
    "/file/bytes",
    "/file/fileWithBytes",
    "/file/raw",
];

/// Pointers to the address of a file in a part.
pub(super) const URL_POINTERS: [&str; 5] = [
    "/url",
    "/uri",
    "/file/uri",
    "/file/fileWithUri",
    "/file/url",
];

/// Pointers to the name of a file in a part.
pub(super) const FILE_NAME_POINTERS: [&str; 3] = ["/filename", "/file/name", "/file/filename"];

/// The first non-empty text at these pointers of a part.
pub(super) fn first_text_at_pointers<'a>(part: &'a Value, pointers: &[&str]) -> Option<&'a str> {
    pointers
        .iter()
        .filter_map(|pointer| part.pointer(pointer)?.as_str())
        .find(|text| !text.is_empty())
}

/// Describes a part without text: a file inside the answer, a file elsewhere, or data.
fn describe_part(part: &Value, media_type: Option<&str>) -> String {
    let kind = media_type
        .map(|media_type| format!(" ({media_type})"))
        .unwrap_or_default();
    let name = first_text_at_pointers(part, &FILE_NAME_POINTERS)
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    if let Some(url) = first_text_at_pointers(part, &URL_POINTERS) {
        return format!("file{name}{kind} at {url}");
    }
    if let Some(bytes) = first_text_at_pointers(part, &BYTES_POINTERS) {
        // Base64 holds three bytes in four characters.
        let size = bytes.trim_end_matches('=').len() * 3 / 4;
        return format!("file{name}{kind}, {size} bytes");
    }
    match part.get("data") {
        Some(data) => format!("data{kind}: {}", shorten_to_line(&data.to_string())),
        None => format!("a part of an unknown kind{kind}"),
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
