//! The answer so far: the events of a stream combined into one task, as the agent would return it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::event::{EventShape, is_artifact_append};
use crate::agent_response::{self, AgentResponse};
use crate::member_spelling::string_member;
use crate::route_selection::AgentRoute;

/// The task or message that the events add up to. Its size is bounded by that of the stream.
#[derive(Debug, Default)]
pub(super) struct StreamAccumulator {
    task: Option<Value>,
    message: Option<Value>,
    /// The index of each artifact in the task's list.
    artifact_indexes: HashMap<String, usize>,
}

impl StreamAccumulator {
    /// The task's identifier, once an event named it.
    pub fn task_id(&self) -> Option<&str> {
        self.task.as_ref()?.get("id")?.as_str()
    }

    /// The answer so far; `None` before the first event.
    pub fn response(&self, route: &AgentRoute) -> Option<AgentResponse> {
        if let Some(message) = &self.message {
            return Some(agent_response::response_from_message(
                message.clone(),
                route,
            ));
        }
        let task = self.task.clone()?;
        agent_response::response_from_task(task, route).ok()
    }

    /// Whether nothing readable was streamed: no message, no artifact, and no text about a state.
    pub fn has_no_content(&self) -> bool {
        let has = |place: &str| {
            let task = self.task.as_ref();
            task.is_some_and(|task| task.pointer(place).is_some_and(|value| !value.is_null()))
        };
        self.message.is_none() && !has("/artifacts/0") && !has("/status/message")
    }

    pub fn add_event(&mut self, shape: EventShape, content: &Value) {
        match shape {
            EventShape::Message => self.message = Some(content.clone()),
            EventShape::Task => self.replace_task(content),
            EventShape::Status => {
                let status = content.get("status").cloned().unwrap_or_default();
                self.get_or_insert_task(content)["status"] = status;
            }
            EventShape::Artifact => self.update_artifact(content),
        }
    }

    /// The task. An agent that never sends it whole names it in each event.
    fn get_or_insert_task(&mut self, content: &Value) -> &mut Value {
        self.task.get_or_insert_with(|| {
            let mut task = json!({"id": "", "status": {"state": "unknown"}});
            let id = string_member(content, "taskId").or_else(|| string_member(content, "id"));
            task["id"] = id.unwrap_or_default().into();
            if let Some(context) = string_member(content, "contextId") {
                task["contextId"] = context.into();
            }
            task
        })
    }

    /// Replaces the task. A task without a list of artifacts keeps the known ones.
    fn replace_task(&mut self, content: &Value) {
        let mut task = content.clone();
        match task.get("artifacts").and_then(Value::as_array) {
            Some(artifacts) => {
                self.artifact_indexes = artifacts
                    .iter()
                    .enumerate()
                    .filter_map(|(place, artifact)| Some((artifact_key(artifact)?, place)))
                    .collect();
            }
            None => {
                let mut keep_member = |name: &str| {
                    let previous = self.task.as_mut().and_then(|task| task.get_mut(name));
                    if let Some(known) = previous
                        && task.get(name).is_none_or(Value::is_null)
                    {
                        task[name] = known.take();
                    }
                };
                keep_member("artifacts");
                // New states in the form of 0.1 do not name the session.
                keep_member("sessionId");
            }
        }
        self.task = Some(task);
    }

    fn update_artifact(&mut self, content: &Value) {
        let artifact = content.get("artifact").cloned().unwrap_or_default();
        let append = is_artifact_append(content);
        let id = artifact_key(&artifact).unwrap_or_default();
        let index = self.artifact_indexes.get(&id).copied();
        let task = self.get_or_insert_task(content);
        if !task.get("artifacts").is_some_and(Value::is_array) {
            task["artifacts"] = json!([]);
        }
        let Some(list) = task.get_mut("artifacts").and_then(Value::as_array_mut) else {
            return;
        };
        match index.and_then(|place| list.get_mut(place)) {
            Some(known) if append => append_artifact_parts(known, artifact),
            Some(known) => *known = artifact,
            None => {
                list.push(artifact);
                let place = list.len() - 1;
                self.artifact_indexes.insert(id, place);
            }
        }
    }
}

/// The key of an artifact within its task; in 0.1 its number.
fn artifact_key(artifact: &Value) -> Option<String> {
    let number = || artifact.get("index").and_then(Value::as_u64);
    string_member(artifact, "artifactId").or_else(|| number().map(|number| number.to_string()))
}

/// Adds the parts of an update to an artifact. A text continues the text before it: agents stream pieces of words.
fn append_artifact_parts(artifact: &mut Value, mut update: Value) {
    let Some(Value::Array(added_parts)) = update.get_mut("parts").map(Value::take) else {
        return;
    };
    if !artifact.get("parts").is_some_and(Value::is_array) {
        artifact["parts"] = json!([]);
    }
    let Some(parts) = artifact.get_mut("parts").and_then(Value::as_array_mut) else {
        return;
    };
    let mut added = added_parts.into_iter().peekable();
    if let Some(Value::String(text)) = parts.last_mut().and_then(|part| part.get_mut("text"))
        && let Some(next) = added.next_if(|part| part.get("text").is_some_and(Value::is_string))
    {
        text.push_str(next["text"].as_str().unwrap_or_default());
    }
    parts.extend(added);
}
