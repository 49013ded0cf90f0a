//! The log of everything that happened, for those who may read it.

use a2a_registry_api::{Event, EventList};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::event;
use a2a_registry_store::events;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::paging::{PageRequest, cut, page_size};

/// Events after `after` (from the beginning, where absent), oldest first. The list has no end:
/// `next_page_token` is null where nothing more has happened yet.
///
/// # Errors
/// `Forbidden` for whoever does not see everything.
pub async fn event_list(
    context: &Context,
    caller: &Caller,
    after: Option<i64>,
    page: &PageRequest,
) -> Result<EventList, AppError> {
    caller.demand(Permission::SeeAll)?;
    let size = page_size(page.page_size)?;
    let query = format!("events after {after:?}");
    let position = match &page.page_token {
        Some(token) => context.signer.position(&query, caller, token)?,
        None => after.unwrap_or(0),
    };
    let mut rows = events::events_after(&context.store, position, size as u64 + 1).await?;
    let more = cut(&mut rows, size);
    let next_page_token = more
        .then(|| {
            rows.last()
                .and_then(|last| context.signer.token(&query, caller, &last.seq))
        })
        .flatten();
    Ok(EventList {
        events: rows.into_iter().filter_map(view).collect(),
        next_page_token,
    })
}

/// At most `limit` events after `seq`, oldest first, for a stream.
///
/// # Errors
/// `Forbidden` for whoever does not see everything.
pub async fn events_after(
    context: &Context,
    caller: &Caller,
    seq: i64,
    limit: u32,
) -> Result<Vec<Event>, AppError> {
    caller.demand(Permission::SeeAll)?;
    let mut after = seq;
    loop {
        let rows = events::events_after(&context.store, after, u64::from(limit)).await?;
        let Some(last) = rows.last() else {
            return Ok(Vec::new());
        };
        after = last.seq;
        let shown: Vec<Event> = rows.into_iter().filter_map(view).collect();
        // None of these can be shown, and what comes after them is not to wait for that.
        if !shown.is_empty() {
            return Ok(shown);
        }
    }
}

/// Asks for the index to be built anew, in the background, while the old one serves.
///
/// # Errors
/// `Forbidden` for anyone but an admin.
pub async fn reindex(context: &Context, caller: &Caller) -> Result<(), AppError> {
    let admin = caller.demand(Permission::Administer)?;
    tracing::info!(act = "reindex", actor = admin.name, "done");
    context.wake.reindex.notify_one();
    Ok(())
}

/// An event as it is shown; `None`, which is logged, for one of a kind that only a later build knows.
fn view(row: event::Model) -> Option<Event> {
    let kind = row
        .kind()
        .inspect_err(|error| tracing::error!(%error, "an event is left out"))
        .ok()?;
    Some(Event {
        seq: row.seq,
        at: Timestamp(row.at),
        kind: kind.into(),
        subject: row.subject,
        actor: row.actor,
        data: serde_json::from_str(&row.data).unwrap_or_default(),
    })
}
