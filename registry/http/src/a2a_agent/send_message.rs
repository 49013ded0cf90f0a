//! Sending messages to this agent: each starts a task or continues a task that waits for input.

use std::sync::Arc;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::HOUR;
use a2a_registry_store::StoredEnum;
use a2a_registry_store::a2a_tasks::{TaskUpdate, last_search_continuation};
use a2a_registry_store::entity::a2a_task;
use serde_json::{Value, json};

use super::conversation_ids::{new_context_id, new_task_id};
use super::error::{A2aError, A2aErrorKind};
use super::execution::{IntentResult, execute_intent};
use super::incoming_message::{IncomingMessage, SendMessageConfiguration};
use super::intent::{Intent, parse_intent};
use super::task_insert_queue::insert_task;
use super::task_outcome::{TaskOutcome, TaskOutcomeKind};
use super::tasks::{LoadedTask, change_task, load_task, task_owner_id};
use super::wire_format;

/// Maximum number of messages of one task, including those of this agent.
pub(super) const MAX_MESSAGES: usize = 40;
/// Maximum number of bytes of the messages of one task, stored as JSON.
const MAX_HISTORY_BYTES: usize = 128 << 10;
const MAX_OUTCOME_BYTES: usize = 1 << 20;

/// The run of a parsed message: its intent and the task that it starts or continues.
struct TaskRun {
    /// The task in its working state, until [`Self::complete`] sets the outcome.
    task: LoadedTask,
    /// Time since which the stored task waits for this message; `None` for a new task.
    waiting_since: Option<i64>,
    /// Whether the conversation may already have other tasks.
    is_existing_context: bool,
    intent: Intent,
    configuration: SendMessageConfiguration,
}

/// Executes the intent of a message and returns the finished task.
pub(super) async fn execute_message(
    context: &Arc<AppContext>,
    caller: &Caller,
    incoming: IncomingMessage,
) -> Result<LoadedTask, A2aError> {
    if incoming.configuration.return_immediately {
        return start_task(context, caller, incoming).await;
    }
    let mut job = prepare_task_run(context, caller, incoming).await?;
    let done = execute_intent(context, caller, &job.task.row.context_id, &job.intent).await?;
    job.complete(context, done).await?;
    job.store(context).await?;
    Ok(job.task)
}

/// Starts to execute the intent of a message and returns the task in its working state.
pub(super) async fn start_task(
    context: &Arc<AppContext>,
    caller: &Caller,
    incoming: IncomingMessage,
) -> Result<LoadedTask, A2aError> {
    let job = prepare_task_run(context, caller, incoming).await?;
    job.store(context).await?;
    let task = job.task.clone();
    let (context, caller) = (Arc::clone(context), caller.clone());
    tokio::spawn(async move {
        if let Err(error) = run_started_task(&context, &caller, job).await {
            // The task fails automatically once it exceeds its work time.
            tracing::warn!(
                error = error.log_message(),
                "an A2A task could not be finished"
            );
        }
    });
    Ok(task)
}

/// Finishes a working task, unless it was canceled meanwhile.
async fn run_started_task(
    context: &AppContext,
    caller: &Caller,
    mut run: TaskRun,
) -> Result<(), AppError> {
    let result = execute_intent(context, caller, &run.task.row.context_id, &run.intent).await;
    let done = result.unwrap_or_else(|fault| {
        TaskOutcomeKind::Failed {
            text: fault.message,
        }
        .into()
    });
    let since = Some(run.task.row.updated_at);
    run.complete(context, done).await?;
    let (id, change) = (run.task.row.id, run.to_task_update());
    change_task(context, id, &[TaskState::Working], since, change).await?;
    Ok(())
}

impl TaskRun {
    async fn complete(
        &mut self,
        context: &AppContext,
        result: IntentResult,
    ) -> Result<(), AppError> {
        let (outcome, outcome_json, next_request) = limit_task_outcome(result, self.configuration)?;
        let at = task_transition_time(context, self, next_request.is_some()).await?;
        let task = &mut self.task;
        task.state = resulting_task_state(&outcome.outcome);
        task.outcome = Some(outcome);
        task.row.state = StoredEnum::from(task.state);
        task.row.outcome = Some(outcome_json);
        task.row.more = next_request;
        task.row.updated_at = at;
        Ok(())
    }

    fn to_task_update(&self) -> TaskUpdate {
        let row = &self.task.row;
        TaskUpdate {
            state: self.task.state,
            history: Some(row.history.clone()),
            outcome: row.outcome.clone(),
            next_page_request: row.more.clone(),
            at: row.updated_at,
        }
    }

