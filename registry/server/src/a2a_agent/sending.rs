//! Messages to this agent: a new task, or a further message to one that waits for it.

use std::sync::Arc;

use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::HOUR;
use a2a_registry_store::Kept;
use a2a_registry_store::a2a_tasks::{TaskChange, last_search_of};
use a2a_registry_store::entity::a2a_task;
use serde_json::{Value, json};
use uuid::Uuid;

use super::contexts::{new_context, new_task};
use super::fault::{Fault, FaultKind};
use super::incoming::{Incoming, Wants};
use super::inserting::insert;
use super::intent::{Intent, intent};
use super::outcome::{Answered, Outcome, ShownOutcome};
use super::tasks::{Task, change_task, load, owner};
use super::wire;
use super::work::{Work, work};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;

/// Messages of one task, those of this agent among them.
pub(super) const MAX_MESSAGES: usize = 40;
/// Bytes of the messages of one task, as they are kept: in JSON.
const MAX_HISTORY: usize = 128 << 10;
/// Bytes of an outcome that is kept.
const MAX_OUTCOME: usize = 1 << 20;

/// A message that is understood, with the task that it makes or goes on with.
struct Job {
    /// The row while it is worked on.
    row: a2a_task::Model,
    /// The messages that are written in it.
    history: Vec<Value>,
    /// Since when there is such a task already that waits for the message.
    waits_since: Option<i64>,
    /// Whether the conversation may have other tasks.
    is_known: bool,
    intent: Intent,
    wants: Wants,
}

/// Does what a message asks for, and gives the task as it is then.
///
/// # Errors
/// Parameters that are wrong; `TaskNotFound`; `Unsupported` for a task that takes no message, or that another message
/// has come to meanwhile; failures of the registry.
pub(super) async fn send(
    context: &Arc<Context>,
    caller: &Caller,
    incoming: Incoming,
) -> Result<Task, Fault> {
    if incoming.wants.immediately {
        return begin(context, caller, incoming).await;
    }
    let job = understand(context, caller, incoming).await?;
    let done = work(context, caller, &job.row.context_id, &job.intent).await?;
    let done = result(done, job.wants)?;
    let at = moment(context, caller, &job, done.more.is_some()).await?;
    let Some(since) = job.waits_since else {
        let row = a2a_task::Model {
            state: Kept::from(done.state),
            outcome: Some(done.written),
            more: done.more,
            updated_at: at,
            ..job.row
        };
        insert(context, row.clone()).await?;
        let shown = done.answered.shown();
        return Ok(Task::new(row, done.state, job.history, shown));
    };
    let id = job.row.id;
    let change = TaskChange {
        state: done.state,
        history: Some(job.row.history),
        outcome: Some(done.written),
        more: done.more,
        at,
    };
    apply(context, id, since, change).await?;
    load(context, caller, &id.to_string()).await
}

/// Begins to do what a message asks for, and gives the task as it is meanwhile.
///
/// # Errors
/// As [`send`].
pub(super) async fn begin(
    context: &Arc<Context>,
    caller: &Caller,
    incoming: Incoming,
) -> Result<Task, Fault> {
    let job = understand(context, caller, incoming).await?;
    if let Some(since) = job.waits_since {
        let change = TaskChange {
            state: TaskState::Working,
            history: Some(job.row.history.clone()),
            outcome: None,
            more: None,
            at: job.row.updated_at,
        };
        apply(context, job.row.id, since, change).await?;
    } else {
        insert(context, job.row.clone()).await?;
    }
    let task = Task::new(
        job.row.clone(),
        TaskState::Working,
        job.history.clone(),
        ShownOutcome::default(),
    );
    let (context, caller) = (Arc::clone(context), caller.clone());
    tokio::spawn(async move {
        if let Err(error) = finish(&context, &caller, &job).await {
            // The task fails by itself when it has been worked on for too long.
            tracing::warn!(
                error = error.for_log(),
                "a task of A2A could not be finished"
            );
        }
    });
    Ok(task)
}

