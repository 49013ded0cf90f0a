//! Messages to this agent: a new task, or a further message to one that waits for it.

use std::sync::Arc;

use a2a_registry_core::context::Context;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::HOUR;
use a2a_registry_store::Kept;
use a2a_registry_store::a2a_tasks::{TaskChange, last_search_of};
use a2a_registry_store::entity::a2a_task;
use serde_json::{Value, json};

use super::contexts::{new_context, new_task};
use super::fault::{Fault, FaultKind};
use super::incoming::{Incoming, Wants};
use super::inserting::insert;
use super::intent::{Intent, intent};
use super::outcome::{Answered, Outcome};
use super::tasks::{Task, change_task, load, owner};
use super::wire;
use super::work::{Work, work};

/// Messages of one task, those of this agent among them.
pub(super) const MAX_MESSAGES: usize = 40;
/// Bytes of the messages of one task, as they are kept: in JSON.
const MAX_HISTORY: usize = 128 << 10;
const MAX_OUTCOME: usize = 1 << 20;

/// A message that is understood, with the task that it makes or goes on with.
struct Job {
    /// The task as it is: worked on, until [`Self::conclude`] says what came of it.
    task: Task,
    /// Since when there is such a task already that waits for the message.
    waits_since: Option<i64>,
    /// Whether the conversation may have other tasks.
    is_known: bool,
    intent: Intent,
    wants: Wants,
}

/// Does what a message asks for, and gives the task as it is then.
pub(super) async fn send(
    context: &Arc<Context>,
    caller: &Caller,
    incoming: Incoming,
) -> Result<Task, Fault> {
    if incoming.wants.immediately {
        return begin(context, caller, incoming).await;
    }
    let mut job = understand(context, caller, incoming).await?;
    let done = work(context, caller, &job.task.row.context_id, &job.intent).await?;
    job.conclude(context, done).await?;
    job.store(context).await?;
    Ok(job.task)
}

