//! Keeps the index up with the events, and has it built anew where it must be.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, IndexingError};

/// How often the database is asked for events of other processes where nothing has called.
const POLL: Duration = Duration::from_millis(500);
/// How long to wait after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// Starts to follow; builds the index anew first where `rebuild` says why.
pub(super) fn start(
    app: &Arc<App>,
    rebuild: Option<String>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let mut wanted = rebuild;
        let mut signal = app.event_signal();
        while !cancel.is_cancelled() {
            let calm = match wanted.take() {
                Some(reason) => build_anew(&app, reason, &mut wanted, &cancel).await,
                None => catch_up(&app, &mut wanted, &cancel).await,
            };
            if wanted.is_some() && calm {
                continue;
            }
            let pause = if calm { POLL } else { PAUSE };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = app.wake.reindex.notified() => wanted = Some("an admin asked for it".into()),
                _ = signal.changed(), if calm => {}
                () = app.wake.foreign.notified(), if calm => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
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
