//! Checks the proofs of every domain once a day.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Result;
use crate::ownership::verify::{check_give_back, check_lease, check_run};
use crate::visits::networks::NetworkRecorder;

/// Domains checked at once. Each check makes some DNS lookups, and as many requests as a visit.
const AT_ONCE: usize = 4;
/// How often to poll for due checks without a wake-up.
const POLL: Duration = Duration::from_secs(5);

/// Runs the due checks until it is cancelled; a check in progress is cancelled and is due again minutes later.
pub fn start(context: &Arc<Context>, cancel: &CancellationToken) -> JoinHandle<()> {
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        workers.spawn(run(Arc::clone(context), cancel.clone()));
    }
    tokio::spawn(async move {
        workers.join_all().await;
    })
}

async fn run(context: Arc<Context>, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        match check_next(&context, &cancel).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::warn!(
                    error,
                    "a check of domain proofs failed; it is repeated later"
                );
            }
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = context.wake.checks.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Runs one due check; returns whether there was one. Its lease is given back in every case.
async fn check_next(context: &Context, cancel: &CancellationToken) -> Result<bool> {
    let Some(check) = check_lease(context).await? else {
        return Ok(false);
    };
    if check.may_contact_host {
        let networks = NetworkRecorder::default();
        match networks.record(context, &check.domain).await {
            Ok(true) => {}
            // Its address block is at its limit; its lease was given back with that.
            Ok(false) => return Ok(true),
            Err(error) => {
                check_give_back(context, &check).await?;
                return Err(error.into());
            }
        }
    }
    let done = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        done = check_run(context, &check) => Some(done),
    };
    if let Some(Ok(())) = done {
        return Ok(true);
    }
    check_give_back(context, &check).await?;
    done.unwrap_or(Ok(())).map(|()| true)
}
