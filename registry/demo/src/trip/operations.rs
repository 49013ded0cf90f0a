//! The planner's operations, for both bindings.

use std::sync::Arc;

use a2a_client::v1;
use a2a_crawler::Clock;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::macros::format_description;

use super::super::fault::Fault;
use super::super::incoming;
use super::super::tasks::Tasks;
use super::planner::{self, Piece};
use super::request;

/// The agent with its tasks.
#[derive(Debug)]
pub(in super::super) struct Planner {
    tasks: Tasks,
    clock: Arc<dyn Clock>,
}

/// The result of a message.
pub(super) enum OperationOutcome {
    /// A planned trip, as a completed task.
    Task { task: Value, pieces: Vec<Piece> },
    /// The information that the planner needs, as a message.
    Message(Value),
}

impl OperationOutcome {
    /// The result of a call that waits for it.
    pub(super) fn into_result(self) -> Value {
        match self {
            Self::Task { task, .. } => json!({"task": task}),
            Self::Message(message) => json!({"message": message}),
        }
    }
}

impl Planner {
    /// A planner without tasks.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            tasks: Tasks::default(),
            clock,
        }
    }

    /// Handles a message.
    pub(super) fn send(&self, params: &Map<String, Value>) -> Result<OperationOutcome, Fault> {
        let incoming = incoming::read(params, "ROLE_USER")?;
        if let Some(id) = &incoming.task_id {
            // Every task is completed when it is first seen, so none takes a further message.
            self.tasks.get(id).ok_or_else(Fault::task_not_found)?;
            return Err(Fault::unsupported(
                "the task is completed; send a new message without taskId",
            ));
        }
        let context = incoming
            .context_id
            .unwrap_or_else(|| self.tasks.number("trip-context"));
        let asked = match request::read(&incoming.text) {
            Ok(asked) => asked,
            Err(missing) => {
                let id = self.tasks.number("trip-message");
                let mut message = v1::message("ROLE_AGENT", &id, &missing);
                message["contextId"] = context.into();
                return Ok(OperationOutcome::Message(message));
            }
        };
        let pieces = planner::plan(&asked);
        let artifacts: Vec<Value> = pieces
            .iter()
            .map(|piece| json!({"artifactId": piece.id, "name": piece.name, "parts": piece.parts}))
            .collect();
        let task = json!({
            "id": self.tasks.number("trip-task"),
            "contextId": context,
            "status": self.status("TASK_STATE_COMPLETED"),
            "artifacts": artifacts,
        });
        self.tasks.keep(task.clone());
        Ok(OperationOutcome::Task { task, pieces })
    }

    /// A status at this moment.
    pub(super) fn status(&self, state: &str) -> Value {
        json!({"state": state, "timestamp": timestamp(self.clock.now())})
    }

    /// `GetTask`.
    pub(super) fn get(&self, id: &str) -> Result<Value, Fault> {
        self.tasks.get(id).ok_or_else(Fault::task_not_found)
    }

    /// `CancelTask`: every task is already completed.
    pub(super) fn cancel(&self, id: &str) -> Result<Value, Fault> {
        self.get(id).and(Err(Fault::task_not_cancelable()))
    }

    /// `SubscribeToTask`: there are no further events (1.0 section 3.1.6).
    pub(super) fn subscribe(&self, id: &str) -> Result<Value, Fault> {
        self.get(id).and(Err(Fault::unsupported(
            "the task is completed; nothing more is streamed",
        )))
    }

    /// `ListTasks` (1.0 section 3.1.4): the newest first, 1 to 100 a page, without artifacts unless they are
    /// requested.
    pub(super) fn list(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let size = number(params, "pageSize")?.unwrap_or(50);
        if !(1..=100).contains(&size) {
            return Err(Fault::invalid_params("pageSize is 1 to 100"));
        }
        let token = params
            .get("pageToken")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let from: usize = match token {
            "" => 0,
            token => token
                .parse()
                .map_err(|_| Fault::invalid_params("pageToken is one this agent gave"))?,
        };
        let text = |name| {
            params
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let (context, state) = (text("contextId"), text("status"));
        let whole = params
            .get("includeArtifacts")
            .is_some_and(|value| *value == json!(true) || *value == json!("true"));
        let mut tasks = self.tasks.newest_first();
        tasks.retain(|task| {
            context.is_none_or(|context| task["contextId"] == context)
                && state.is_none_or(|state| task["status"]["state"] == state)
        });
        let total = tasks.len();
        let mut page: Vec<Value> = tasks.into_iter().skip(from).take(size).collect();
        if !whole {
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

/// RFC 3339 in UTC with milliseconds (1.0 section 5.6.1).
fn timestamp(now: OffsetDateTime) -> String {
    let form =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    now.to_offset(time::UtcOffset::UTC)
        .format(form)
        .unwrap_or_default()
}
