//! Reading and canceling single tasks, which only their caller may do.
//!
//! A task created by an account belongs to that account. An anonymous task belongs to anyone who knows its identifier,
//! which is random, and is in no list. A token without read access counts as no token.

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::a2a_tasks::{self, TaskUpdate};
use a2a_registry_store::entity::a2a_task;
use serde_json::Value;
use uuid::Uuid;

use super::error::{A2aError, A2aErrorKind};
use super::task_outcome::{TaskOutcome, TaskOutcomeKind, visible_agent_ids};
use crate::ard::{ard_base_url, visible_entries};

/// Maximum work time of a task. A task that takes longer belongs to a process that has ended.
pub(super) const MAX_WORK_TIME: i64 = MINUTE;

pub(super) const OPEN_STATES: [TaskState; 2] = [TaskState::Working, TaskState::InputRequired];

#[derive(Debug, Clone)]
pub(super) struct LoadedTask {
    pub(super) row: a2a_task::Model,
    pub(super) state: TaskState,
    pub(super) history: Vec<Value>,
    /// The outcome, if there is one. For a loaded task [`redact_tasks`] reduces it to what the caller may see.
    pub(super) outcome: Option<TaskOutcome>,
}

impl LoadedTask {
    pub(super) fn from_row(row: a2a_task::Model) -> Result<Self, AppError> {
        let corrupt_task = |error: serde_json::Error| {
            AppError::internal(format!("a stored task cannot be read: {error}"))
        };
        let state = row.state.require_known("a2a_tasks", "state", row.id)?;
        let history = serde_json::from_str(&row.history).map_err(corrupt_task)?;
        let outcome = row.outcome.as_deref().map(serde_json::from_str).transpose();
        let answered = outcome.map_err(corrupt_task)?;
        Ok(Self {
            row,
            state,
            history,
            outcome: answered,
        })
    }

    pub(super) fn id(&self) -> String {
        self.row.id.to_string()
    }
}

/// Redacts loaded tasks to what their caller may see now, with current agent entries.
pub(super) async fn redact_tasks(
    context: &AppContext,
    caller: &Caller,
    tasks: &mut [LoadedTask],
) -> Result<(), AppError> {
    let answers = || tasks.iter().filter_map(|task| task.outcome.as_ref());
    let identifiers = answers().flat_map(TaskOutcome::entry_identifiers);
    let identifiers: Vec<String> = identifiers.map(str::to_owned).collect();
    let agents = answers()
        .flat_map(TaskOutcome::agent_ids_outside_page)
        .collect();
    let visible_ids = visible_agent_ids(context, caller, agents).await?;
    let entries = visible_entries(context, caller, identifiers).await?;
    let source = ard_base_url(context);
    for answered in tasks.iter_mut().filter_map(|task| task.outcome.as_mut()) {
        answered.retain_visible_agents(&visible_ids);
        answered.fill_entries(&entries, &source);
    }
    Ok(())
}

pub(super) fn task_owner_id(caller: &Caller) -> Option<Uuid> {
    let account = caller.account.as_ref();
    let account = account.filter(|account| account.has_permission(Permission::Read));
    account.map(|account| account.id)
}

/// Loads a task of the caller, without the agents that the caller may no longer see.
pub(super) async fn load_task(
    context: &AppContext,
    caller: &Caller,
    id: &str,
) -> Result<LoadedTask, A2aError> {
    let id: Uuid = id.parse().map_err(|_| A2aError::task_not_found())?;
    let mut task = load_unredacted_task(context, caller, id).await?;
    if is_task_overdue(context, task.state, task.row.updated_at) {
        let text =
            "The registry was restarted while it processed this task. Send the message again.";
        let kind = TaskOutcomeKind::Failed {
            text: text.to_owned(),
        };
        let failed = TaskOutcome {
            text: true,
            data: true,
            outcome: kind,
        };
        let change = ending_task_update(context, TaskState::Failed, Some(failed.to_stored_json()?));
        let since = Some(task.row.updated_at);
        change_task(context, id, &[TaskState::Working], since, change).await?;
        task = load_unredacted_task(context, caller, id).await?;
    }
    redact_tasks(context, caller, std::slice::from_mut(&mut task)).await?;
    Ok(task)
}

/// Whether a task that entered its state at this time exceeds its work time.
pub(super) fn is_task_overdue(context: &AppContext, state: TaskState, since: i64) -> bool {
    state == TaskState::Working && context.now().0 - since > MAX_WORK_TIME
}

async fn load_unredacted_task(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
) -> Result<LoadedTask, A2aError> {
    let row = a2a_tasks::live_task(&context.store, task_owner_id(caller), id, context.now().0)
        .await
        .map_err(AppError::from)?;
    Ok(LoadedTask::from_row(
        row.ok_or_else(A2aError::task_not_found)?,
    )?)
}

/// Changes a task if it is in one of these states, and, with `since`, has not changed state since then. Returns
/// whether the task was changed.
pub(super) async fn change_task(
    context: &AppContext,
    id: Uuid,
    from_states: &[TaskState],
    since: Option<i64>,
    change: TaskUpdate,
) -> Result<bool, AppError> {
    let write = context.store.begin_write().await?;
    let changed = write.update_task(id, from_states, since, change).await?;
    write.commit().await?;
    if changed {
        context.self_agent.task_watchers.notify(id);
    }
    Ok(changed)
}

fn ending_task_update(
    context: &AppContext,
    state: TaskState,
    outcome: Option<String>,
) -> TaskUpdate {
    TaskUpdate {
        state,
        history: None,
        outcome,
        next_page_request: None,
        at: context.now().0,
    }
}

pub(super) async fn cancel_task(
    context: &AppContext,
    caller: &Caller,
    id: &str,
) -> Result<LoadedTask, A2aError> {
    let task = load_task(context, caller, id).await?;
    let already_ended = || {
        A2aError::new(
            A2aErrorKind::TaskNotCancelable,
            "The task has already ended.",
        )
    };
    if task.state.is_terminal() {
        return Err(already_ended());
    }
    let change = ending_task_update(context, TaskState::Canceled, None);
    if !change_task(context, task.row.id, &OPEN_STATES, None, change).await? {
        return Err(already_ended());
    }
    load_task(context, caller, id).await
}

pub(super) async fn load_unfinished_task(
    context: &AppContext,
    caller: &Caller,
    id: &str,
) -> Result<LoadedTask, A2aError> {
    let task = load_task(context, caller, id).await?;
    match task.state.is_terminal() {
        false => Ok(task),
        true => Err(A2aError::new(
            A2aErrorKind::UnsupportedOperation,
            "The task has ended, so it has no more events. Get the task instead.",
        )),
    }
}
