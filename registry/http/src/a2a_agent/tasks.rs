//! Tasks one by one: read and cancelled by their caller alone.
//!
//! A task of an account belongs to it. One without an account belongs to whoever knows its identifier, which is random;
//! no list has it. A token that lets nothing be seen counts as none.

use a2a_registry_core::context::Context;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::a2a_tasks::{self, TaskChange};
use a2a_registry_store::entity::a2a_task;
use serde_json::Value;
use uuid::Uuid;

use super::fault::{Fault, FaultKind};
use super::outcome::{Answered, Outcome, visible};
use crate::ard::{base, seen_entries};

/// How long a task is worked on. One that takes longer is of a process that has ended.
pub(super) const WORK_LIMIT: i64 = MINUTE;

pub(super) const OPEN: [TaskState; 2] = [TaskState::Working, TaskState::InputRequired];

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) row: a2a_task::Model,
    pub(super) state: TaskState,
    pub(super) history: Vec<Value>,
    /// What came of it, if anything did: of a task that was read, what its caller may see after [`show`].
    pub(super) answered: Option<Answered>,
}

impl Task {
    pub(super) fn of(row: a2a_task::Model) -> Result<Self, AppError> {
        let broken = |error: serde_json::Error| {
            AppError::internal(format!("a stored task cannot be read: {error}"))
        };
        let state = row.state.of("a2a_tasks", "state", row.id)?;
        let history = serde_json::from_str(&row.history).map_err(broken)?;
        let answered = row.outcome.as_deref().map(serde_json::from_str).transpose();
        let answered = answered.map_err(broken)?;
        Ok(Self {
            row,
            state,
            history,
            answered,
        })
    }

    pub(super) fn id(&self) -> String {
        self.row.id.to_string()
    }
}

/// Leaves in tasks that were read what their caller may see now, with the entries of agents as they are now.
pub(super) async fn show(
    context: &Context,
    caller: &Caller,
    tasks: &mut [Task],
) -> Result<(), AppError> {
    let answers = || tasks.iter().filter_map(|task| task.answered.as_ref());
    let identifiers = answers().flat_map(Answered::identifiers);
    let identifiers: Vec<String> = identifiers.map(str::to_owned).collect();
    let agents = answers().flat_map(Answered::agents).collect();
    let seen = visible(context, caller, agents).await?;
    let entries = seen_entries(context, caller, identifiers).await?;
    let source = base(context);
    for answered in tasks.iter_mut().filter_map(|task| task.answered.as_mut()) {
        answered.keep_only(&seen);
        answered.complete(&entries, &source);
    }
    Ok(())
}

pub(super) fn owner(caller: &Caller) -> Option<Uuid> {
    let account = caller.account.as_ref();
    let account = account.filter(|account| account.may(Permission::Read));
    account.map(|account| account.id)
}

/// A task of the caller, without the agents that it may not see any more.
pub(super) async fn load(context: &Context, caller: &Caller, id: &str) -> Result<Task, Fault> {
    let id: Uuid = id.parse().map_err(|_| Fault::no_task())?;
    let mut task = read(context, caller, id).await?;
    if is_overdue(context, task.state, task.row.updated_at) {
        let text = "The registry was restarted while it worked on this. Send the message again.";
        let outcome = Outcome::Failed {
            text: text.to_owned(),
        };
        let failed = Answered {
            text: true,
            data: true,
            outcome,
        };
        let change = end(context, TaskState::Failed, Some(failed.written()?));
        let since = Some(task.row.updated_at);
        change_task(context, id, &[TaskState::Working], since, change).await?;
        task = read(context, caller, id).await?;
    }
    show(context, caller, std::slice::from_mut(&mut task)).await?;
    Ok(task)
}

/// Whether a task that is in a state since this moment has been worked on for too long.
pub(super) fn is_overdue(context: &Context, state: TaskState, since: i64) -> bool {
    state == TaskState::Working && context.now().0 - since > WORK_LIMIT
}

async fn read(context: &Context, caller: &Caller, id: Uuid) -> Result<Task, Fault> {
    let row = a2a_tasks::task_of(&context.store, owner(caller), id, context.now().0)
        .await
        .map_err(AppError::from)?;
    Ok(Task::of(row.ok_or_else(Fault::no_task)?)?)
}

/// Changes a task that is in one of these states, and has been since the moment that was read, where one is given;
/// returns whether it was.
pub(super) async fn change_task(
    context: &Context,
    id: Uuid,
    from: &[TaskState],
    since: Option<i64>,
    change: TaskChange,
) -> Result<bool, AppError> {
    let write = context.store.write().await?;
    let changed = write.task_change(id, from, since, change).await?;
    write.commit().await?;
    if changed {
        context.own_agent.tasks.changed(id);
    }
    Ok(changed)
}

fn end(context: &Context, state: TaskState, outcome: Option<String>) -> TaskChange {
    TaskChange {
        state,
        history: None,
        outcome,
        more: None,
        at: context.now().0,
    }
}

pub(super) async fn cancel(context: &Context, caller: &Caller, id: &str) -> Result<Task, Fault> {
    let task = load(context, caller, id).await?;
    let ended = || Fault::new(FaultKind::TaskNotCancelable, "The task has ended already.");
    if task.state.is_terminal() {
        return Err(ended());
    }
    let change = end(context, TaskState::Canceled, None);
    if !change_task(context, task.row.id, &OPEN, None, change).await? {
        return Err(ended());
    }
    load(context, caller, id).await
}

pub(super) async fn open(context: &Context, caller: &Caller, id: &str) -> Result<Task, Fault> {
    let task = load(context, caller, id).await?;
    match task.state.is_terminal() {
        false => Ok(task),
        true => Err(Fault::new(
            FaultKind::Unsupported,
            "The task has ended, so nothing more happens to it. Read it instead.",
        )),
    }
}