/// Finishes a task that is worked on, unless it was cancelled meanwhile.
async fn finish(context: &Context, caller: &Caller, job: &Job) -> Result<(), AppError> {
    let done = work(context, caller, &job.row.context_id, &job.intent).await;
    let done = done.unwrap_or_else(|fault| {
        Outcome::Failed {
            text: fault.message,
        }
        .into()
    });
    let done = result(done, job.wants)?;
    let at = moment(context, caller, job, done.more.is_some()).await?;
    let change = TaskChange {
        state: done.state,
        history: None,
        outcome: Some(done.written),
        more: done.more,
        at,
    };
    let since = Some(job.row.updated_at);
    change_task(context, job.row.id, &[TaskState::Working], since, change).await?;
    Ok(())
}

/// When a task comes into its state. A search comes after those before it in its conversation, whatever the clocks of
/// replicas say, so that "more" goes on with the last one.
async fn moment(
    context: &Context,
    caller: &Caller,
    job: &Job,
    is_search: bool,
) -> Result<i64, AppError> {
    // Later than what it was before, so that whoever has read that can tell.
    let now = context.now().0.max(job.row.updated_at);
    if !is_search || !job.is_known {
        return Ok(now);
    }
    let (account, conversation) = (owner(caller), &job.row.context_id);
    let last = last_search_of(&context.store, account, conversation, now).await?;
    Ok(last.map_or(now, |(_, at)| now.max(at.saturating_add(1))))
}

/// What a task comes to.
struct Finished {
    state: TaskState,
    answered: Answered,
    /// The same as it is kept.
    written: String,
    /// The request for the next page, as in [`Work`].
    more: Option<String>,
}

/// What work brings a task to.
fn result(done: Work, wants: Wants) -> Result<Finished, AppError> {
    let mut more = done.more;
    let mut answered = Answered {
        text: wants.text,
        data: wants.data,
        outcome: done.outcome,
    };
    let mut written = answered.written()?;
    if written.len() > MAX_OUTCOME {
        answered.without_data();
        written = answered.written()?;
    }
    if written.len() > MAX_OUTCOME {
        let text = "The answer is too large; ask for fewer agents with `pageSize`.".to_owned();
        answered.outcome = Outcome::Failed { text };
        more = None;
        written = answered.written()?;
    }
    let state = match &answered.outcome {
        Outcome::Found(_) | Outcome::About { .. } | Outcome::Missing { .. } => TaskState::Completed,
        Outcome::Question { .. } => TaskState::InputRequired,
        Outcome::Failed { .. } => TaskState::Failed,
    };
    Ok(Finished {
        state,
        answered,
        written,
        more,
    })
}

/// Reads what a message asks for, and of which task.
async fn understand(context: &Context, caller: &Caller, incoming: Incoming) -> Result<Job, Fault> {
    let asked = intent(&incoming)?;
    let now = context.now();
    let waiting = match &incoming.task_id {
        Some(id) => Some(waiting(context, caller, id, incoming.context_id.as_deref()).await?),
        None => None,
    };
    let waits_since = waiting.as_ref().map(|task| task.row.updated_at);
    let (id, conversation, mut history) = match &waiting {
        Some(task) => (
            task.row.id,
            task.row.context_id.clone(),
            task.history.clone(),
        ),
        None => {
            let id = new_task(context.entropy.as_ref());
            let given = incoming.context_id.clone();
            (
                id,
                given.unwrap_or_else(|| new_context(context)),
                Vec::new(),
            )
        }
    };
    if let Some((task, text)) = waiting
        .as_ref()
        .and_then(|task| Some((task, task.asked()?)))
    {
        history.push(wire::said(task, text));
    }
    let mut message = incoming.message;
    message["taskId"] = json!(id.to_string());
    message["contextId"] = json!(conversation);
    history.push(message);
    let written = written(&history)?;
    let created_at = waiting.map_or(now.0, |task| task.row.created_at);
    Ok(Job {
        row: a2a_task::Model {
            id,
            account_id: owner(caller),
            sender: sender(context, caller),
            context_id: conversation,
            state: Kept::from(TaskState::Working),
            history: written,
            outcome: None,
            more: None,
            created_at,
            updated_at: waits_since.map_or(now.0, |since| now.0.max(since.saturating_add(1))),
            expires_at: now.plus(i64::from(context.config.a2a.task_hours) * HOUR).0,
        },
        history,
        waits_since,
        is_known: waits_since.is_some() || incoming.context_id.is_some(),
        intent: asked,
        wants: incoming.wants,
    })
}

