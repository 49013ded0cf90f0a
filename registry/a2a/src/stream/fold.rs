//! The answer so far: the events of a stream put together as one task, as the agent would return it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::event::{Form, appends};
use crate::answer::{self, AgentAnswer, member};
use crate::choice::Route;

/// The task or message that the events add up to. Its size is bounded by that of the stream.
#[derive(Debug, Default)]
pub(super) struct Fold {
    task: Option<Value>,
    message: Option<Value>,
    /// Where each artifact is in the task's list.
    places: HashMap<String, usize>,
}

impl Fold {
    /// The task's identifier, once an event named it.
    pub fn task_id(&self) -> Option<&str> {
        self.task.as_ref()?.get("id")?.as_str()
    }

    /// The answer so far; `None` before the first event.
    pub fn answer(&self, route: &Route) -> Option<AgentAnswer> {
        if let Some(message) = &self.message {
            return Some(answer::message_answer(message.clone(), route));
        }
        let task = self.task.clone()?;
        answer::task_answer(task, route).ok()
    }

    /// Whether nothing readable was streamed: no message, no artifact, and no text about a state.
    pub fn is_empty(&self) -> bool {
        let has = |place: &str| {
            let task = self.task.as_ref();
            task.is_some_and(|task| task.pointer(place).is_some_and(|value| !value.is_null()))
        };
        self.message.is_none() && !has("/artifacts/0") && !has("/status/message")
    }

    pub fn add(&mut self, form: Form, content: &Value) {
        match form {
            Form::Message => self.message = Some(content.clone()),
            Form::Task => self.replace(content),
            Form::Status => {
                let status = content.get("status").cloned().unwrap_or_default();
                self.task(content)["status"] = status;
            }
            Form::Artifact => self.artifact(content),
        }
    }

    /// The task. An agent that never sends it whole names it in each event.
    fn task(&mut self, content: &Value) -> &mut Value {
        self.task.get_or_insert_with(|| {
            let mut task = json!({"id": "", "status": {"state": "unknown"}});
            let id = member(content, "taskId").or_else(|| member(content, "id"));
            task["id"] = id.unwrap_or_default().into();
            if let Some(context) = member(content, "contextId") {
                task["contextId"] = context.into();
            }
            task
        })
    }

    /// Takes a whole task. One without a list of artifacts says nothing about them.
    fn replace(&mut self, content: &Value) {
        let mut task = content.clone();
        match task.get("artifacts").and_then(Value::as_array) {
            Some(artifacts) => {
                self.places = artifacts
                    .iter()
                    .enumerate()
                    .filter_map(|(place, artifact)| Some((name(artifact)?, place)))
                    .collect();
            }
            None => {
                let mut keep = |name: &str| {
                    let known = self.task.as_mut().and_then(|task| task.get_mut(name));
                    if let Some(known) = known
                        && task.get(name).is_none_or(Value::is_null)
                    {
                        task[name] = known.take();
                    }
                };
                keep("artifacts");
                // New states in the form of 0.1 do not name it.
                keep("sessionId");
            }
        }
        self.task = Some(task);
    }

    fn artifact(&mut self, content: &Value) {
        let artifact = content.get("artifact").cloned().unwrap_or_default();
        let append = appends(content);
        let id = name(&artifact).unwrap_or_default();
        let place = self.places.get(&id).copied();
        let task = self.task(content);
        if !task.get("artifacts").is_some_and(Value::is_array) {
            task["artifacts"] = json!([]);
        }
        let Some(list) = task.get_mut("artifacts").and_then(Value::as_array_mut) else {
            return;
        };
        match place.and_then(|place| list.get_mut(place)) {
            Some(known) if append => continue_artifact(known, artifact),
            Some(known) => *known = artifact,
            None => {
                list.push(artifact);
                let place = list.len() - 1;
                self.places.insert(id, place);
            }
        }
    }
}

/// What tells an artifact from the others of its task; in 0.1 its number.
fn name(artifact: &Value) -> Option<String> {
    let number = || artifact.get("index").and_then(Value::as_u64);
    member(artifact, "artifactId").or_else(|| number().map(|number| number.to_string()))
}

/// Adds the parts of an update to an artifact. A text continues the text before it: agents stream pieces of words.
fn continue_artifact(known: &mut Value, mut more: Value) {
    let Some(Value::Array(added)) = more.get_mut("parts").map(Value::take) else {
        return;
    };
    if !known.get("parts").is_some_and(Value::is_array) {
        known["parts"] = json!([]);
    }
    let Some(parts) = known.get_mut("parts").and_then(Value::as_array_mut) else {
        return;
    };
    let mut added = added.into_iter().peekable();
    if let Some(Value::String(text)) = parts.last_mut().and_then(|part| part.get_mut("text"))
        && let Some(next) = added.next_if(|part| part.get("text").is_some_and(Value::is_string))
    {
        text.push_str(next["text"].as_str().unwrap_or_default());
    }
    parts.extend(added);
}
