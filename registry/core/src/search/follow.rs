//! Applies events to the index, and rebuilds it when necessary.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_domain::timestamp::{HOUR, MINUTE};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::search::indexing::{
    EVENTS, IndexingError, blocking, index_anew, index_examined, index_next, index_verified,
};
use crate::search::policy_switch::follow_newest;

/// How often the database is polled for events of other processes.
const POLL: Duration = Duration::from_millis(500);
/// Events of a commit after which more are about to come, as in a crawl. Acts one by one have fewer.
pub const MANY_EVENTS: u64 = 16;
/// How long the commit after such a one waits for more events: each has a fixed cost, and writes a segment to be merged.
pub const GATHER: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_secs(2);
/// The longest pause after a failed rebuild. Each failed one reads every agent for nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How often the index is checked for readability, without readiness requests.
const EXAMINED: i64 = MINUTE;
/// The pause after a rebuild because of damage, doubled each time up to an hour: damage that a rebuild does not
/// repair must not keep the process busy.
const REBUILT_AGAIN: i64 = MINUTE;

/// Starts to follow; rebuilds the index first if `rebuild` gives a reason.
pub fn start(
    context: &Arc<Context>,
    rebuild: Option<String>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let context = Arc::clone(context);
    context.wake.following.store(true, Ordering::Release);
    tokio::spawn(async move {
        follow(&context, rebuild, &cancel).await;
        context.wake.following.store(false, Ordering::Release);
        let index = context.index.clone();
        if let Err(error) = blocking(move || index.commit_applied()).await {
            tracing::debug!(%error, "the next start applies the last events again");
        }
    })
}

