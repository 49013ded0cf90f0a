//! Entries of catalogs that are no cards, as they are kept: which of them may be shown, and how they end
//! (docs/model.md#entries).

use a2a_crawler::catalog::publisher_of;
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::entity::{domain, entry};
use a2a_registry_store::visit_turns::VisitRequest;
use a2a_registry_store::{Write, entries};
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::config::{Config, KeptEntries};
use crate::context::Context;
use crate::error::AppError;
use crate::visibility::stands_behind_entries;

/// Expired entries that are ended in one transaction.
const EXPIRED_AT_ONCE: u64 = 500;

/// Most entries that are kept of one domain.
pub const MAX_KEPT: usize = 200;

/// Whether entries are kept and shown at all.
pub fn keeps_entries(config: &Config) -> bool {
    config.ard.entries == KeptEntries::Verified
}

/// Whether entries of this domain's catalogs are kept: its owner has proved it, and has not opted out.
pub fn keeps_entries_of(config: &Config, row: &domain::Model) -> bool {
    keeps_entries(config) && stands_behind_entries(row)
}

/// Whether `deny_domains`, of which `denies` tells whether a domain is on it, hides an entry: it lists the domain whose catalog
/// has the entry, or its publisher.
pub(crate) fn denies_entry(denies: impl Fn(&str) -> bool, domain: &str, identifier: &str) -> bool {
    denies(domain) || publisher_of(identifier).is_some_and(denies)
}

/// Ends entries whose manifest has expired: nobody stands behind them any more. A bounded number; returns whether there may
/// be more.
///
/// # Errors
/// Where the database fails; nothing is changed then.
pub async fn end_expired(context: &Context) -> Result<bool, AppError> {
    let now = context.now();
    // Nearly always there is none, and then no other write waits for this.
    if entries::entries_expired(&context.store, now.0, 1)
        .await?
        .is_empty()
    {
        return Ok(false);
    }
    let write = context.store.write().await?;
    let rows = entries::entries_expired(&write, now.0, EXPIRED_AT_ONCE).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    end_entries(&write, &mut ledger, &rows, SYSTEM).await?;
    commit_ledger(context, write, ledger).await?;
    Ok(rows.len() as u64 == EXPIRED_AT_ONCE)
}

/// Appends the event of an entry, whose subject is the row's id.
pub(crate) fn entry_event(
    ledger: &mut Ledger<'_>,
    kind: EventKind,
    row: &entry::Model,
    actor: &str,
) {
    let data = json!({"identifier": row.identifier, "type": row.media_type});
    ledger.event(kind, row.id, actor, data);
}

/// Ends these entries.
pub(crate) async fn end_entries(
    write: &Write,
    ledger: &mut Ledger<'_>,
    rows: &[entry::Model],
    actor: &str,
) -> Result<(), AppError> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    write.entries_delete(&ids).await?;
    for row in rows {
        entry_event(ledger, EventKind::EntryEnded, row, actor);
    }
    Ok(())
}

/// Ends all entries of a domain: it was deleted, or has another owner.
pub(crate) async fn end_entries_of(
    write: &Write,
    ledger: &mut Ledger<'_>,
    domain: i64,
    actor: &str,
) -> Result<(), AppError> {
    let rows = entries::entries_of(write, &[domain]).await?;
    end_entries(write, ledger, &rows, actor).await
}

/// Ends the entries of catalogs that have ended.
pub(crate) async fn end_entries_from(
    write: &Write,
    ledger: &mut Ledger<'_>,
    domain: i64,
    catalogs: &[i64],
    actor: &str,
) -> Result<(), AppError> {
    let mut rows = entries::entries_of(write, &[domain]).await?;
    rows.retain(|row| catalogs.contains(&row.catalog_id));
    end_entries(write, ledger, &rows, actor).await
}

/// Follows a change of a domain's state: its entries are shown or hidden with it, and a domain that was just proved has its
/// catalogs fetched in full, because not all that they list was kept before.
pub(crate) async fn follow_domain(
    config: &Config,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    actor: &str,
) -> Result<(), AppError> {
    for entry in entries::entries_of(write, &[row.id]).await? {
        entry_event(ledger, EventKind::EntryChanged, &entry, actor);
    }
    if stands_behind_entries(row) {
        let at = ledger.now().0.max(row.not_before);
        let read_only = !keeps_entries(config);
        if write.catalogs_want_full(row.id, at, read_only).await? {
            let request = VisitRequest::of_registry(row);
            write.visit_turn_take(row.id, &request).await?;
            write.domain_make_visit_due(row.id, at).await?;
            // A visit that began before the proof may be about to store what it read without it.
            if row.lease.is_some() {
                write.domain_want(row.id, ledger.now().0).await?;
            }
        }
    }
    Ok(())
}

/// Ends the entry with this identifier, of whatever domain: an agent has got it as its URN.
pub(crate) async fn end_entry_named(
    write: &Write,
    ledger: &mut Ledger<'_>,
    identifier: &str,
    actor: &str,
) -> Result<(), AppError> {
    let found = entries::entries_named(write, &[identifier.to_owned()]).await?;
    let rows: Vec<entry::Model> = found.into_iter().map(|(row, _)| row).collect();
    end_entries(write, ledger, &rows, actor).await
}
