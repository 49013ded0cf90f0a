//! Keeps the index up with the events, and has it built anew where it must be.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, IndexingError};
use crate::domain::timestamp::{HOUR, MINUTE};

/// How often the database is asked for events of other processes where nothing has called.
const POLL: Duration = Duration::from_millis(500);
/// How long to wait after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// How often the index is asked whether it can be read, where nobody asks for readiness.
const EXAMINED: i64 = MINUTE;
/// After a rebuild for damage the next one waits for so long, and twice as long each time up to an hour: what a
/// rebuild does not mend must not keep the process busy.
const REBUILT_AGAIN: i64 = MINUTE;

/// Starts to follow; builds the index anew first where `rebuild` says why.
pub(super) fn start(
    app: &Arc<App>,
    rebuild: Option<String>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let app = Arc::clone(app);
    app.wake.following.store(true, Ordering::Release);
    tokio::spawn(async move {
        follow(&app, rebuild, &cancel).await;
        app.wake.following.store(false, Ordering::Release);
    })
}

async fn follow(app: &Arc<App>, rebuild: Option<String>, cancel: &CancellationToken) {
    let mut wanted = rebuild;
    let mut signal = app.event_signal();
    let mut patience = Patience::default();
    let mut examined = app.now();
    if wanted.is_none() {
        let app = Arc::clone(app);
        // Beside everything else: it reads every file of the index.
        let cancel = cancel.clone();
        tokio::spawn(async move { app.index_verified(move || cancel.is_cancelled()).await });
    }
    while !cancel.is_cancelled() {
        if wanted.is_none()
            && let Some(damage) = app.index().damage()
            && patience.allows(app.now().0)
        {
            wanted = Some(damage);
        }
        let calm = match wanted.take() {
            Some(reason) => build_anew(app, reason, &mut wanted, cancel).await,
            None => catch_up(app, &mut wanted, cancel).await,
        };
        if wanted.is_some() && calm {
            continue;
        }
        let now = app.now();
        if now.0.saturating_sub(examined.0).abs() >= EXAMINED {
            examined = now;
            app.index_examined().await;
        }
        let pause = if calm { POLL } else { PAUSE };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = app.wake.reindex.notified() => {
                // Damage has a reason of its own.
                if app.index().damage().is_none() {
                    wanted = Some("an admin asked for it".into());
                }
            }
            _ = signal.changed(), if calm => {}
            () = app.wake.foreign.notified(), if calm => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// When a damaged index may be built anew.
#[derive(Debug, Default)]
struct Patience {
    last: Option<i64>,
    wait: i64,
}

impl Patience {
    /// Whether it may be now; that counts as a rebuild.
    fn allows(&mut self, now: i64) -> bool {
        // The clock may have been set back meanwhile.
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

/// Applies events until there are none left; says whether all went well.
async fn catch_up(app: &App, wanted: &mut Option<String>, cancel: &CancellationToken) -> bool {
    loop {
        match app.index_next().await {
            Ok(true) if !cancel.is_cancelled() => {}
            Ok(_) => return true,
            Err(IndexingError::Broken(reason)) => {
                *wanted = Some(reason);
                return true;
            }
            Err(IndexingError::Failed(error)) => {
                tracing::error!(error, "the search index does not follow");
                return false;
            }
        }
    }
}

/// Builds the index anew; where that fails it is wanted again.
async fn build_anew(
    app: &App,
    reason: String,
    wanted: &mut Option<String>,
    cancel: &CancellationToken,
) -> bool {
    tracing::info!(reason, "building the search index anew");
    match app.index_anew(|| cancel.is_cancelled()).await {
        Ok(Some(agents)) => {
            tracing::info!(agents, "the search index is built");
            true
        }
        Ok(None) => true,
        Err(error) => {
            tracing::error!(%error, "the search index could not be built");
            *wanted = Some(reason);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuilds_for_damage_come_ever_less_often() {
        let mut patience = Patience::default();
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
}
