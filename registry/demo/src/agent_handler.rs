//! How the sample agents perform operations, whatever the binding.

use std::sync::Arc;

use a2a_crawler::Clock;
use serde_json::{Map, Value, json};
use time::UtcOffset;
use time::macros::format_description;

use super::generation::ProtocolGeneration;
use super::operation::Operation;
use super::rpc_error::{self, RpcError};
use super::samples::{AgentScript, ReplyContent};
use super::tasks::TaskStore;
use super::user_message;

pub(super) enum OperationResult {
    Single(Value),
    /// Events of a stream, which closes after the last one.
    Events(Vec<Value>),
}

#[derive(Debug)]
pub(super) struct AgentHandler {
    pub generation: ProtocolGeneration,
    script: AgentScript,
    tasks: TaskStore,
    clock: Arc<dyn Clock>,
}

enum AgentReply {
    Message(Value),
    Task(Value),
}

impl AgentHandler {
    pub fn new(generation: ProtocolGeneration, script: AgentScript, clock: Arc<dyn Clock>) -> Self {
        Self {
            generation,
            script,
            tasks: TaskStore::default(),
            clock,
        }
    }

    pub fn perform_operation(
        &self,
        operation: Operation,
        params: &Map<String, Value>,
    ) -> Result<OperationResult, RpcError> {
        let document = match (operation, self.generation) {
            (Operation::Send, _) => self.handle_send_message(params)?,
            (Operation::Stream, ProtocolGeneration::V1) => {
                return Ok(OperationResult::Events(self.handle_stream_message(params)?));
            }
            (Operation::Stream | Operation::Subscribe, ProtocolGeneration::V0) => {
                return Err(unsupported_operation_error("this agent does not stream"));
            }
            (Operation::Get, _) => self.requested_task(params)?,
            (Operation::List, _) => self.list_tasks(params)?,
            (Operation::Cancel, _) => {
                self.requested_task(params)?;
                return Err(RpcError::new(
                    rpc_error::TASK_NOT_CANCELABLE,
                    "the task is completed and cannot be canceled",
                ));
            }
            // There are no further events (1.0 section 3.1.6).
            (Operation::Subscribe, ProtocolGeneration::V1) => {
                self.requested_task(params)?;
                return Err(unsupported_operation_error(
                    "the task is completed; nothing more is streamed",
                ));
            }
            (Operation::Push, _) => {
                return Err(RpcError::new(
                    rpc_error::PUSH_NOT_SUPPORTED,
                    "this agent does not send push notifications",
                ));
            }
            (Operation::ExtendedCard, _) => {
                return Err(unsupported_operation_error(
                    "this agent has no extended card",
                ));
            }
        };
        Ok(OperationResult::Single(document))
    }

    /// Replies to a message; 1.0 wraps the reply in an object.
    fn handle_send_message(&self, params: &Map<String, Value>) -> Result<Value, RpcError> {
        let answer = self.reply_to_message(params)?;
        Ok(match (self.generation, answer) {
            (
                ProtocolGeneration::V0,
                AgentReply::Message(document) | AgentReply::Task(document),
            ) => document,
            (ProtocolGeneration::V1, AgentReply::Message(message)) => json!({"message": message}),
            (ProtocolGeneration::V1, AgentReply::Task(task)) => json!({"task": task}),
        })
    }

    /// Replies to a message with events of 1.0 (sections 3.1.2 and 3.5): one message; or the submitted task, its work,
    /// its artifacts part by part, and its completion.
    fn handle_stream_message(&self, params: &Map<String, Value>) -> Result<Vec<Value>, RpcError> {
        let task = match self.reply_to_message(params)? {
            AgentReply::Message(message) => return Ok(vec![json!({"message": message})]),
            AgentReply::Task(task) => task,
        };
        let (id, context) = (&task["id"], &task["contextId"]);
        let update = |status: &Value| json!({"statusUpdate": {"taskId": id, "contextId": context, "status": status}});
        let now = self.now_rfc3339();
        let submitted = json!({"state": "TASK_STATE_SUBMITTED", "timestamp": now});
        let working = json!({"state": "TASK_STATE_WORKING", "timestamp": now});
        let mut events = vec![
            json!({"task": {"id": id, "contextId": context, "status": submitted}}),
            update(&working),
        ];
        let artifacts = task["artifacts"].as_array().into_iter().flatten();
        for mut chunk in artifacts.flat_map(artifact_chunks) {
            chunk["taskId"] = id.clone();
            chunk["contextId"] = context.clone();
            events.push(json!({"artifactUpdate": chunk}));
        }
        events.push(update(&task["status"]));
        Ok(events)
    }