async fn follow(context: &Arc<Context>, rebuild: Option<String>, cancel: &CancellationToken) {
    let mut rebuilds = Rebuilds {
        wanted: rebuild,
        ..Rebuilds::default()
    };
    let mut signal = context.event_signal();
    let mut examined = context.now();
    if rebuilds.wanted.is_none() {
        let context = Arc::clone(context);
        // In a task of its own: it reads every file of the index.
        let cancel = cancel.clone();
        tokio::spawn(async move { index_verified(&context, move || cancel.is_cancelled()).await });
    }
    while !cancel.is_cancelled() {
        // What has been signalled so far is read below, and wakes nobody a second time.
        signal.mark_unchanged();
        let damage = context.index().damage();
        // Of damage that is known already `RebuildBackoff` decides, and no search hurries it.
        let damage_is_news = damage.is_none();
        if let Some(reason) = rebuilds.next(damage, context.now().0, context.uptime()) {
            build_anew(context, reason, &mut rebuilds, cancel).await;
            continue;
        }
        let calm = catch_up(context, &mut rebuilds, cancel).await
            && policies_follow(context, &mut rebuilds, cancel).await;
        if rebuilds.is_due(context.uptime()) {
            continue;
        }
        let now = context.now();
        if now.0.saturating_sub(examined.0).abs() >= EXAMINED {
            examined = now;
            index_examined(context).await;
        }
        let pause = if calm { POLL } else { PAUSE };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = context.wake.reindex.notified() => rebuilds.asked(),
            () = context.wake.damage.notified(), if calm && damage_is_news => {}
            _ = signal.changed(), if calm => {}
            () = context.wake.foreign.notified(), if calm => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The reason and time of the next rebuild.
#[derive(Debug, Default)]
struct Rebuilds {
    wanted: Option<String>,
    patience: RebuildBackoff,
    /// The pause after a failed one, and its end.
    wait: Duration,
    not_before: Duration,
}

impl Rebuilds {
    /// The reason to begin one now; `None` if none is due. `now` is wall-clock time, `uptime` is monotonic.
    fn next(&mut self, damage: Option<String>, now: i64, uptime: Duration) -> Option<String> {
        if self.wanted.is_none() && damage.is_some() && self.patience.allows(now) {
            self.wanted = damage;
        }
        self.is_due(uptime).then(|| self.wanted.take()).flatten()
    }

    /// Whether one is wanted and may begin.
    fn is_due(&self, uptime: Duration) -> bool {
        self.wanted.is_some() && uptime >= self.not_before
    }

    /// Requested by an admin, who may have removed the cause of earlier failures: begins at once.
    fn asked(&mut self) {
        self.wanted = Some("requested by an admin".into());
        self.not_before = Duration::ZERO;
    }

    /// Repeats a failed one, later each time: the cause of a failure mostly stays for a while.
    fn failed(&mut self, reason: String, uptime: Duration) {
        self.wanted = Some(reason);
        self.wait = (2 * self.wait).clamp(PAUSE, LONGEST_PAUSE);
        self.not_before = uptime + self.wait;
    }

    fn done(&mut self) {
        self.wait = Duration::ZERO;
    }
}

/// The backoff of rebuilds because of damage.
#[derive(Debug, Default)]
struct RebuildBackoff {
    last: Option<i64>,
    wait: i64,
}

impl RebuildBackoff {
    /// Whether a rebuild may begin now; if so it is counted.
    fn allows(&mut self, now: i64) -> bool {
        // The clock may have been set back since the last one.
        let since = self.last.map(|last| now.saturating_sub(last).abs());
        let wait = match since {
            Some(since) if since < self.wait => return false,
            Some(since) if since < 2 * self.wait => (2 * self.wait).min(HOUR),
            _ => REBUILT_AGAIN,
        };
        (self.last, self.wait) = (Some(now), wait);
        true
    }
}

/// Applies events until there are none left; returns whether that succeeded.
async fn catch_up(context: &Context, rebuilds: &mut Rebuilds, cancel: &CancellationToken) -> bool {
    loop {
        let before = context.index.applied_seq();
        match index_next(context).await {
            Ok(true) if !cancel.is_cancelled() => {
                let events = context.index.applied_seq().abs_diff(before);
                gather(context, events, cancel).await;
                // With fewer than a commit takes there were no more, and others are signalled.
                if events < EVENTS {
                    return true;
                }
            }
            Ok(_) => return true,
            Err(IndexingError::Broken(reason)) => {
                rebuilds.wanted.get_or_insert(reason);
                return false;
            }
            Err(IndexingError::Failed(error)) => {
                tracing::error!(error, "the search index cannot apply events");
                return false;
            }
        }
    }
}

/// Waits for further events after a commit of this many, unless a caller waits for the index.
pub async fn gather(context: &Context, events: u64, cancel: &CancellationToken) {
    // With as many as a commit takes there are others already.
    if !(MANY_EVENTS..EVENTS).contains(&events) {
        return;
    }
    tokio::select! {
        () = cancel.cancelled() => {}
        () = context.wake.awaited.notified() => {}
        () = tokio::time::sleep(GATHER) => {}
    }
}

/// Puts newer policies in force; returns whether there is nothing left to do.
async fn policies_follow(
    context: &Context,
    rebuilds: &mut Rebuilds,
    cancel: &CancellationToken,
) -> bool {
    if !context.policies.take_newer() {
        return true;
    }
    let followed = follow_newest(context, || cancel.is_cancelled()).await;
    context.policies.note_outcome(followed.is_err());
    match followed {
        Ok(true) => return true,
        Ok(false) => {}
        Err(IndexingError::Broken(reason)) => {
            rebuilds.wanted.get_or_insert(reason);
        }
        Err(IndexingError::Failed(error)) => {
            tracing::error!(error, "new policies are not in force yet");
        }
    }
    context.policies.note_newer();
    false
}

/// Rebuilds the index, and schedules another rebuild if that fails.
async fn build_anew(
    context: &Context,
    reason: String,
    rebuilds: &mut Rebuilds,
    cancel: &CancellationToken,
) {
    tracing::info!(reason, "rebuilding the search index");
    match index_anew(context, || cancel.is_cancelled()).await {
        Ok(Some(agents)) => {
            tracing::info!(agents, "the search index is rebuilt");
            rebuilds.done();
        }
        Ok(None) => {}
        Err(error) => {
            tracing::error!(%error, "the search index could not be rebuilt");
            rebuilds.failed(reason, context.uptime());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuilds_for_damage_come_ever_less_often() {
        let mut patience = RebuildBackoff::default();
        let mut begun = Vec::new();
        for minute in 0..300 {
            if patience.allows(minute * MINUTE) {
                begun.push(minute);
            }
        }
        assert_eq!(begun, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
        // After a long time without, the next one comes at once, and so does one after the clock was set back.
        assert!(patience.allows(1_000 * MINUTE) && patience.allows(1_001 * MINUTE));
        assert!(patience.allows(0));
    }

    #[test]
    fn what_fails_is_tried_ever_less_often_and_at_once_when_an_admin_asks() {
        let mut rebuilds = Rebuilds {
            wanted: Some("there is none".into()),
            ..Rebuilds::default()
        };
        let mut begun = Vec::new();
        for second in 0..700 {
            let uptime = Duration::from_secs(second);
            if let Some(reason) = rebuilds.next(None, 0, uptime) {
                begun.push(second);
                rebuilds.failed(reason, uptime);
            }
        }
        assert_eq!(begun, [0, 2, 6, 14, 30, 62, 126, 254, 510]);
        let uptime = Duration::from_secs(700);
        assert!(!rebuilds.is_due(uptime), "other work is done meanwhile");
        rebuilds.asked();
        assert!(rebuilds.next(None, 0, uptime).is_some());
        // After one that succeeds the next failure begins with the shortest pause.
        rebuilds.done();
        rebuilds.failed("again".into(), uptime);
        assert!(rebuilds.is_due(uptime + PAUSE));
    }

    #[test]
    fn an_admin_does_not_wait_with_damage() {
        let mut rebuilds = Rebuilds::default();
        let damage = || Some("a file is missing".to_owned());
        let next = |rebuilds: &mut Rebuilds| rebuilds.next(damage(), 0, Duration::ZERO);
        assert_eq!(next(&mut rebuilds), damage());
        assert_eq!(next(&mut rebuilds), None);
        rebuilds.asked();
        assert_ne!(next(&mut rebuilds), None);
        assert_eq!(next(&mut rebuilds), None);
    }
}
