//! Lists a caller's tasks (1.0 section 3.1.4), most recently changed first.

use std::collections::HashMap;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::a2a_tasks::{self, TaskFilter, TaskPosition, TaskProjection};
use a2a_registry_store::entity::a2a_task;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::error::A2aError;
use super::incoming_message::{
    bool_member, history_length_member, identifier_member, number_member, text_member,
};
use super::task_outcome::MAX_ENTRY_BYTES;
use super::tasks::{LoadedTask, redact_tasks, task_owner_id};
use super::wire_format;

const DEFAULT_PAGE_SIZE: u64 = 50;
const MAX_PAGE_SIZE: u64 = 100;
/// Maximum number of tasks on a page with artifacts, because the outcome of each must be checked again.
const MAX_WITH_ARTIFACTS: u64 = 20;
/// Maximum number of stored bytes of a page's tasks: a task beyond it starts the next page, unless it is the first.
const MAX_PAGE_BYTES: i64 = 1 << 20;
/// States in which a task has a message about its outcome.
const STATES_WITH_MESSAGE: [TaskState; 2] = [TaskState::InputRequired, TaskState::Failed];

/// A page of the caller's tasks. The list is empty for a caller without an account.
pub(super) async fn list_tasks(
    context: &AppContext,
    caller: &Caller,
    params: &Map<String, Value>,
) -> Result<Value, A2aError> {
    let requested_size = number_member(params, "pageSize")?.unwrap_or(DEFAULT_PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&requested_size) {
        return Err(A2aError::invalid_params(format!(
            "`pageSize` must be between 1 and {MAX_PAGE_SIZE}."
        )));
    }
    let history_length = history_length_member(params)?;
    let include_artifacts = bool_member(params, "includeArtifacts")?.unwrap_or(false);
    let size = if include_artifacts {
        requested_size.min(MAX_WITH_ARTIFACTS)
    } else {
        requested_size
    };
    let (filter, matches_nothing) = parse_task_filter(params)?;
    let canonical = format!("a2a tasks {filter:?}");
    let cursor: Option<TaskCursor> = match text_member(params, "pageToken")? {
        Some(token) => Some(
            context
                .page_token_signer
                .decode_position(&canonical, caller, token)?,
        ),
        None => None,
    };
    let mut page = json!({"tasks": [], "nextPageToken": "", "pageSize": size, "totalSize": 0});
    let Some(account) = task_owner_id(caller).filter(|_| !matches_nothing) else {
        return Ok(page);
    };
    let columns = TaskProjection {
        history: history_length != Some(0),
        outcomes: if include_artifacts {
            TaskState::ALL
        } else {
            &STATES_WITH_MESSAGE
        },
    };
    let read = read_task_page(context, account, &filter, cursor, size, columns);
    let TaskRowPage {
        total,
        next_cursor: next,
        rows,
    } = read.await?;
    let (written, cut_at) =
        render_tasks(context, caller, rows, history_length, include_artifacts).await?;
    if let Some(position) = cut_at.or(next) {
        let token = context
            .page_token_signer
            .sign_position(&canonical, caller, &position);
        page["nextPageToken"] = token.into();
    }
    page["tasks"] = Value::Array(written);
    page["totalSize"] = total.into();
    Ok(page)
}

/// Renders the tasks of a page. Also returns the cursor of the last one if the tasks after it are too large for the
/// page.
async fn render_tasks(
    context: &AppContext,
    caller: &Caller,
    rows: Vec<TaskWithCursor>,
    history_length: Option<usize>,
    include_artifacts: bool,
) -> Result<(Vec<Value>, Option<TaskCursor>), AppError> {
    // With artifacts one by one, because their size is known only after loading; without artifacts all at once.
    let at_once = if include_artifacts {
        1
    } else {
        rows.len().max(1)
    };
    let (mut rendered, mut bytes, mut last) = (Vec::new(), 0, None);
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let (positions, chunk): (Vec<_>, Vec<_>) = rows.by_ref().take(at_once).unzip();
        let tasks = chunk.into_iter().map(LoadedTask::from_row);
        let mut tasks = tasks.collect::<Result<Vec<LoadedTask>, _>>()?;
        redact_tasks(context, caller, &mut tasks).await?;
        let tasks = tasks.into_iter();
        let values: Vec<Value> = tasks
            .map(|task| wire_format::task_json(task, history_length, include_artifacts))
            .collect();
        if include_artifacts {
            let sizes = values.iter().map(|task| task.to_string().len());
            bytes += sizes.sum::<usize>();
            if bytes > MAX_ENTRY_BYTES && !rendered.is_empty() {
                return Ok((rendered, last));
            }
        }
        last = positions.last().copied();
        rendered.extend(values);
    }
    Ok((rendered, None))
}

