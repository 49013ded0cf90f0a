//! What a sample agent does for each operation of the protocol, whatever the generation and the binding.

use std::sync::Arc;

use a2a_crawler::Clock;
use serde_json::{Map, Value, json};
use time::UtcOffset;
use time::macros::format_description;

use super::fault::{self, Fault};
use super::generation::Generation;
use super::incoming;
use super::samples::{Reply, Script};
use super::tasks::Tasks;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    /// Receives the further events of a task.
    Subscribe,
    /// Any operation on push notifications.
    Push,
    ExtendedCard,
}

pub(super) enum OperationResult {
    Single(Value),
    /// The events of a stream, which closes after the last one.
    Events(Vec<Value>),
}

#[derive(Debug)]
pub(super) struct Agent {
    pub generation: Generation,
    script: Script,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
}

enum Answer {
    Message(Value),
    Task(Value),
}

impl Agent {
    pub fn new(generation: Generation, script: Script, clock: Arc<dyn Clock>) -> Self {
        Self {
            generation,
            script,
            tasks: Tasks::default(),
            clock,
        }
    }

    pub fn perform(
        &self,
        operation: Operation,
        params: &Map<String, Value>,
    ) -> Result<OperationResult, Fault> {
        let document = match (operation, self.generation) {
            (Operation::Send, _) => self.send(params)?,
            (Operation::Stream, Generation::V1) => {
                return Ok(OperationResult::Events(self.stream(params)?));
            }
            (Operation::Stream | Operation::Subscribe, Generation::V0) => {
                return Err(unsupported("this agent does not stream"));
            }
            (Operation::Get, _) => self.task(params)?,
            (Operation::List, _) => self.list(params)?,
            (Operation::Cancel, _) => {
                self.task(params)?;
                return Err(Fault::new(
                    fault::TASK_NOT_CANCELABLE,
                    "the task is completed and cannot be canceled",
                ));
            }
            // There are no further events (1.0 section 3.1.6).
            (Operation::Subscribe, Generation::V1) => {
                self.task(params)?;
                return Err(unsupported(
                    "the task is completed; nothing more is streamed",
                ));
            }
            (Operation::Push, _) => {
                return Err(Fault::new(
                    fault::PUSH_NOT_SUPPORTED,
                    "this agent does not send push notifications",
                ));
            }
            (Operation::ExtendedCard, _) => {
                return Err(unsupported("this agent has no extended card"));
            }
        };
        Ok(OperationResult::Single(document))
    }

    /// The answer to a message, which 1.0 wraps in an object.
    fn send(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let answer = self.answer(params)?;
        Ok(match (self.generation, answer) {
            (Generation::V0, Answer::Message(document) | Answer::Task(document)) => document,
            (Generation::V1, Answer::Message(message)) => json!({"message": message}),
            (Generation::V1, Answer::Task(task)) => json!({"task": task}),
        })
    }

    /// The answer to a message as events of 1.0 (sections 3.1.2 and 3.5): one message; or the submitted task, its work, its
    /// artifacts part by part, and its completion.
    fn stream(&self, params: &Map<String, Value>) -> Result<Vec<Value>, Fault> {
        let task = match self.answer(params)? {
            Answer::Message(message) => return Ok(vec![json!({"message": message})]),
            Answer::Task(task) => task,
        };
        let (id, context) = (&task["id"], &task["contextId"]);
        let update = |status: &Value| json!({"statusUpdate": {"taskId": id, "contextId": context, "status": status}});
        let now = self.now();
        let submitted = json!({"state": "TASK_STATE_SUBMITTED", "timestamp": now});
        let working = json!({"state": "TASK_STATE_WORKING", "timestamp": now});
        let mut events = vec![
            json!({"task": {"id": id, "contextId": context, "status": submitted}}),
            update(&working),
        ];
        let artifacts = task["artifacts"].as_array().into_iter().flatten();
        for mut chunk in artifacts.flat_map(chunks) {
            chunk["taskId"] = id.clone();
            chunk["contextId"] = context.clone();
            events.push(json!({"artifactUpdate": chunk}));
        }
        events.push(update(&task["status"]));
        Ok(events)
    }

