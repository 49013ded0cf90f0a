//! Listens for events of other processes, so that the index does not wait for its next poll.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;

/// The pause before listening again after the connection was lost.
const RECONNECT_PAUSE: Duration = Duration::from_secs(2);

/// Listens until cancelled; returns at once on SQLite, which has no notifications.
pub fn start_event_listener(
    context: &Arc<AppContext>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = listen_for_events(&context) => {}
        }
    })
}

async fn listen_for_events(context: &AppContext) {
    let mut is_url_checked = false;
    loop {
        match context.store.listen_for_events().await {
            Ok(None) => return,
            Ok(Some(mut listener)) => {
                if !std::mem::replace(&mut is_url_checked, true) {
                    warn_without_public_url(context).await;
                }
                // Events may have been appended before the listening began.
                context.signals.foreign_events.notify_one();
                while listener.wait_for_notification().await.is_ok() {
                    context.signals.foreign_events.notify_one();
                    context.signals.foreign_visits.notify_one();
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot listen for events of the database; retrying")
            }
        }
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

/// Warns if several processes share a database without a common `public_url`: each would put its own address in links.
async fn warn_without_public_url(context: &AppContext) {
    if !context.config().server.public_url.is_empty() {
        return;
    }
    match context.store.listener_count().await {
        Ok(listeners) if listeners > 1 => tracing::warn!(
            "another process serves this database and server.public_url is not set: links in responses lead to the \
             process that gave them; set the same public_url for all"
        ),
        Ok(_) => {}
        Err(error) => {
            tracing::debug!(%error, "cannot count the other processes of this database")
        }
    }
}
