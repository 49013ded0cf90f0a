//! Queues what events tell hooks, and sends what is due.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_store::entity::hook;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;
use crate::error::AppError;
use crate::hooks::delivery::{deliver_to_hook, end_hook_lease, lease_due_hook};
use crate::hooks::notices::queue_next_notices;

/// Maximum number of hooks to which messages are sent at the same time. A dead receiver takes ten seconds.
const CONCURRENT_HOOKS: usize = 16;
/// How often events and due deliveries are polled without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Runs both until cancelled.
pub fn start_hooks(context: &Arc<AppContext>, cancel: &CancellationToken) -> JoinHandle<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(run_notices(Arc::clone(context), cancel.clone()));
    tasks.spawn(run_deliveries(Arc::clone(context), cancel.clone()));
    tokio::spawn(async move {
        tasks.join_all().await;
    })
}

async fn run_notices(context: Arc<AppContext>, cancel: CancellationToken) {
    let mut applied = context.signals.applied_event.subscribe();
    while !cancel.is_cancelled() {
        applied.mark_unchanged();
        let queued = tokio::select! {
            () = cancel.cancelled() => return,
            queued = queue_next_notices(&context) => queued,
        };
        let pause = match queued {
            Ok(true) => continue,
            Ok(false) => POLL_INTERVAL,
            Err(error) => {
                log_failure("what events tell hooks could not be queued", &error);
                RETRY_DELAY
            }
        };
        let follows = pause == POLL_INTERVAL;
        tokio::select! {
            () = cancel.cancelled() => return,
            _ = applied.changed(), if follows => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Leases hooks one after another, and sends to several at the same time.
async fn run_deliveries(context: Arc<AppContext>, cancel: CancellationToken) {
    let mut running = JoinSet::new();
    while !cancel.is_cancelled() {
        if running.len() >= CONCURRENT_HOOKS {
            let _ended = running.join_next().await;
            continue;
        }
        let pause = match lease_due_hook(&context).await {
            Ok(Some(leased)) => {
                running.spawn(run_hook(Arc::clone(&context), cancel.clone(), leased));
                continue;
            }
            Ok(None) => POLL_INTERVAL,
            Err(error) => {
                log_failure("no hook could be leased", &error);
                RETRY_DELAY
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = context.signals.hooks.notified() => {}
            Some(_) = running.join_next() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    running.join_all().await;
}

/// Sends what is due to one hook, and gives its lease back. What is sent while the process stops and is not recorded
/// is sent again.
async fn run_hook(context: Arc<AppContext>, cancel: CancellationToken, leased: hook::Model) {
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Ok(()),
        done = deliver_to_hook(&context, &leased, &cancel) => done,
    };
    if let Err(error) = &outcome {
        log_failure("deliveries of a hook failed; they are repeated", error);
        // The lease expires, so that the failure is not repeated at once.
        return;
    }
    if let Err(error) = end_hook_lease(&context, &leased).await {
        log_failure("the lease of a hook could not be ended; it expires", &error);
    }
}

fn log_failure(message: &'static str, error: &AppError) {
    tracing::warn!(error = error.log_message(), "{message}");
}
