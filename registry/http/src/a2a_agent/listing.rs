//! The list of a caller's tasks (1.0 section 3.1.4): the one that changed last first.

use std::collections::HashMap;

use a2a_registry_core::context::Context;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::a2a_tasks::{self, TaskColumns, TaskFilter, TaskHead};
use a2a_registry_store::entity::a2a_task;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::fault::Fault;
use super::incoming::{flag, history_length, identifier, number, text};
use super::outcome::MAX_ANSWER;
use super::tasks::{Task, owner, show};
use super::wire;

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 100;
/// The most tasks on a page with what came of them, which has to be checked anew for each.
const MAX_WHOLE: u64 = 20;
/// Bytes of a page's tasks, as they are kept: a task that goes beyond begins the next page, unless it is the first.
const MAX_BYTES: i64 = 1 << 20;
/// States with which a task says something of what came of it.
const SAYING: [TaskState; 2] = [TaskState::InputRequired, TaskState::Failed];

/// A page of the caller's tasks. A caller without an account has no list: it is empty.
pub(super) async fn list(
    context: &Context,
    caller: &Caller,
    params: &Map<String, Value>,
) -> Result<Value, Fault> {
    let asked = number(params, "pageSize")?.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&asked) {
        return Err(Fault::params(format!(
            "`pageSize` is between 1 and {MAX_PAGE}."
        )));
    }
    let history = history_length(params)?;
    let whole = flag(params, "includeArtifacts")?.unwrap_or(false);
    let size = if whole { asked.min(MAX_WHOLE) } else { asked };
    let (filter, nothing) = filter(params)?;
    let canonical = format!("a2a tasks {filter:?}");
    let behind: Option<Position> = match text(params, "pageToken")? {
        Some(token) => Some(context.signer.position(&canonical, caller, token)?),
        None => None,
    };
    let mut page = json!({"tasks": [], "nextPageToken": "", "pageSize": size, "totalSize": 0});
    let Some(account) = owner(caller).filter(|_| !nothing) else {
        return Ok(page);
    };
    let columns = TaskColumns {
        history: history != Some(0),
        outcomes: if whole { TaskState::ALL } else { &SAYING },
    };
    let read = read(context, account, &filter, behind, size, columns);
    let Read { total, next, rows } = read.await?;
    let (written, cut_at) = shown(context, caller, rows, history, whole).await?;
    if let Some(position) = cut_at.or(next) {
        let token = context.signer.token(&canonical, caller, &position);
        page["nextPageToken"] = token.into();
    }
    page["tasks"] = Value::Array(written);
    page["totalSize"] = total.into();
    Ok(page)
}

/// The tasks of a page as they are shown, and the position of the last one if those behind it are too large for the page.
async fn shown(
    context: &Context,
    caller: &Caller,
    rows: Vec<Positioned>,
    history: Option<usize>,
    whole: bool,
) -> Result<(Vec<Value>, Option<Position>), AppError> {
    // With artifacts one after another, since only then it is known how large they are; without, all at once.
    let at_once = if whole { 1 } else { rows.len().max(1) };
    let (mut written, mut bytes, mut last) = (Vec::new(), 0, None);
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let (positions, some): (Vec<_>, Vec<_>) = rows.by_ref().take(at_once).unzip();
        let tasks = some.into_iter().map(Task::of);
        let mut tasks = tasks.collect::<Result<Vec<Task>, _>>()?;
        show(context, caller, &mut tasks).await?;
        let tasks = tasks.into_iter();
        let some: Vec<Value> = tasks.map(|task| wire::task(task, history, whole)).collect();
        if whole {
            let sizes = some.iter().map(|task| task.to_string().len());
            bytes += sizes.sum::<usize>();
            if bytes > MAX_ANSWER && !written.is_empty() {
                return Ok((written, last));
            }
        }
        last = positions.last().copied();
        written.extend(some);
    }
    Ok((written, None))
}

/// When a task came into its state, and its identifier.
type Position = (i64, Uuid);
type Positioned = (Position, a2a_task::Model);

struct Read {
    total: u64,
    /// The position of the last task, if another page follows.
    next: Option<Position>,
    rows: Vec<Positioned>,
}

async fn read(
    context: &Context,
    account: Uuid,
    filter: &TaskFilter,
    behind: Option<Position>,
    size: u64,
    columns: TaskColumns,
) -> Result<Read, AppError> {
    let (store, now) = (&context.store, context.now().0);
    let total = a2a_tasks::task_count(store, account, filter, now).await?;
    let heads = a2a_tasks::task_heads(store, account, filter, behind, size + 1, columns, now);
    let mut heads = heads.await?;
    let fit = fit(&heads).min(usize::try_from(size).unwrap_or(usize::MAX));
    let more = fit < heads.len();
    heads.truncate(fit);
    let ids = heads.iter().map(|head| head.id).collect();
    let rows = a2a_tasks::tasks_of(store, account, ids, columns, now).await?;
    let mut rows: HashMap<Uuid, a2a_task::Model> =
        rows.into_iter().map(|row| (row.id, row)).collect();
    let last = heads.last().filter(|_| more);
    Ok(Read {
        total,
        next: last.map(|last| (last.updated_at, last.id)),
        rows: heads
            .iter()
            .filter_map(|head| Some(((head.updated_at, head.id), rows.remove(&head.id)?)))
            .collect(),
    })
}

/// How many of the tasks a page takes, at least one.
fn fit(heads: &[TaskHead]) -> usize {
    let mut bytes: i64 = 0;
    let fitting = heads.iter().take_while(|head| {
        bytes = bytes.saturating_add(head.bytes);
        bytes <= MAX_BYTES
    });
    fitting.count().max(1).min(heads.len())
}

/// The filter, and whether no task can pass it: those of a state that no task here comes into.
fn filter(params: &Map<String, Value>) -> Result<(TaskFilter, bool), Fault> {
    let status = text(params, "status")?.filter(|text| *text != "TASK_STATE_UNSPECIFIED");
    let state = status.map(wire::read_state).transpose();
    let state =
        state.map_err(|()| Fault::params("`status` is a state such as TASK_STATE_COMPLETED."))?;
    let nothing = state == Some(None);
    let since = text(params, "statusTimestampAfter")?.map(str::parse::<Timestamp>);
    let since = since.transpose().map_err(|_| {
        Fault::params("`statusTimestampAfter` is a time such as 2026-01-31T12:00:00Z.")
    })?;
    let filter = TaskFilter {
        context: identifier(params, "contextId")?,
        state: state.flatten(),
        since: since.map(|since| since.0),
    };
    Ok((filter, nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_its_bytes_do() {
        let half = MAX_BYTES / 2;
        for (sizes, expected) in [
            (vec![], 0),
            (vec![0; 100], 100),
            (vec![half, half], 2),
            (vec![half, half, 0], 3),
            (vec![half, half, 1], 2),
            (vec![half, half + 1], 1),
            (vec![MAX_BYTES + 1, 0], 1),
            (vec![i64::MAX, i64::MAX], 1),
        ] {
            let heads: Vec<TaskHead> = sizes
                .iter()
                .map(|bytes| TaskHead {
                    id: Uuid::nil(),
                    updated_at: 0,
                    bytes: *bytes,
                })
                .collect();
            assert_eq!(fit(&heads), expected, "{sizes:?}");
        }
    }
}
