//! Hears of other processes' events, so that the index need not wait for its next look.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How long to wait before listening again after the connection was lost.
const PAUSE: Duration = Duration::from_secs(2);

/// Listens until cancelled; ends at once where there is nothing to listen for.
pub(super) fn start(app: &Arc<App>, cancel: CancellationToken) -> JoinHandle<()> {
    let app = Arc::clone(app);
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = listen(&app) => {}
        }
    })
}

async fn listen(app: &App) {
    loop {
        match app.store.listen().await {
            Ok(None) => return,
            Ok(Some(mut listener)) => {
                // What happened while nobody listened.
                app.wake.foreign.notify_one();
                while listener.heard().await.is_ok() {
                    app.wake.foreign.notify_one();
                    app.wake.visits.notify_one();
                }
            }
            Err(error) => tracing::warn!(%error, "the database cannot be listened to"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
