//! Work that comes once after an upgrade: what an older build has derived is derived again.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How long to wait after a failure.
const PAUSE: Duration = Duration::from_secs(30);

/// Derives everything old again, page by page, and ends.
pub(super) fn start(app: &Arc<App>, cancel: CancellationToken) -> JoinHandle<()> {
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let mut done = 0;
        while !cancel.is_cancelled() {
            match app.derive_again().await {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => {
                    let error = error.internal.unwrap_or(error.public);
                    tracing::error!(error, "deriving cards again failed");
                    tokio::select! {
                        () = cancel.cancelled() => return,
                        () = tokio::time::sleep(PAUSE) => {}
                    }
                }
            }
        }
        if done > 0 {
            tracing::info!(
                versions = done,
                "cards of an older build were derived again"
            );
        }
    })
}