    /// Stores a new task, or updates the task that waited for the message.
    async fn store(&self, context: &Arc<AppContext>) -> Result<(), A2aError> {
        let row = &self.task.row;
        if self.waiting_since.is_none() {
            return Ok(insert_task(context, row.clone()).await?);
        }
        let (waiting, since) = ([TaskState::InputRequired], self.waiting_since);
        match change_task(context, row.id, &waiting, since, self.to_task_update()).await? {
            true => Ok(()),
            false => Err(no_more_messages_error()),
        }
    }
}

/// Time at which a task enters its state. A search gets a later time than earlier searches of its conversation, even
/// if the clocks of replicas differ, so that "more" continues the last search.
async fn task_transition_time(
    context: &AppContext,
    run: &TaskRun,
    is_search: bool,
) -> Result<i64, AppError> {
    // Not earlier than the previous time, so that clients detect the change.
    let row = &run.task.row;
    let now = context.now().0.max(row.updated_at);
    if !is_search || !run.is_existing_context {
        return Ok(now);
    }
    let last =
        last_search_continuation(&context.store, row.account_id, &row.context_id, now).await?;
    Ok(last.map_or(now, |(_, at)| now.max(at.saturating_add(1))))
}

/// Applies the size limits to a result. Returns the outcome, its stored JSON, and the request for the next page as in
/// [`IntentResult`].
fn limit_task_outcome(
    result: IntentResult,
    configuration: SendMessageConfiguration,
) -> Result<(TaskOutcome, String, Option<String>), AppError> {
    let mut next_request = result.next_request;
    let mut outcome = TaskOutcome {
        text: configuration.accepts_text,
        data: configuration.accepts_data,
        outcome: result.outcome,
    };
    let mut outcome_json = outcome.to_stored_json()?;
    if outcome_json.len() > MAX_OUTCOME_BYTES {
        outcome.remove_data();
        outcome_json = outcome.to_stored_json()?;
    }
    if outcome_json.len() > MAX_OUTCOME_BYTES {
        let text = "The response is too large. Request fewer agents with `pageSize`.".to_owned();
        outcome.outcome = TaskOutcomeKind::Failed { text };
        next_request = None;
        outcome_json = outcome.to_stored_json()?;
    }
    Ok((outcome, outcome_json, next_request))
}

fn resulting_task_state(outcome: &TaskOutcomeKind) -> TaskState {
    match outcome {
        TaskOutcomeKind::Found(_)
        | TaskOutcomeKind::About { .. }
        | TaskOutcomeKind::Missing { .. } => TaskState::Completed,
        TaskOutcomeKind::Question { .. } => TaskState::InputRequired,
        TaskOutcomeKind::Failed { .. } => TaskState::Failed,
    }
}

async fn prepare_task_run(
    context: &AppContext,
    caller: &Caller,
    incoming: IncomingMessage,
) -> Result<TaskRun, A2aError> {
    let intent = parse_intent(&incoming)?;
    let now = context.now().0;
    let waiting_task = match &incoming.task_id {
        Some(id) => {
            Some(load_waiting_task(context, caller, id, incoming.context_id.as_deref()).await?)
        }
        None => None,
    };
    let waiting_row = waiting_task.as_ref().map(|task| &task.row);
    let waiting_since = waiting_row.map(|row| row.updated_at);
    let created_at = waiting_row.map_or(now, |row| row.created_at);
    let is_existing_context = waiting_task.is_some() || incoming.context_id.is_some();
    let (id, context_id, mut history) = match waiting_task {
        Some(task) => {
            let asked = task.outcome.as_ref().and_then(TaskOutcome::clarification);
            let question = asked.map(|text| wire_format::agent_message(&task, text));
            let mut history = task.history;
            history.extend(question);
            (task.row.id, task.row.context_id, history)
        }
        None => (
            new_task_id(context.entropy.as_ref()),
            incoming
                .context_id
                .unwrap_or_else(|| new_context_id(context)),
            Vec::new(),
        ),
    };
    let mut message = incoming.message;
    message["taskId"] = json!(id.to_string());
    message["contextId"] = json!(context_id);
    history.push(message);
    let retention = i64::from(context.config().a2a.task_hours) * HOUR;
    let row = a2a_task::Model {
        id,
        account_id: task_owner_id(caller),
        sender: anonymous_sender_key(context, caller),
        context_id,
        state: StoredEnum::from(TaskState::Working),
        history: history_json(&history)?,
        outcome: None,
        more: None,
        created_at,
        updated_at: waiting_since.map_or(now, |since| now.max(since.saturating_add(1))),
        expires_at: context.now().plus_micros(retention).0,
    };
    Ok(TaskRun {
        task: LoadedTask {
            row,
            state: TaskState::Working,
            history,
            outcome: None,
        },
        waiting_since,
        is_existing_context,
        intent,
        configuration: incoming.configuration,
    })
}

