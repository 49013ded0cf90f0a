//! Reads the events of a stream in the forms of every version.

use serde_json::Value;

use crate::TalkError;
use crate::answer::{self, AgentAnswer, ArtifactSummary, field, member, plain_state, read_parts};
use crate::choice::Route;
use crate::error::shorten;

/// One event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// What the event says.
    pub kind: EventKind,
    /// The event as received, without the envelope of JSON-RPC.
    pub raw: Value,
}

/// The content of an event. Every text in it is the agent's own, unchanged.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// A task as it stands at this moment.
    Task(Box<AgentAnswer>),
    /// A message, which is the whole answer.
    Message(Box<AgentAnswer>),
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
    pub last: bool,
}

/// An artifact, or a further part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactUpdate {
    /// Its parts in this event.
    pub artifact: ArtifactSummary,
    /// Whether the parts continue the artifact; else they replace it.
    pub append: bool,
    /// Whether the artifact is complete.
    pub last: bool,
}

/// The form of an event, with the object that has its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Task,
    Message,
    Status,
    Artifact,
}

/// The form and content of an event: wrapped (1.0), marked by `kind` (0.2, 0.3), or by the members that it has. A new state
/// in the form of 0.1 reads as a task without artifacts.
pub(super) fn form(raw: &Value) -> Option<(Form, &Value)> {
    let wrapped = [
        ("task", Form::Task),
        ("message", Form::Message),
        ("statusUpdate", Form::Status),
        ("artifactUpdate", Form::Artifact),
    ];
    let inner = |name| field(raw, name).filter(|inner| inner.is_object());
    let kind = match raw.get("kind").and_then(Value::as_str) {
        Some("task") => Some(Form::Task),
        Some("message") => Some(Form::Message),
        Some("status-update") => Some(Form::Status),
        Some("artifact-update") => Some(Form::Artifact),
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
    let has = |name| field(raw, name).is_some();
    match (has("status"), has("taskId")) {
        (true, true) => Some((Form::Status, raw)),
        (true, false) => Some((Form::Task, raw)),
        _ if inner("artifact").is_some() => Some((Form::Artifact, raw)),
        _ if has("parts") => Some((Form::Message, raw)),
        _ => None,
    }
}

/// The task that an event belongs to, if it names one.
pub(super) fn task_id(form: Form, content: &Value) -> Option<String> {
    match form {
        Form::Task => member(content, "id"),
        Form::Message => None,
        // 0.1 calls it by the name that a task has for itself.
        Form::Status | Form::Artifact => {
            member(content, "taskId").or_else(|| member(content, "id"))
        }
    }
}

pub(super) fn read(form: Form, content: &Value, route: &Route) -> Result<EventKind, TalkError> {
    Ok(match form {
        Form::Task => EventKind::Task(Box::new(answer::task_answer(content.clone(), route)?)),
        Form::Message => {
            EventKind::Message(Box::new(answer::message_answer(content.clone(), route)))
        }
        Form::Status => {
            let state = content.pointer("/status/state").and_then(Value::as_str);
            let message = content.pointer("/status/message").map(read_parts);
            let message = message.unwrap_or_default();
            EventKind::Status(StatusUpdate {
                state: plain_state(state.ok_or_else(|| no_event(content))?),
                text: message.text,
                other_parts: message.other_parts,
                last: flag(content, "final"),
            })
        }
        Form::Artifact => {
            let artifact = content.get("artifact").filter(|inner| inner.is_object());
            EventKind::Artifact(ArtifactUpdate {
                artifact: read_parts(artifact.ok_or_else(|| no_event(content))?),
                append: appends(content),
                last: flag(content, "lastChunk") || flag(&content["artifact"], "lastChunk"),
            })
        }
    })
}

/// Whether an artifact continues the one before it, which 0.1 says within the artifact.
pub(super) fn appends(content: &Value) -> bool {
    flag(content, "append") || flag(&content["artifact"], "append")
}

fn flag(content: &Value, name: &str) -> bool {
    field(content, name).and_then(Value::as_bool) == Some(true)
}

pub(super) fn no_event(raw: &Value) -> TalkError {
    TalkError::NotAnEvent {
        beginning: shorten(&raw.to_string()),
    }
}

impl EventKind {
    /// Whether the answer ends here: a message, a state that waits or is final (1.0 section 3.1.2), or the mark of 0.x.
    pub(super) fn ends(&self) -> bool {
        match self {
            Self::Message(_) => true,
            Self::Task(task) => task.state.as_deref().is_some_and(is_end),
            Self::Status(status) => status.last || is_end(&status.state),
            Self::Artifact(_) => false,
        }
    }
}

impl EventKind {
    pub(super) fn completes(&self) -> bool {
        matches!(self, Self::Status(status) if status.state == "completed")
    }
}

/// Whether a task in this state waits for the user, or will not change any more.
fn is_end(state: &str) -> bool {
    matches!(
        state,
        "completed" | "failed" | "canceled" | "rejected" | "input-required" | "auth-required"
    )
}
