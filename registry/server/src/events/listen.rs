//! Hears of other processes' events, so that the index need not wait for its next look.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;

/// How long to wait before listening again after the connection was lost.
const PAUSE: Duration = Duration::from_secs(2);

/// Listens until cancelled; ends at once where there is nothing to listen for.
pub(crate) fn start(context: &Arc<Context>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = listen(&context) => {}
        }
    })
}

async fn listen(context: &Context) {
    let mut compared = false;
    loop {
        match context.store.listen().await {
            Ok(None) => return,
            Ok(Some(mut listener)) => {
                if !std::mem::replace(&mut compared, true) {
                    warn_without_public_url(context).await;
                }
                // What happened while nobody listened.
                context.wake.foreign.notify_one();
                while listener.heard().await.is_ok() {
                    context.wake.foreign.notify_one();
                    context.wake.visits.notify_one();
                }
            }
            Err(error) => tracing::warn!(%error, "the database cannot be listened to"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Several processes on one database name themselves in links, each another, unless they are told a common address.
async fn warn_without_public_url(context: &Context) {
    if !context.config().server.public_url.is_empty() {
        return;
    }
    match context.store.listeners().await {
        Ok(listeners) if listeners > 1 => tracing::warn!(
            "another process serves this database and server.public_url is not set: links in answers lead to the \
             process that gave them; set the same public_url for all"
        ),
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "who else serves this database is not known"),
    }
}
