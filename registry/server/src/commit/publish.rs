//! Publishes a committed write: invalidates caches, wakes followers, and waits for the index.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::commit::touched::Touched;
use crate::context::Context;

/// Invalidates the caches that a write has made stale, and wakes the followers.
pub(crate) fn after_write(context: &Context, touched: &Touched) {
    touched.log();
    after_bulk_write(context, touched);
}

/// The same without a line in the log for each act: whoever writes very many says how far it is.
pub(crate) fn after_bulk_write(context: &Context, touched: &Touched) {
    context.changes.note(&touched.agents);
    if let Some(seq) = touched.seq {
        context.index.note(&touched.changed, seq);
        context.wake.events.send_replace(seq);
    }
}

/// The same after a caller's act. If an agent is listed afterwards this waits until the index has it, so that the
/// caller's next search finds it.
pub(crate) async fn after_act(context: &Context, touched: &Touched) {
    after_write(context, touched);
    searchable(context, &[touched]).await;
}

/// Waits until the index of this process has every agent that one of these writes has listed.
pub(crate) async fn searchable(context: &Context, written: &[&Touched]) {
    let lists = |touched: &&&Touched| touched.changed.iter().any(|agent| agent.listed);
    let listing = written.iter().filter(lists);
    if let Some(seq) = listing.filter_map(|touched| touched.seq).max() {
        index_reaches(context, seq).await;
    }
}

/// Waits until the index of this process has applied an event, for [`APPLIED_WITHIN`] at most: the act is committed
/// whether or not a search shows it. Returns at once if this process does not follow the events.
pub(crate) async fn index_reaches(context: &Context, seq: i64) {
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

/// The longest wait of an act for the index.
pub(crate) const APPLIED_WITHIN: Duration = Duration::from_secs(2);