/// Time at which a task entered its state, and its identifier.
type TaskCursor = (i64, Uuid);
type TaskWithCursor = (TaskCursor, a2a_task::Model);

struct TaskRowPage {
    total: u64,
    /// Cursor of the last task, if another page follows.
    next_cursor: Option<TaskCursor>,
    rows: Vec<TaskWithCursor>,
}

async fn read_task_page(
    context: &AppContext,
    account: Uuid,
    filter: &TaskFilter,
    cursor: Option<TaskCursor>,
    size: u64,
    columns: TaskProjection,
) -> Result<TaskRowPage, AppError> {
    let (store, now) = (&context.store, context.now().0);
    let total = a2a_tasks::account_task_count(store, account, filter, now).await?;
    let heads = a2a_tasks::task_positions(store, account, filter, cursor, size + 1, columns, now);
    let mut heads = heads.await?;
    let fit = count_fitting_tasks(&heads).min(usize::try_from(size).unwrap_or(usize::MAX));
    let has_more = fit < heads.len();
    heads.truncate(fit);
    let ids = heads.iter().map(|head| head.id).collect();
    let rows = a2a_tasks::live_tasks_by_ids(store, account, ids, columns, now).await?;
    let mut rows: HashMap<Uuid, a2a_task::Model> =
        rows.into_iter().map(|row| (row.id, row)).collect();
    let last = heads.last().filter(|_| has_more);
    Ok(TaskRowPage {
        total,
        next_cursor: last.map(|last| (last.updated_at, last.id)),
        rows: heads
            .iter()
            .filter_map(|head| Some(((head.updated_at, head.id), rows.remove(&head.id)?)))
            .collect(),
    })
}

/// Number of tasks that fit on a page, at least one.
fn count_fitting_tasks(heads: &[TaskPosition]) -> usize {
    let mut bytes: i64 = 0;
    let fitting = heads.iter().take_while(|head| {
        bytes = bytes.saturating_add(head.bytes);
        bytes <= MAX_PAGE_BYTES
    });
    fitting.count().max(1).min(heads.len())
}

/// Parses the filter. The flag is `true` if the filter matches no task, because tasks here never enter the state.
fn parse_task_filter(params: &Map<String, Value>) -> Result<(TaskFilter, bool), A2aError> {
    let status = text_member(params, "status")?.filter(|text| *text != "TASK_STATE_UNSPECIFIED");
    let state = status.map(wire_format::parse_task_state).transpose();
    let state = state.map_err(|()| {
        A2aError::invalid_params("`status` must be a state such as TASK_STATE_COMPLETED.")
    })?;
    let matches_nothing = state == Some(None);
    let since = text_member(params, "statusTimestampAfter")?.map(str::parse::<Timestamp>);
    let since = since.transpose().map_err(|_| {
        A2aError::invalid_params(
            "`statusTimestampAfter` must be a time such as 2026-01-31T12:00:00Z.",
        )
    })?;
    let filter = TaskFilter {
        context: identifier_member(params, "contextId")?,
        state: state.flatten(),
        since: since.map(|since| since.0),
    };
    Ok((filter, matches_nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_its_bytes_do() {
        let half = MAX_PAGE_BYTES / 2;
        for (sizes, expected) in [
            (vec![], 0),
            (vec![0; 100], 100),
            (vec![half, half], 2),
            (vec![half, half, 0], 3),
            (vec![half, half, 1], 2),
            (vec![half, half + 1], 1),
            (vec![MAX_PAGE_BYTES + 1, 0], 1),
            (vec![i64::MAX, i64::MAX], 1),
        ] {
            let heads: Vec<TaskPosition> = sizes
                .iter()
                .map(|bytes| TaskPosition {
                    id: Uuid::nil(),
                    updated_at: 0,
                    bytes: *bytes,
                })
                .collect();
            assert_eq!(count_fitting_tasks(&heads), expected, "{sizes:?}");
        }
    }
}
