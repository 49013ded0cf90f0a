//! Looks at the proofs of domains, each once a day.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Domains looked at at once. Each look takes some DNS questions and a request, ten seconds at most.
const AT_ONCE: usize = 4;
/// How long to wait before looking for due domains again where nothing has called.
const POLL: Duration = Duration::from_secs(5);

/// Looks at what is due until it is cancelled; a look under way is broken off and is due again minutes later.
pub(super) fn start(app: &Arc<App>, cancel: CancellationToken) -> JoinHandle<()> {
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let mut lookers = JoinSet::new();
        for _ in 0..AT_ONCE {
            lookers.spawn(look(Arc::clone(&app), cancel.clone()));
        }
        lookers.join_all().await;
    })
}

async fn look(app: Arc<App>, cancel: CancellationToken) {
    loop {
        let looked = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            looked = app.check_next_domain() => looked,
        };
        match looked {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::warn!(error, "looking for proofs failed; it is tried again later");
            }
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = app.wake.checks.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}
