//! The list of a caller's tasks (1.0 section 3.1.4): the one that changed last first.

use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::a2a_tasks::{self, TaskFilter};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::fault::Fault;
use super::incoming::{flag, history_length, identifier, number, text};
use super::tasks::{Task, owner, show};
use super::wire;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::paging::cut;

/// Tasks on a page by default.
const PAGE: u64 = 50;
/// The most tasks on a page.
const MAX_PAGE: u64 = 100;
/// The most tasks on a page with what came of them, which has to be checked anew for each.
const MAX_WHOLE: u64 = 20;

/// A page of the caller's tasks. A caller without an account has no list: it is empty.
///
/// # Errors
/// `InvalidParams`, also for a page token of another list or caller.
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
    let behind: Option<(i64, Uuid)> = match text(params, "pageToken")? {
        Some(token) => Some(context.signer.position(&canonical, caller, token)?),
        None => None,
    };
    let mut page = json!({"tasks": [], "nextPageToken": "", "pageSize": size, "totalSize": 0});
    let Some(account) = owner(caller).filter(|_| !nothing) else {
        return Ok(page);
    };
    let now = context.now().0;
    let rows = async {
        let total = a2a_tasks::task_count(&context.store, account, &filter, now).await?;
        let rows =
            a2a_tasks::task_page(&context.store, account, &filter, behind, size + 1, now).await?;
        Ok::<_, AppError>((total, rows))
    };
    let (total, mut rows) = rows.await?;
    let more = cut(&mut rows, usize::try_from(size).unwrap_or(usize::MAX));
    if let Some(last) = rows.last().filter(|_| more) {
        let token = context
            .signer
            .token(&canonical, caller, &(last.updated_at, last.id));
        page["nextPageToken"] = token.into();
    }
    let mut tasks = rows
        .into_iter()
        .map(Task::of)
        .collect::<Result<Vec<Task>, _>>()?;
    show(context, caller, &mut tasks).await?;
    let written = tasks
        .into_iter()
        .map(|task| wire::task(task, history, whole));
    page["tasks"] = written.collect();
    page["totalSize"] = total.into();
    Ok(page)
}

/// The filter, and whether no task can pass it: those of a state that no task here comes into.
fn filter(params: &Map<String, Value>) -> Result<(TaskFilter, bool), Fault> {
    let state = match text(params, "status")? {
        None | Some("TASK_STATE_UNSPECIFIED") => Some(None),
        Some(state) => match wire::read_state(state) {
            Ok(Some(known)) => Some(Some(known)),
            Ok(None) => None,
            Err(()) => {
                return Err(Fault::params(
                    "`status` is a state such as TASK_STATE_COMPLETED.",
                ));
            }
        },
    };
    let since = text(params, "statusTimestampAfter")?.map(str::parse::<Timestamp>);
    let since = since.transpose().map_err(|_| {
        Fault::params("`statusTimestampAfter` is a time such as 2026-01-31T12:00:00Z.")
    })?;
    let filter = TaskFilter {
        context: identifier(params, "contextId")?,
        state: state.flatten(),
        since: since.map(|since| since.0),
    };
    Ok((filter, state.is_none()))
}
