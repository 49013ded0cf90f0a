//! Ends and beginnings of a write: what this process forgets and shows once it is kept.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::commit::ledger::Touched;
use crate::context::Context;

/// Makes everybody in this process forget what a write has made wrong, and wakes the followers.
pub(crate) fn after_write(context: &Context, touched: &Touched) {
    touched.log();
    context.changes.note(&touched.agents);
    if let Some(seq) = touched.seq {
        context.index.note(&touched.changed, seq);
        context.wake.events.send_replace(seq);
    }
}

/// The same after what somebody has done and waits for. Where an agent is listed afterwards that ends once the
/// index of this process has it, so that whoever searches next finds it as it is now.
pub(crate) async fn after_act(context: &Context, touched: &Touched) {
    after_write(context, touched);
    searchable(context, &[touched]).await;
}

/// Ends once the index of this process has every agent that was listed after one of these writes.
pub(crate) async fn searchable(context: &Context, written: &[&Touched]) {
    let lists = |touched: &&&Touched| touched.changed.iter().any(|agent| agent.listed);
    let listing = written.iter().filter(lists);
    if let Some(seq) = listing.filter_map(|touched| touched.seq).max() {
        index_reaches(context, seq).await;
    }
}

/// Waits until the index of this process has applied an event, for [`APPLIED_WITHIN`] at most: what was done is
/// done, whether or not search shows it yet. Nothing is waited for where this process follows no events.
pub(crate) async fn index_reaches(context: &Context, seq: i64) {
    let mut applied = context.wake.applied.subscribe();
    let reached = || context.index.applied_seq() >= seq;
    if reached() || !context.wake.following.load(Ordering::Acquire) {
        return;
    }
    let wait = applied.wait_for(|applied| *applied >= seq);
    if tokio::time::timeout(APPLIED_WITHIN, wait).await.is_err() {
        tracing::warn!(
            seq,
            "the search index is behind; what was done is answered before a search shows it"
        );
    }
}

/// How long an act waits for the index to have it.
pub(crate) const APPLIED_WITHIN: Duration = Duration::from_secs(2);

/// Changes whenever this process has appended or seen an event.
pub fn event_signal(context: &Context) -> tokio::sync::watch::Receiver<i64> {
    context.wake.events.subscribe()
}
