//! Commits the write of an act and publishes it: caches are invalidated, followers woken, and the index is waited for.
//! Nothing else commits a ledger, so that no act can forget a part of that.

use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_store::WriteTransaction;

use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::context::AppContext;
use crate::error::AppError;

/// Writes the ledger of a caller's act, and commits and publishes it. If an agent is listed afterwards this waits until
/// the index has it, so that the caller's next search finds it.
pub async fn commit_and_await_index(
    context: &AppContext,
    write: WriteTransaction,
    change_set: ChangeSet<'_>,
) -> Result<(), AppError> {
    let committed = change_set.write(&write).await?;
    commit_and_publish(context, write, [&committed]).await?;
    await_searchable(context, &[&committed]).await;
    Ok(())
}

/// The same without waiting for the index, if no agent becomes listed or no caller waits.
pub async fn commit_changes(
    context: &AppContext,
    write: WriteTransaction,
    change_set: ChangeSet<'_>,
) -> Result<(), AppError> {
    let committed = change_set.write(&write).await?;
    commit_and_publish(context, write, [&committed]).await
}

/// Commits ledgers that are already written, in the order given, and publishes them: invalidates the caches that they
/// have made stale, and wakes the followers.
pub async fn commit_and_publish<'a>(
    context: &AppContext,
    write: WriteTransaction,
    change_sets: impl IntoIterator<Item = &'a CommittedChanges>,
) -> Result<(), AppError> {
    write.commit().await?;
    for committed in change_sets {
        committed.log_actions();
        publish_changes(context, committed);
    }
    Ok(())
}

/// The same without a log line for each act: a caller that writes very many logs its progress.
pub async fn commit_and_publish_unlogged<'a>(
    context: &AppContext,
    write: WriteTransaction,
    change_sets: impl IntoIterator<Item = &'a CommittedChanges>,
) -> Result<(), AppError> {
    write.commit().await?;
    for committed in change_sets {
        publish_changes(context, committed);
    }
    Ok(())
}

fn publish_changes(context: &AppContext, committed: &CommittedChanges) {
    context.change_counters.increment(&committed.changed_ids);
    if let Some(seq) = committed.last_seq {
        context.index.record_changes(&committed.changed_agents, seq);
        context.signals.events.send_replace(seq);
    }
}

/// Waits until the index of this process has every agent that one of these writes has listed.
pub async fn await_searchable(context: &AppContext, change_sets: &[&CommittedChanges]) {
    let lists =
        |touched: &&&CommittedChanges| touched.changed_agents.iter().any(|agent| agent.listed);
    let listing = change_sets.iter().filter(lists);
    if let Some(seq) = listing.filter_map(|touched| touched.last_seq).max() {
        await_index(context, seq).await;
    }
}

/// Waits until the index of this process has applied an event, for [`APPLIED_WITHIN`] at most: the act is committed
/// whether or not a search shows it. Returns at once if this process does not follow the events.
pub async fn await_index(context: &AppContext, seq: i64) {
    let mut applied = context.signals.applied_event.subscribe();
    let reached = || context.index.applied_seq() >= seq;
    if reached() || !context.signals.is_index_following.load(Ordering::Acquire) {
        return;
    }
    context.signals.index_awaited.notify_one();
    let wait = applied.wait_for(|applied| *applied >= seq);
    if tokio::time::timeout(INDEX_WAIT_TIMEOUT, wait)
        .await
        .is_err()
    {
        tracing::warn!(
            seq,
            "the search index is behind; the response is sent before searches show this change"
        );
    }
}

pub const INDEX_WAIT_TIMEOUT: Duration = Duration::from_secs(2);
