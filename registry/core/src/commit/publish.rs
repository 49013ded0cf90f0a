//! Commits a write and publishes it: invalidates caches, wakes followers, and waits for the index. Nothing else
//! commits a change set, so that no action can omit one of these steps.

use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_store::WriteTransaction;
use tracing::Instrument as _;

use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::context::AppContext;
use crate::error::AppError;

/// Writes the change set of a caller's action, and commits and publishes it. If it makes an agent listed, this waits
/// until the index has the agent, so that the caller's next search finds it.
pub async fn commit_and_await_index(
    context: &AppContext,
    write: WriteTransaction,
    change_set: ChangeSet<'_>,
) -> Result<(), AppError> {
    let span = change_set.start_commit_span();
    let commit = async {
        let committed = change_set.write(&write).await?;
        commit_and_publish(context, write, [&committed]).await?;
        await_searchable_agents(context, &[&committed]).await;
        Ok::<(), AppError>(())
    };
    commit.instrument(span).await
}

/// Like [`commit_and_await_index`] without waiting for the index, if no agent becomes listed or no caller waits.
pub async fn commit_changes(
    context: &AppContext,
    write: WriteTransaction,
    change_set: ChangeSet<'_>,
) -> Result<(), AppError> {
    let span = change_set.start_commit_span();
    let commit = async {
        let committed = change_set.write(&write).await?;
        commit_and_publish(context, write, [&committed]).await
    };
    commit.instrument(span).await
}

/// Commits change sets that are already written, in the given order, and publishes them: invalidates the caches that
/// they made stale, and wakes the followers.
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

fn publish_changes(context: &AppContext, committed: &CommittedChanges) {
    context.change_counters.increment(&committed.changed_ids);
    if committed.changes_callers {
        context.decision_callers.invalidate();
    }
    if let Some(seq) = committed.last_seq {
        context
            .index
            .record_pending_changes(&committed.changed_agents, seq);
        context.signals.events.send_replace(seq);
    }
}

/// Waits until the index of this process has every agent that one of these writes made listed.
pub async fn await_searchable_agents(context: &AppContext, change_sets: &[&CommittedChanges]) {
    let lists =
        |touched: &&&CommittedChanges| touched.changed_agents.iter().any(|agent| agent.listed);
    let listing = change_sets.iter().filter(lists);
    if let Some(seq) = listing.filter_map(|touched| touched.last_seq).max() {
        await_indexed_event(context, seq).await;
    }
}

/// Waits until the index of this process has applied an event, for at most [`INDEX_WAIT_TIMEOUT`]: the change is
/// committed whether or not a search shows it. Returns at once if this process does not follow the events.
pub async fn await_indexed_event(context: &AppContext, seq: i64) {
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