    fn answer(&self, params: &Map<String, Value>) -> Result<Answer, Fault> {
        let incoming = incoming::read(params, self.generation.user_role())?;
        if let Some(id) = &incoming.task_id {
            // Every task is completed when it is first seen, so none takes a further message.
            self.kept_task(id)?;
            let kind = match self.generation {
                Generation::V0 => fault::INVALID_PARAMS,
                Generation::V1 => fault::UNSUPPORTED,
            };
            return Err(Fault::new(
                kind,
                "the task is completed; send a new message without taskId",
            ));
        }
        let context = incoming
            .context_id
            .unwrap_or_else(|| self.tasks.number("context"));
        match self.script.reply(&incoming.text) {
            Reply::Message(text) => {
                let id = self.tasks.number("message");
                Ok(Answer::Message(
                    self.generation.message(&id, &context, &text),
                ))
            }
            Reply::Artifacts(artifacts) => {
                let id = self.tasks.number("task");
                let task = self.generation.task(&id, &context, &self.now(), artifacts);
                self.tasks.keep(task.clone());
                Ok(Answer::Task(task))
            }
        }
    }

    fn task(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let id = params
            .get("id")
            .and_then(Value::as_str)
            .ok_or_else(|| Fault::invalid_params("params.id is a string"))?;
        self.kept_task(id)
    }

    fn kept_task(&self, id: &str) -> Result<Value, Fault> {
        let missing = || {
            Fault::new(
                fault::TASK_NOT_FOUND,
                "the task does not exist, or no longer",
            )
        };
        self.tasks.get(id).ok_or_else(missing)
    }

    /// Lists tasks (1.0 section 3.1.4): the newest first, 1 to 100 a page, without artifacts unless they are requested.
    fn list(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let size = number(params, "pageSize")?.unwrap_or(50);
        if !(1..=100).contains(&size) {
            return Err(Fault::invalid_params("pageSize is 1 to 100"));
        }
        let text = |name: &str| {
            let value = params.get(name).and_then(Value::as_str);
            value.filter(|text| !text.is_empty())
        };
        let from = text("pageToken")
            .map_or(Ok(0), str::parse::<usize>)
            .map_err(|_| Fault::invalid_params("pageToken is one this agent gave"))?;
        let (context, state) = (text("contextId"), text("status"));
        let has_artifacts = params
            .get("includeArtifacts")
            .is_some_and(|value| *value == json!(true) || *value == json!("true"));
        let mut tasks = self.tasks.newest_first();
        tasks.retain(|task| {
            context.is_none_or(|context| task["contextId"] == context)
                && state.is_none_or(|state| task["status"]["state"] == state)
        });
        let total = tasks.len();
        let mut page: Vec<Value> = tasks.into_iter().skip(from).take(size).collect();
        if !has_artifacts {
            for task in page.iter_mut().filter_map(Value::as_object_mut) {
                task.remove("artifacts");
            }
        }
        let next = from.saturating_add(page.len());
        let token = if next < total {
            next.to_string()
        } else {
            String::new()
        };
        Ok(json!({"tasks": page, "nextPageToken": token, "pageSize": size, "totalSize": total}))
    }

    /// The time, in RFC 3339 in UTC with milliseconds (1.0 section 5.6.1).
    fn now(&self) -> String {
        let form = format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        );
        let now = self.clock.now().to_offset(UtcOffset::UTC);
        now.format(form).unwrap_or_default()
    }
}

/// The updates of an artifact, one for each part: the first begins the artifact, the others append to it. A reader puts the
/// texts together as they come, so each further one begins a line.
fn chunks(artifact: &Value) -> Vec<Value> {
    let parts = artifact["parts"].as_array().map(Vec::as_slice);
    let parts = parts.unwrap_or_default();
    let nth_chunk = |(nth, part): (usize, &Value)| {
        let mut part = part.clone();
        if let (Some(text), true) = (part["text"].as_str(), nth > 0) {
            part["text"] = format!("\n{text}").into();
        }
        let mut artifact = artifact.clone();
        artifact["parts"] = json!([part]);
        json!({"artifact": artifact, "append": nth > 0, "lastChunk": nth + 1 == parts.len()})
    };
    parts.iter().enumerate().map(nth_chunk).collect()
}

/// A number, written as one or, in a query, as text.
fn number(params: &Map<String, Value>, name: &str) -> Result<Option<usize>, Fault> {
    let read = match params.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok()),
    };
    read.map(Some)
        .ok_or_else(|| Fault::invalid_params(format!("{name} is a number")))
}

fn unsupported(message: &str) -> Fault {
    Fault::new(fault::UNSUPPORTED, message)
}