/// Begins to do what a message asks for, and gives the task as it is meanwhile.
pub(super) async fn begin(
    context: &Arc<Context>,
    caller: &Caller,
    incoming: Incoming,
) -> Result<Task, Fault> {
    let job = understand(context, caller, incoming).await?;
    job.store(context).await?;
    let task = job.task.clone();
    let (context, caller) = (Arc::clone(context), caller.clone());
    tokio::spawn(async move {
        if let Err(error) = finish(&context, &caller, job).await {
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
async fn finish(context: &Context, caller: &Caller, mut job: Job) -> Result<(), AppError> {
    let done = work(context, caller, &job.task.row.context_id, &job.intent).await;
    let done = done.unwrap_or_else(|fault| {
        Outcome::Failed {
            text: fault.message,
        }
        .into()
    });
    let since = Some(job.task.row.updated_at);
    job.conclude(context, done).await?;
    let (id, change) = (job.task.row.id, job.change());
    change_task(context, id, &[TaskState::Working], since, change).await?;
    Ok(())
}

impl Job {
    async fn conclude(&mut self, context: &Context, done: Work) -> Result<(), AppError> {
        let (answered, written, more) = bounded(done, self.wants)?;
        let at = moment(context, self, more.is_some()).await?;
        let task = &mut self.task;
        task.state = state_after(&answered.outcome);
        task.answered = Some(answered);
        task.row.state = Kept::from(task.state);
        task.row.outcome = Some(written);
        task.row.more = more;
        task.row.updated_at = at;
        Ok(())
    }

    fn change(&self) -> TaskChange {
        let row = &self.task.row;
        TaskChange {
            state: self.task.state,
            history: Some(row.history.clone()),
            outcome: row.outcome.clone(),
            more: row.more.clone(),
            at: row.updated_at,
        }
    }

    /// Stores the task: a new one, or the one that has waited for the message.
    async fn store(&self, context: &Arc<Context>) -> Result<(), Fault> {
        let row = &self.task.row;
        if self.waits_since.is_none() {
            return Ok(insert(context, row.clone()).await?);
        }
        let (waiting, since) = ([TaskState::InputRequired], self.waits_since);
        match change_task(context, row.id, &waiting, since, self.change()).await? {
            true => Ok(()),
            false => Err(takes_none()),
        }
    }
}

/// When a task comes into its state. A search comes after those before it in its conversation, whatever the clocks of
/// replicas say, so that "more" goes on with the last one.
async fn moment(context: &Context, job: &Job, is_search: bool) -> Result<i64, AppError> {
    // Later than what it was before, so that whoever has read that can tell.
    let row = &job.task.row;
    let now = context.now().0.max(row.updated_at);
    if !is_search || !job.is_known {
        return Ok(now);
    }
    let last = last_search_of(&context.store, row.account_id, &row.context_id, now).await?;
    Ok(last.map_or(now, |(_, at)| now.max(at.saturating_add(1))))
}

/// What came of work, within its bounds: also as it is kept, and with the request for the next page as in [`Work`].
fn bounded(done: Work, wants: Wants) -> Result<(Answered, String, Option<String>), AppError> {
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
    Ok((answered, written, more))
}

fn state_after(outcome: &Outcome) -> TaskState {
    match outcome {
        Outcome::Found(_) | Outcome::About { .. } | Outcome::Missing { .. } => TaskState::Completed,
        Outcome::Question { .. } => TaskState::InputRequired,
        Outcome::Failed { .. } => TaskState::Failed,
    }
}

async fn understand(context: &Context, caller: &Caller, incoming: Incoming) -> Result<Job, Fault> {
    let intent = intent(&incoming)?;
    let now = context.now().0;
    let waiting = match &incoming.task_id {
        Some(id) => Some(waiting(context, caller, id, incoming.context_id.as_deref()).await?),
        None => None,
    };
    let waits_since = waiting.as_ref().map(|task| task.row.updated_at);
    let created_at = waiting.as_ref().map_or(now, |task| task.row.created_at);
    let is_known = waiting.is_some() || incoming.context_id.is_some();
    let (id, conversation, mut history) = match waiting {
        Some(task) => {
            let asked = task.answered.as_ref().and_then(Answered::asked);
            let question = asked.map(|text| wire::said(&task, text));
            let mut history = task.history;
            history.extend(question);
            (task.row.id, task.row.context_id, history)
        }
        None => (
            new_task(context.entropy.as_ref()),
            incoming.context_id.unwrap_or_else(|| new_context(context)),
            Vec::new(),
        ),
    };
    let mut message = incoming.message;
    message["taskId"] = json!(id.to_string());
    message["contextId"] = json!(conversation);
    history.push(message);
    let kept_for = i64::from(context.config.a2a.task_hours) * HOUR;
    let row = a2a_task::Model {
        id,
        account_id: owner(caller),
        sender: sender(context, caller),
        context_id: conversation,
        state: Kept::from(TaskState::Working),
        history: written(&history)?,
        outcome: None,
        more: None,
        created_at,
        updated_at: waits_since.map_or(now, |since| now.max(since.saturating_add(1))),
        expires_at: context.now().plus(kept_for).0,
    };
    Ok(Job {
        task: Task {
            row,
            state: TaskState::Working,
            history,
            answered: None,
        },
        waits_since,
        is_known,
        intent,
        wants: incoming.wants,
    })
}

fn takes_none() -> Fault {
    Fault::new(
        FaultKind::Unsupported,
        "The task takes no further messages. Send this one without `taskId`.",
    )
}

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use uuid::Uuid;

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
        let mut page = FoundPage::default();
        page.add(Uuid::nil(), entry);
        page.rest.insert("pageToken".to_owned(), json!("next"));
        let done = Work {
            outcome: Outcome::Found(page),
            more: Some("next".into()),
        };
        let (answered, _, more) = bounded(done, WANTS).unwrap();
        assert_eq!(state_after(&answered.outcome), TaskState::Completed);
        assert_eq!(more.as_deref(), Some("next"));
        let shown = answered.artifact().unwrap();
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
        let (answered, written, _) = bounded(about.into(), WANTS).unwrap();
        assert_eq!(state_after(&answered.outcome), TaskState::Completed);
        assert!(written.len() < MAX_OUTCOME);
        let shown = answered.artifact().unwrap();
        let text = json!([{"text": "about x", "mediaType": "text/plain"}]);
        assert_eq!(shown["parts"], text);
    }
}
