//! Tasks and events in the 1.0 format.

use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

use super::task_outcome::{Artifact, TaskOutcome};
use super::tasks::LoadedTask;

pub(super) const fn task_state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Failed => "TASK_STATE_FAILED",
    }
}

/// Parses a state; `None` for states that tasks here never enter, an error if the text is not a state.
pub(super) fn parse_task_state(text: &str) -> Result<Option<TaskState>, ()> {
    let known = TaskState::ALL
        .iter()
        .find(|one| task_state_name(**one) == text);
    match (known, text) {
        (Some(known), _) => Ok(Some(*known)),
        (None, "TASK_STATE_SUBMITTED" | "TASK_STATE_REJECTED" | "TASK_STATE_AUTH_REQUIRED") => {
            Ok(None)
        }
        _ => Err(()),
    }
}

/// RFC 3339 in UTC with milliseconds (1.0 section 5.6.1).
pub(super) fn format_timestamp(at: i64) -> String {
    let form =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let at = OffsetDateTime::from(Timestamp(at)).to_offset(UtcOffset::UTC);
    at.format(form).unwrap_or_default()
}

/// A JSON object with these members. `json!` would copy the values.
pub(super) fn json_object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter();
    Value::Object(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// A message of this agent about a task.
pub(super) fn agent_message(task: &LoadedTask, text: &str) -> Value {
    let id = task.id();
    json!({
        // A new id with every change of the task.
        "messageId": format!("{id}-{}", task.row.updated_at),
        "contextId": task.row.context_id,
        "taskId": id,
        "role": "ROLE_AGENT",
        "parts": [{"text": text, "mediaType": "text/plain"}],
    })
}

pub(super) fn task_status(task: &LoadedTask) -> Value {
    let mut status = json!({
        "state": task_state_name(task.state),
        "timestamp": format_timestamp(task.row.updated_at),
    });
    if let Some(text) = task.outcome.as_ref().and_then(TaskOutcome::status_text) {
        status["message"] = agent_message(task, &text);
    }
    status
}

/// A task as clients see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskView {
    id: String,
    context_id: String,
    status: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<Value>,
}

/// A task with the last `history_length` messages of its history, or all.
pub(super) fn task_view(
    mut task: LoadedTask,
    history_length: Option<usize>,
    include_artifacts: bool,
) -> TaskView {
    let count = task.history.len();
    let left_out = count.saturating_sub(history_length.unwrap_or(usize::MAX));
    let status = task_status(&task);
    let answered = task.outcome.take().filter(|_| include_artifacts);
    let artifact = answered.and_then(TaskOutcome::into_artifact);
    TaskView {
        id: task.id(),
        history: task.history.split_off(left_out),
        context_id: task.row.context_id,
        status,
        artifacts: artifact.into_iter().collect(),
    }
}

/// The same as a value.
pub(super) fn task_json(
    task: LoadedTask,
    history_length: Option<usize>,
    include_artifacts: bool,
) -> Value {
    json!(task_view(task, history_length, include_artifacts))
}

/// Events that report the transition of a task into its current state. The status event comes last.
pub(super) fn task_update_events(mut task: LoadedTask) -> Vec<Value> {
    let status_update = json!({"statusUpdate": {
        "taskId": task.id(),
        "contextId": task.row.context_id,
        "status": task_status(&task),
    }});
    let artifact = task.outcome.take().and_then(TaskOutcome::into_artifact);
    let artifact = artifact.map(|artifact| {
        json!({"artifactUpdate": {
            "taskId": task.id(),
            "contextId": task.row.context_id,
            "artifact": artifact,
            "append": false,
            "lastChunk": true,
        }})
    });
    artifact.into_iter().chain([status_update]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_utc_with_milliseconds() {
        assert_eq!(
            format_timestamp(1_767_225_600_001_999),
            "2026-01-01T00:00:00.001Z"
        );
        assert_eq!(format_timestamp(0), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for one in TaskState::ALL {
            assert_eq!(parse_task_state(task_state_name(*one)), Ok(Some(*one)));
        }
        assert_eq!(parse_task_state("TASK_STATE_REJECTED"), Ok(None));
        for wrong in ["", "working", "TASK_STATE_UNSPECIFIED", "TASK_STATE_ODD"] {
            assert_eq!(parse_task_state(wrong), Err(()), "{wrong}");
        }
    }
}