fn no_more_messages_error() -> A2aError {
    A2aError::new(
        A2aErrorKind::UnsupportedOperation,
        "The task does not accept more messages. Send this message without `taskId`.",
    )
}

fn history_json(history: &[Value]) -> Result<String, A2aError> {
    let written = serde_json::to_string(history);
    let written = written.map_err(|error| AppError::internal(error.to_string()))?;
    if written.len() <= MAX_HISTORY_BYTES {
        return Ok(written);
    }
    let max_kib = MAX_HISTORY_BYTES >> 10;
    Err(match history.len() > 1 {
        true => A2aError::new(
            A2aErrorKind::UnsupportedOperation,
            format!(
                "The messages of a task are limited to {max_kib} KiB of JSON in total. \
                Send this message without `taskId`."
            ),
        ),
        false => {
            A2aError::invalid_params(format!("A message is limited to {max_kib} KiB of JSON."))
        }
    })
}

/// The key by which tasks of a caller without an account are counted. The address itself is not stored.
fn anonymous_sender_key(context: &AppContext, caller: &Caller) -> Option<i64> {
    let network = caller.network.filter(|_| task_owner_id(caller).is_none())?;
    let number = context
        .page_token_signer
        .hash_texts(&["a2a sender", &network.to_string()]);
    Some(number.cast_signed())
}

async fn load_waiting_task(
    context: &AppContext,
    caller: &Caller,
    id: &str,
    context_id: Option<&str>,
) -> Result<LoadedTask, A2aError> {
    let task = load_task(context, caller, id).await?;
    if context_id.is_some_and(|given| given != task.row.context_id) {
        return Err(A2aError::invalid_params(
            "The task belongs to another `contextId`.",
        ));
    }
    if task.state != TaskState::InputRequired || task.history.len() + 2 > MAX_MESSAGES {
        return Err(no_more_messages_error());
    }
    Ok(task)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use uuid::Uuid;

    use super::super::task_outcome::FoundAgentsPage;
    use super::*;

    const WANTS: SendMessageConfiguration = SendMessageConfiguration {
        accepts_text: true,
        accepts_data: true,
        history_length: None,
        return_immediately: false,
    };

    #[test]
    fn a_page_that_is_too_large_goes_on() {
        let entry = json!({"identifier": "x", "score": 1, "data": "x".repeat(MAX_OUTCOME_BYTES)});
        let mut page = FoundAgentsPage::default();
        page.add_result(Uuid::nil(), entry.to_string());
        page.rest.insert("pageToken".to_owned(), json!("next"));
        let done = IntentResult {
            outcome: TaskOutcomeKind::Found(page),
            next_request: Some("next".into()),
        };
        let (answered, _, more) = limit_task_outcome(done, WANTS).unwrap();
        assert_eq!(
            resulting_task_state(&answered.outcome),
            TaskState::Completed
        );
        assert_eq!(more.as_deref(), Some("next"));
        let shown = json!(answered.into_artifact());
        let response = json!({"results": [], "pageToken": "next"});
        assert_eq!(shown["parts"][1]["data"], response);
        assert_eq!(shown["metadata"]["leftOut"], 1);
    }

    #[test]
    fn an_answer_about_an_agent_that_is_too_large_keeps_its_text() {
        let about = TaskOutcomeKind::About {
            skill: "describe-agent".into(),
            agent: Uuid::nil(),
            asked: "x".into(),
            text: "about x".into(),
            data: Some(json!("x".repeat(MAX_OUTCOME_BYTES))),
        };
        let (answered, written, _) = limit_task_outcome(about.into(), WANTS).unwrap();
        assert_eq!(
            resulting_task_state(&answered.outcome),
            TaskState::Completed
        );
        assert!(written.len() < MAX_OUTCOME_BYTES);
        let shown = json!(answered.into_artifact());
        let text = json!([{"text": "about x", "mediaType": "text/plain"}]);
        assert_eq!(shown["parts"], text);
    }
}