fn takes_none() -> Fault {
    Fault::new(
        FaultKind::Unsupported,
        "The task takes no further messages. Send this one without `taskId`.",
    )
}

/// The messages of a task as they are kept.
///
/// # Errors
/// `InvalidParams` for a first message that is too large; `Unsupported` for a further one that is too large with those
/// before.
fn written(history: &[Value]) -> Result<String, Fault> {
    let written = serde_json::to_string(history);
    let written = written.map_err(|error| AppError::internal(error.to_string()))?;
    if written.len() <= MAX_HISTORY {
        return Ok(written);
    }
    let most = MAX_HISTORY >> 10;
    Err(match history.len() > 1 {
        true => Fault::new(
            FaultKind::Unsupported,
            format!(
                "The task takes no further messages of this size: its messages have at most {most} KiB as JSON together. Send this one without `taskId`."
            ),
        ),
        false => Fault::params(format!("A message has at most {most} KiB as JSON here.")),
    })
}

/// Whom a task of the caller is counted for, if it has no account. The address itself is not kept.
fn sender(context: &Context, caller: &Caller) -> Option<i64> {
    let network = caller.network.filter(|_| owner(caller).is_none())?;
    let number = context.signer.number(&["a2a sender", &network.to_string()]);
    Some(number.cast_signed())
}

/// The task that a message names, if it waits for one.
async fn waiting(
    context: &Context,
    caller: &Caller,
    id: &str,
    conversation: Option<&str>,
) -> Result<Task, Fault> {
    let task = load(context, caller, id).await?;
    if conversation.is_some_and(|given| given != task.row.context_id) {
        return Err(Fault::params("The task belongs to another `contextId`."));
    }
    if task.state != TaskState::InputRequired || task.history.len() + 2 > MAX_MESSAGES {
        return Err(takes_none());
    }
    Ok(task)
}

/// Changes a task that has been waiting for a message since this moment.
///
/// # Errors
/// `Unsupported` where another message or its end came first.
async fn apply(context: &Context, id: Uuid, since: i64, change: TaskChange) -> Result<(), Fault> {
    let from = [TaskState::InputRequired];
    match change_task(context, id, &from, Some(since), change).await? {
        true => Ok(()),
        false => Err(takes_none()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::outcome::FoundPage;
    use super::*;

    const WANTS: Wants = Wants {
        text: true,
        data: true,
        history: None,
        immediately: false,
    };

    #[test]
    fn a_page_that_is_too_large_goes_on() {
        let entry = json!({"identifier": "x", "score": 1, "data": "x".repeat(MAX_OUTCOME)});
        let page = FoundPage {
            results: vec![(Uuid::nil(), entry)],
            rest: json!({"pageToken": "next"}),
            left_out: 0,
            without_urn: 0,
        };
        let done = Work {
            outcome: Outcome::Found(page),
            more: Some("next".into()),
        };
        let done = result(done, WANTS).unwrap();
        assert_eq!(
            (done.state, done.more.as_deref()),
            (TaskState::Completed, Some("next"))
        );
        let shown = done.answered.shown().artifact.unwrap();
        let response = json!({"results": [], "pageToken": "next"});
        assert_eq!(shown["parts"][1]["data"], response);
        assert_eq!(shown["metadata"]["leftOut"], 1);
    }

    #[test]
    fn an_answer_about_an_agent_that_is_too_large_keeps_its_text() {
        let about = Outcome::About {
            skill: "describe-agent".into(),
            agent: Uuid::nil(),
            asked: "x".into(),
            text: "about x".into(),
            data: Some(json!("x".repeat(MAX_OUTCOME))),
        };
        let done = result(about.into(), WANTS).unwrap();
        assert_eq!(done.state, TaskState::Completed);
        assert!(done.written.len() < MAX_OUTCOME);
        let shown = done.answered.shown().artifact.unwrap();
        let text = json!([{"text": "about x", "mediaType": "text/plain"}]);
        assert_eq!(shown["parts"], text);
    }
}
