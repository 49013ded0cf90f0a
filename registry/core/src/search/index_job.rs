//! Applies events to the index, and rebuilds it when necessary.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_domain::timestamp::{HOUR, MINUTE};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;
use crate::search::indexing::{
    IndexingError, MAX_EVENTS_PER_COMMIT, apply_next_events, rebuild_index,
    run_blocking_index_work, trigger_index_check, verify_index_files,
};
use crate::search::policy_rollout::roll_out_newest_policies;

/// How often the database is polled for events of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Number of events in a commit from which more are expected soon, as in a crawl. Single actions have fewer.
pub const GATHER_THRESHOLD: u64 = 16;
/// How long the next commit then waits for more events: each commit has a fixed cost, and writes a segment to be
/// merged.
pub const GATHER_PAUSE: Duration = Duration::from_millis(50);
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum pause after a failed rebuild, which has read every agent for nothing.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(300);

/// How often the index is checked for readability without readiness requests.
const INDEX_CHECK_INTERVAL: i64 = MINUTE;
/// Minimum pause after a rebuild because of damage, doubled each time up to an hour: damage that a rebuild does not
/// repair must not keep the process busy.
const MIN_DAMAGE_BACKOFF: i64 = MINUTE;

/// Starts to follow events; rebuilds the index first if `rebuild_reason` is given.
pub fn start_index_job(
    context: &Arc<AppContext>,
    rebuild_reason: Option<String>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let context = Arc::clone(context);
    context
        .signals
        .is_index_following
        .store(true, Ordering::Release);
    tokio::spawn(async move {
        run_index_loop(&context, rebuild_reason, &cancel).await;
        context
            .signals
            .is_index_following
            .store(false, Ordering::Release);
        let index = context.index.clone();
        let saved = run_blocking_index_work(move || {
            index.commit_applied_seq()?;
            index.save_rule_labels();
            Ok(())
        });
        if let Err(error) = saved.await {
            tracing::debug!(%error, "the next start applies the last events again");
        }
    })
}

