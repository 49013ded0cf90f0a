//! Lists events, for callers who may read them.

use a2a_registry_api::{Event, EventList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::event;
use a2a_registry_store::event_conditions::EventRange;
use a2a_registry_store::events;
use serde_json::{Map, Value};

use crate::commit::audit_log::AUDIT_LOG;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::events::filter::{EventFilter, range_end};
use crate::paging::{ListPage, PageRequest, resolve_page_size};
use crate::visibility::caller::Caller;

/// The events that a list shows, and their order.
#[derive(Debug, Clone, Default)]
pub struct EventListQuery {
    /// Only events after this number.
    pub after: Option<i64>,
    pub filter: EventFilter,
    pub newest_first: bool,
}

/// Lists events. `next_page_token` is null if there are no more events yet; with a filter, a page may have fewer
/// entries than asked for, even none, before that.
pub async fn event_list(
    context: &AppContext,
    caller: &Caller,
    wanted: &EventListQuery,
    page: &PageRequest,
) -> Result<EventList> {
    caller.require_permission(Permission::ReadEvents)?;
    let query = format!("events {wanted:?}");
    let list = ListPage::new(&context.page_token_signer, caller, &query, page)?;
    let position: Option<i64> = list.start_position()?;
    let mut range = whole_log(context, wanted.after.unwrap_or(0)).await?;
    range.newest_first = wanted.newest_first;
    match wanted.newest_first {
        false => range.after = position.unwrap_or(range.after),
        true => range.before = position.unwrap_or(range.before),
    }
    require_existing_position(context, range.after, "/after").await?;
    let size = resolve_page_size(page.page_size)?;
    let found = wanted.filter.find_events(context, caller, range, size);
    let found = found.await?;
    let signer = &context.page_token_signer;
    let next_page_token = match found.end == range_end(range) {
        true => None,
        false => signer.sign_position(&query, caller, &found.end),
    };
    Ok(EventList {
        events: found
            .rows
            .into_iter()
            .filter_map(|row| event_view(caller, row))
            .collect(),
        next_page_token,
    })
}

/// The events after a number, up to the newest one at present.
async fn whole_log(context: &AppContext, after: i64) -> Result<EventRange> {
    let newest = events::highest_event_seq(&context.store).await?;
    Ok(EventRange {
        after,
        before: newest.saturating_add(1),
        newest_first: false,
    })
}

/// Rejects the position of an event that was lost in a restore, so that a reader learns that its history has changed.
pub async fn require_existing_position(
    context: &AppContext,
    position: i64,
    pointer: &str,
) -> Result<()> {
    let next = events::events_after(&context.store, position, 1).await?;
    reject_lost_position(position, next.first(), pointer)
}

/// `next` is the first event after the position. Numbers between the last event of a backup and the event of its
/// restore were given to events that are lost.
fn reject_lost_position(position: i64, next: Option<&event::Model>, pointer: &str) -> Result<()> {
    let Some(restored) = next.filter(|next| next.kind == EventKind::RegistryRestored) else {
        return Ok(());
    };
    let data: Value = serde_json::from_str(&restored.data).unwrap_or_default();
    let Some(last) = data["backup_event"]
        .as_i64()
        .filter(|last| *last < position)
    else {
        return Ok(());
    };
    Err(AppError {
        members: vec![(
            pointer.into(),
            format!("{position} is not an event of this registry"),
        )],
        ..AppError::new(
            ErrorKind::Invalid,
            format!(
                "The registry was restored from a backup, and event {position} is lost. Discard what you know of \
                 events after {last}, and continue after {last}."
            ),
        )
    })
}

/// Loads at most `limit` events after `position`, oldest first, for a stream. The position moves to the last event
/// that was read, shown or not, so that no event is read twice.
pub async fn load_events_after(
    context: &AppContext,
    caller: &Caller,
    filter: &EventFilter,
    position: &mut i64,
    limit: usize,
) -> Result<Vec<Event>> {
    caller.require_permission(Permission::ReadEvents)?;
    loop {
        let range = whole_log(context, *position).await?;
        if range_end(range) <= *position {
            return Ok(Vec::new());
        }
        let found = filter.find_events(context, caller, range, limit).await?;
        *position = found.end;
        let visible = found
            .rows
            .into_iter()
            .filter_map(|row| event_view(caller, row));
        let visible: Vec<Event> = visible.collect();
        // None of these events is for this caller or known to this build, so continue with the next ones.
        if !visible.is_empty() {
            return Ok(visible);
        }
    }
}

/// Requests a rebuild of the index in the background; the old index serves until it is done.
pub async fn request_reindex(context: &AppContext, caller: &Caller) -> Result<()> {
    let admin = caller.require_permission(Permission::Administer)?;
    tracing::info!(target: AUDIT_LOG, event = "reindex.requested", actor = admin.name, "done");
    context.signals.reindex.notify_one();
    Ok(())
}

/// The view of an event; `None` for an event that the caller may not read, and for a kind that only a later build
/// knows, which is logged.
fn event_view(caller: &Caller, row: event::Model) -> Option<Event> {
    use EventKind::{
        AccountAccessEnded, AccountChanged, AccountCreated, AccountDisabled, AccountEnabled,
        GroupChanged, GroupDeleted, SessionBegun, SignInRefused,
    };
    let kind = row
        .kind()
        .inspect_err(|error| tracing::error!(%error, "cannot show an event; it is left out"))
        .ok()?;
    let is_about_people = matches!(
        kind,
        AccountCreated
            | AccountAccessEnded
            | AccountChanged
            | AccountDisabled
            | AccountEnabled
            | GroupChanged
            | GroupDeleted
    );
    let reads_accounts = caller.has_permission(Permission::ReadAccounts);
    if kind == SignInRefused && !reads_accounts {
        return None;
    }
    // Events about accounts and groups show their content only to callers who may read these.
    let mut data = match is_about_people && !reads_accounts {
        true => Value::Object(Map::new()),
        false => serde_json::from_str(&row.data).unwrap_or_default(),
    };
    // The same applies to the network of a session.
    if let (SessionBegun, false, Value::Object(members)) = (kind, reads_accounts, &mut data) {
        members.remove("address");
    }
    Some(Event {
        seq: row.seq,
        at: Timestamp(row.at),
        kind: kind.into(),
        subject: row.subject,
        actor: row.actor,
        data,
    })
}
