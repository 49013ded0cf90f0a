//! Parses the events of a stream in the forms of every version.

use serde_json::Value;

use crate::CallError;
use crate::agent_response::{
    self, AgentResponse, ArtifactSummary, normalize_task_state, summarize_parts,
};
use crate::foreign_text::shorten_to_line;
use crate::member_spelling::{camel_or_snake_member, string_member};
use crate::route_selection::AgentRoute;

/// One event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// What the event says.
    pub kind: StreamEventContent,
    /// The event as received, without the envelope of JSON-RPC.
    pub raw: Value,
}

/// The content of an event. Every text in it is the agent's own, unchanged.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEventContent {
    /// The present state of the whole task.
    Task(Box<AgentResponse>),
    /// A message, which is the whole answer.
    Message(Box<AgentResponse>),
    /// A new state of the task.
    Status(StatusUpdate),
    /// An artifact of the task, or a further part of one.
    Artifact(ArtifactUpdate),
}

/// A new state of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The state as 0.3 spells it.
    pub state: String,
    /// The text of its message; empty without one.
    pub text: String,
    /// Descriptions of the message's parts that are not text.
    pub other_parts: Vec<String>,
    /// Whether the agent marked it as the last event, which only 0.x does.
    pub is_final: bool,
}

/// An artifact, or a further part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactUpdate {
    /// Its parts in this event.
    pub artifact: ArtifactSummary,
    /// Whether the parts continue the artifact; else they replace it.
    pub is_append: bool,
    /// Whether the artifact is complete.
    pub is_last_chunk: bool,
}

/// The shape of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventShape {
    Task,
    Message,
    Status,
    Artifact,
}

/// Detects the shape and content of an event: wrapped (1.0), marked by `kind` (0.2, 0.3), or by its members. A new
/// state in the form of 0.1 is read as a task without artifacts.
pub(super) fn detect_event_shape(raw: &Value) -> Option<(EventShape, &Value)> {
    let wrapped = [
        ("task", EventShape::Task),
        ("message", EventShape::Message),
        ("statusUpdate", EventShape::Status),
        ("artifactUpdate", EventShape::Artifact),
    ];
    let inner = |name| camel_or_snake_member(raw, name).filter(|inner| inner.is_object());
    let kind = match raw.get("kind").and_then(Value::as_str) {
        Some("task") => Some(EventShape::Task),
        Some("message") => Some(EventShape::Message),
        Some("status-update") => Some(EventShape::Status),
        Some("artifact-update") => Some(EventShape::Artifact),
        _ => None,
    };
    if let Some(form) = kind {
        return Some((form, raw));
    }
    for (name, form) in wrapped {
        if let Some(inner) = inner(name) {
            return Some((form, inner));
        }
    }
    let has = |name| camel_or_snake_member(raw, name).is_some();
    match (has("status"), has("taskId")) {
        (true, true) => Some((EventShape::Status, raw)),
        (true, false) => Some((EventShape::Task, raw)),
        _ if inner("artifact").is_some() => Some((EventShape::Artifact, raw)),
        _ if has("parts") => Some((EventShape::Message, raw)),
        _ => None,
    }
}

/// The task that an event belongs to, if it names one.
pub(super) fn event_task_id(shape: EventShape, content: &Value) -> Option<String> {
    match shape {
        EventShape::Task => string_member(content, "id"),
        EventShape::Message => None,
        // 0.1 uses the name that a task has for its own identifier.
        EventShape::Status | EventShape::Artifact => {
            string_member(content, "taskId").or_else(|| string_member(content, "id"))
        }
    }
}

pub(super) fn parse_event_content(
    shape: EventShape,
    content: &Value,
    route: &AgentRoute,
) -> Result<StreamEventContent, CallError> {
    Ok(match shape {
        EventShape::Task => StreamEventContent::Task(Box::new(agent_response::response_from_task(
            content.clone(),
            route,
        )?)),
        EventShape::Message => StreamEventContent::Message(Box::new(
            agent_response::response_from_message(content.clone(), route),
        )),
        EventShape::Status => {
            let state = content.pointer("/status/state").and_then(Value::as_str);
            let message = content.pointer("/status/message").map(summarize_parts);
            let message = message.unwrap_or_default();
            StreamEventContent::Status(StatusUpdate {
                state: normalize_task_state(state.ok_or_else(|| invalid_event_error(content))?),
                text: message.text,
                other_parts: message.other_parts,
                is_final: bool_member(content, "final"),
            })
        }
        EventShape::Artifact => {
            let artifact = content.get("artifact").filter(|inner| inner.is_object());
            StreamEventContent::Artifact(ArtifactUpdate {
                artifact: summarize_parts(artifact.ok_or_else(|| invalid_event_error(content))?),
                is_append: is_artifact_append(content),
                is_last_chunk: bool_member(content, "lastChunk")
                    || bool_member(&content["artifact"], "lastChunk"),
            })
        }
    })
}

/// Whether an artifact continues the one before it, which 0.1 says within the artifact.
pub(super) fn is_artifact_append(content: &Value) -> bool {
    bool_member(content, "append") || bool_member(&content["artifact"], "append")
}

fn bool_member(content: &Value, name: &str) -> bool {
    camel_or_snake_member(content, name).and_then(Value::as_bool) == Some(true)
}

pub(super) fn invalid_event_error(raw: &Value) -> CallError {
    CallError::NotAnEvent {
        beginning: shorten_to_line(&raw.to_string()),
    }
}

impl StreamEventContent {
    /// Whether the answer ends here: a message, a state that waits or is final (1.0 section 3.1.2), or the final flag
    /// of 0.x.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Message(_) => true,
            Self::Task(task) => task.state.as_deref().is_some_and(is_stopping_state),
            Self::Status(status) => status.is_final || is_stopping_state(&status.state),
            Self::Artifact(_) => false,
        }
    }
}

impl StreamEventContent {
    pub(super) fn is_completed_status(&self) -> bool {
        matches!(self, Self::Status(status) if status.state == "completed")
    }
}

/// Whether a task in this state waits for the user, or will not change any more.
fn is_stopping_state(state: &str) -> bool {
    matches!(
        state,
        "completed" | "failed" | "canceled" | "rejected" | "input-required" | "auth-required"
    )
}
