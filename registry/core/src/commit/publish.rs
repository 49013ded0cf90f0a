//! Commits the write of an act and publishes it: caches are invalidated, followers woken, and the index is waited for.
//! Nothing else commits a ledger, so that no act can forget a part of that.

use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_store::Write;

use crate::commit::ledger::Ledger;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::AppError;

/// Writes the ledger of a caller's act, and commits and publishes it. If an agent is listed afterwards this waits until
/// the index has it, so that the caller's next search finds it.
pub async fn commit_act(
    context: &Context,
    write: Write,
    ledger: Ledger<'_>,
) -> Result<(), AppError> {
    let touched = ledger.write(&write).await?;
    commit_written(context, write, [&touched]).await?;
    searchable(context, &[&touched]).await;
    Ok(())
}

/// The same without waiting for the index, if no agent becomes listed or no caller waits.
pub async fn commit_ledger(
    context: &Context,
    write: Write,
    ledger: Ledger<'_>,
) -> Result<(), AppError> {
    let touched = ledger.write(&write).await?;
    commit_written(context, write, [&touched]).await
}

/// Commits ledgers that are already written, in the order given, and publishes them: invalidates the caches that they
/// have made stale, and wakes the followers.
pub async fn commit_written<'a>(
    context: &Context,
    write: Write,
    written: impl IntoIterator<Item = &'a Touched>,
) -> Result<(), AppError> {
    write.commit().await?;
    for touched in written {
        touched.log();
        publish(context, touched);
    }
    Ok(())
}

/// The same without a log line for each act: a caller that writes very many logs its progress.
pub async fn commit_in_bulk<'a>(
    context: &Context,
    write: Write,
    written: impl IntoIterator<Item = &'a Touched>,
) -> Result<(), AppError> {
    write.commit().await?;
    for touched in written {
        publish(context, touched);
    }
    Ok(())
}

fn publish(context: &Context, touched: &Touched) {
    context.changes.note(&touched.agents);
    if let Some(seq) = touched.seq {
        context.index.note(&touched.changed, seq);
        context.wake.events.send_replace(seq);
    }
}

/// Waits until the index of this process has every agent that one of these writes has listed.
pub async fn searchable(context: &Context, written: &[&Touched]) {
    let lists = |touched: &&&Touched| touched.changed.iter().any(|agent| agent.listed);
    let listing = written.iter().filter(lists);
    if let Some(seq) = listing.filter_map(|touched| touched.seq).max() {
        index_reaches(context, seq).await;
    }
}

/// Waits until the index of this process has applied an event, for [`APPLIED_WITHIN`] at most: the act is committed
/// whether or not a search shows it. Returns at once if this process does not follow the events.
pub async fn index_reaches(context: &Context, seq: i64) {
    let mut applied = context.wake.applied.subscribe();
    let reached = || context.index.applied_seq() >= seq;
    if reached() || !context.wake.following.load(Ordering::Acquire) {
        return;
    }
    context.wake.awaited.notify_one();
    let wait = applied.wait_for(|applied| *applied >= seq);
    if tokio::time::timeout(APPLIED_WITHIN, wait).await.is_err() {
        tracing::warn!(
            seq,
            "the search index is behind; the response is sent before searches show this change"
        );
    }
}

pub const APPLIED_WITHIN: Duration = Duration::from_secs(2);