    fn reply_to_message(&self, params: &Map<String, Value>) -> Result<AgentReply, RpcError> {
        let message = user_message::parse_user_message(params, self.generation.user_role())?;
        if let Some(id) = &message.task_id {
            // Every task is completed when it is first seen, so none takes a further message.
            self.stored_task(id)?;
            let kind = match self.generation {
                ProtocolGeneration::V0 => rpc_error::INVALID_PARAMS,
                ProtocolGeneration::V1 => rpc_error::UNSUPPORTED_OPERATION,
            };
            return Err(RpcError::new(
                kind,
                "the task is completed; send a new message without taskId",
            ));
        }
        let context = message
            .context_id
            .unwrap_or_else(|| self.tasks.next_id("context"));
        match self.script.reply_to_text(&message.text) {
            ReplyContent::Message(text) => {
                let id = self.tasks.next_id("message");
                Ok(AgentReply::Message(
                    self.generation.agent_message(&id, &context, &text),
                ))
            }
            ReplyContent::Artifacts(artifacts) => {
                let id = self.tasks.next_id("task");
                let task =
                    self.generation
                        .completed_task(&id, &context, &self.now_rfc3339(), artifacts);
                self.tasks.insert(task.clone());
                Ok(AgentReply::Task(task))
            }
        }
    }

    fn requested_task(&self, params: &Map<String, Value>) -> Result<Value, RpcError> {
        let id = params
            .get("id")
            .and_then(Value::as_str)
            .ok_or_else(|| RpcError::invalid_params("params.id must be a string"))?;
        self.stored_task(id)
    }

    fn stored_task(&self, id: &str) -> Result<Value, RpcError> {
        let not_found = || {
            RpcError::new(
                rpc_error::TASK_NOT_FOUND,
                "task not found; it may have been removed",
            )
        };
        self.tasks.get(id).ok_or_else(not_found)
    }

    /// Lists tasks (1.0 section 3.1.4): newest first, 1 to 100 a page, without artifacts unless requested.
    fn list_tasks(&self, params: &Map<String, Value>) -> Result<Value, RpcError> {
        let page_size = number_param(params, "pageSize")?.unwrap_or(50);
        if !(1..=100).contains(&page_size) {
            return Err(RpcError::invalid_params("pageSize must be 1 to 100"));
        }
        let text_param = |name: &str| {
            let value = params.get(name).and_then(Value::as_str);
            value.filter(|text| !text.is_empty())
        };
        let offset = text_param("pageToken")
            .map_or(Ok(0), str::parse::<usize>)
            .map_err(|_| {
                RpcError::invalid_params("pageToken must be one that this agent returned")
            })?;
        let (context, state) = (text_param("contextId"), text_param("status"));
        let has_artifacts = params
            .get("includeArtifacts")
            .is_some_and(|value| *value == json!(true) || *value == json!("true"));
        let mut tasks = self.tasks.tasks_newest_first();
        tasks.retain(|task| {
            context.is_none_or(|context| task["contextId"] == context)
                && state.is_none_or(|state| task["status"]["state"] == state)
        });
        let total = tasks.len();
        let mut page: Vec<Value> = tasks.into_iter().skip(offset).take(page_size).collect();
        if !has_artifacts {
            for task in page.iter_mut().filter_map(Value::as_object_mut) {
                task.remove("artifacts");
            }
        }
        let next = offset.saturating_add(page.len());
        let next_page_token = if next < total {
            next.to_string()
        } else {
            String::new()
        };
        Ok(
            json!({"tasks": page, "nextPageToken": next_page_token, "pageSize": page_size, "totalSize": total}),
        )
    }

    /// Current time as RFC 3339 in UTC with milliseconds (1.0 section 5.6.1).
    fn now_rfc3339(&self) -> String {
        let form = format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        );
        let now = self.clock.now().to_offset(UtcOffset::UTC);
        now.format(form).unwrap_or_default()
    }
}

/// Splits an artifact into one update for each part: the first starts the artifact, the others append to it. Clients
/// concatenate the texts, so each further one starts a new line.
fn artifact_chunks(artifact: &Value) -> Vec<Value> {
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

/// Parses a number, which in a query is text.
fn number_param(params: &Map<String, Value>, name: &str) -> Result<Option<usize>, RpcError> {
    let parsed = match params.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok()),
    };
    parsed
        .map(Some)
        .ok_or_else(|| RpcError::invalid_params(format!("{name} must be a number")))
}

fn unsupported_operation_error(message: &str) -> RpcError {
    RpcError::new(rpc_error::UNSUPPORTED_OPERATION, message)
}