async fn run_index_loop(
    context: &Arc<AppContext>,
    rebuild_reason: Option<String>,
    cancel: &CancellationToken,
) {
    let mut schedule = RebuildSchedule {
        pending_reason: rebuild_reason,
        ..RebuildSchedule::default()
    };
    let mut signal = context.event_signal();
    let mut last_check = context.now();
    if schedule.pending_reason.is_none() {
        let context = Arc::clone(context);
        // In a separate task, because it reads every file of the index.
        let cancel = cancel.clone();
        tokio::spawn(
            async move { verify_index_files(&context, move || cancel.is_cancelled()).await },
        );
    }
    while !cancel.is_cancelled() {
        // The events signalled so far are read below and must not wake this loop again.
        signal.mark_unchanged();
        let damage = context.index().damage();
        // For damage that is already known `DamageBackoff` decides; searches do not speed it up.
        let is_new_damage = damage.is_none();
        if let Some(reason) =
            schedule.take_due_reason(damage, context.now().0, context.monotonic_time())
        {
            rebuild_or_reschedule(context, reason, &mut schedule, cancel).await;
            continue;
        }
        let is_caught_up = apply_pending_events(context, &mut schedule, cancel).await
            && enforce_newer_policies(context, &mut schedule, cancel).await;
        if schedule.is_due(context.monotonic_time()) {
            continue;
        }
        let now = context.now();
        if now.0.saturating_sub(last_check.0).abs() >= INDEX_CHECK_INTERVAL {
            last_check = now;
            trigger_index_check(context).await;
        }
        let pause = if is_caught_up {
            POLL_INTERVAL
        } else {
            RETRY_PAUSE
        };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = context.signals.reindex.notified() => schedule.request_now(),
            () = context.signals.index_damage.notified(), if is_caught_up && is_new_damage => {}
            _ = signal.changed(), if is_caught_up => {}
            () = context.signals.foreign_events.notified(), if is_caught_up => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The schedule of rebuilds: the reason and time of the next one.
#[derive(Debug, Default)]
struct RebuildSchedule {
    pending_reason: Option<String>,
    damage_backoff: DamageRebuildBackoff,
    /// The pause after a failed rebuild, and its end.
    retry_pause: Duration,
    not_before: Duration,
}

impl RebuildSchedule {
    /// Takes the reason to begin a rebuild now; `None` if none is due. `now` is wall-clock time, `uptime` is
    /// monotonic.
    fn take_due_reason(
        &mut self,
        damage: Option<String>,
        now: i64,
        uptime: Duration,
    ) -> Option<String> {
        if self.pending_reason.is_none() && damage.is_some() && self.damage_backoff.try_start(now) {
            self.pending_reason = damage;
        }
        self.is_due(uptime)
            .then(|| self.pending_reason.take())
            .flatten()
    }

    /// Whether a rebuild is requested and may begin.
    fn is_due(&self, uptime: Duration) -> bool {
        self.pending_reason.is_some() && uptime >= self.not_before
    }

    /// Requests a rebuild for an admin, who may have removed the cause of earlier failures: it begins at once.
    fn request_now(&mut self) {
        self.pending_reason = Some("requested by an admin, or to erase a domain".into());
        self.not_before = Duration::ZERO;
    }

    /// Schedules a failed rebuild again, later each time: the cause of a failure usually persists for a while.
    fn back_off(&mut self, reason: String, uptime: Duration) {
        self.pending_reason = Some(reason);
        self.retry_pause = (2 * self.retry_pause).clamp(RETRY_PAUSE, MAX_RETRY_PAUSE);
        self.not_before = uptime + self.retry_pause;
    }

    fn reset_backoff(&mut self) {
        self.retry_pause = Duration::ZERO;
    }
}

/// The backoff of rebuilds because of damage.
#[derive(Debug, Default)]
struct DamageRebuildBackoff {
    last_rebuild: Option<i64>,
    min_interval: i64,
}

impl DamageRebuildBackoff {
    /// Whether a rebuild may begin now; if so, counts it.
    fn try_start(&mut self, now: i64) -> bool {
        // The clock may have been set back since the last rebuild.
        let elapsed = self.last_rebuild.map(|last| now.saturating_sub(last).abs());
        let min_interval = match elapsed {
            Some(since) if since < self.min_interval => return false,
            Some(since) if since < 2 * self.min_interval => (2 * self.min_interval).min(HOUR),
            _ => MIN_DAMAGE_BACKOFF,
        };
        (self.last_rebuild, self.min_interval) = (Some(now), min_interval);
        true
    }
}

/// Applies events until there are none left; returns whether that succeeded.
async fn apply_pending_events(
    context: &AppContext,
    schedule: &mut RebuildSchedule,
    cancel: &CancellationToken,
) -> bool {
    loop {
        let seq_before = context.index.applied_seq();
        match apply_next_events(context).await {
            Ok(true) if !cancel.is_cancelled() => {
                let events = context.index.applied_seq().abs_diff(seq_before);
                wait_for_more_events(context, events, cancel).await;
                // If there were fewer than a commit takes, no events are left, and new ones are signalled.
                if events < MAX_EVENTS_PER_COMMIT {
                    return true;
                }
            }
            Ok(_) => return true,
            Err(IndexingError::Broken(reason)) => {
                schedule.pending_reason.get_or_insert(reason);
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
pub async fn wait_for_more_events(context: &AppContext, events: u64, cancel: &CancellationToken) {
    // If there were as many as a commit takes, others are already waiting.
    if !(GATHER_THRESHOLD..MAX_EVENTS_PER_COMMIT).contains(&events) {
        return;
    }
    tokio::select! {
        () = cancel.cancelled() => {}
        () = context.signals.index_awaited.notified() => {}
        () = tokio::time::sleep(GATHER_PAUSE) => {}
    }
}

/// Puts newer policies in force; returns whether there is nothing left to do.
async fn enforce_newer_policies(
    context: &AppContext,
    schedule: &mut RebuildSchedule,
    cancel: &CancellationToken,
) -> bool {
    if !context.policy_sets.take_newer_flag() {
        return true;
    }
    let result = roll_out_newest_policies(context, || cancel.is_cancelled()).await;
    context
        .policy_sets
        .record_activation_result(result.is_err());
    match result {
        Ok(true) => return true,
        Ok(false) => {}
        Err(IndexingError::Broken(reason)) => {
            schedule.pending_reason.get_or_insert(reason);
        }
        Err(IndexingError::Failed(error)) => {
            tracing::error!(error, "cannot put new policies in force yet");
        }
    }
    context.policy_sets.flag_newer_set();
    false
}

/// Rebuilds the index, and schedules another rebuild if that fails.
async fn rebuild_or_reschedule(
    context: &AppContext,
    reason: String,
    schedule: &mut RebuildSchedule,
    cancel: &CancellationToken,
) {
    tracing::info!(reason, "rebuilding the search index");
    match rebuild_index(context, || cancel.is_cancelled()).await {
        Ok(Some(agents)) => {
            tracing::info!(agents, "the search index was rebuilt");
            schedule.reset_backoff();
        }
        Ok(None) => {}
        Err(error) => {
            tracing::error!(%error, "cannot rebuild the search index");
            schedule.back_off(reason, context.monotonic_time());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuilds_for_damage_come_ever_less_often() {
        let mut patience = DamageRebuildBackoff::default();
        let mut begun = Vec::new();
        for minute in 0..300 {
            if patience.try_start(minute * MINUTE) {
                begun.push(minute);
            }
        }
        assert_eq!(begun, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
        // After a long time without a rebuild the next one may begin at once, and also after the clock was set back.
        assert!(patience.try_start(1_000 * MINUTE) && patience.try_start(1_001 * MINUTE));
        assert!(patience.try_start(0));
    }

    #[test]
    fn what_fails_is_tried_ever_less_often_and_at_once_when_an_admin_asks() {
        let mut rebuilds = RebuildSchedule {
            pending_reason: Some("there is none".into()),
            ..RebuildSchedule::default()
        };
        let mut begun = Vec::new();
        for second in 0..700 {
            let uptime = Duration::from_secs(second);
            if let Some(reason) = rebuilds.take_due_reason(None, 0, uptime) {
                begun.push(second);
                rebuilds.back_off(reason, uptime);
            }
        }
        assert_eq!(begun, [0, 2, 6, 14, 30, 62, 126, 254, 510]);
        let uptime = Duration::from_secs(700);
        assert!(!rebuilds.is_due(uptime), "other work is done meanwhile");
        rebuilds.request_now();
        assert!(rebuilds.take_due_reason(None, 0, uptime).is_some());
        // After a successful rebuild the next failure begins with the shortest pause.
        rebuilds.reset_backoff();
        rebuilds.back_off("again".into(), uptime);
        assert!(rebuilds.is_due(uptime + RETRY_PAUSE));
    }

    #[test]
    fn an_admin_does_not_wait_with_damage() {
        let mut rebuilds = RebuildSchedule::default();
        let damage = || Some("a file is missing".to_owned());
        let next =
            |rebuilds: &mut RebuildSchedule| rebuilds.take_due_reason(damage(), 0, Duration::ZERO);
        assert_eq!(next(&mut rebuilds), damage());
        assert_eq!(next(&mut rebuilds), None);
        rebuilds.request_now();
        assert_ne!(next(&mut rebuilds), None);
        assert_eq!(next(&mut rebuilds), None);
    }
}
