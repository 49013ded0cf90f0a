//! Checks the proofs of every domain once a day.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;
use crate::error::Result;
use crate::ownership::verify::{
    lease_due_domain_check, release_domain_check, run_leased_domain_check,
};
use crate::visits::networks::DomainNetworkRecorder;

/// Maximum number of concurrent checks. Each makes some DNS lookups, and as many requests as a visit.
const CONCURRENT_CHECKS: usize = 4;
/// How often due checks are polled without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the due checks until cancelled. A check in progress is cancelled too and is due again minutes later.
pub fn start_domain_checks(
    context: &Arc<AppContext>,
    cancel: &CancellationToken,
) -> JoinHandle<()> {
    let mut workers = JoinSet::new();
    for _ in 0..CONCURRENT_CHECKS {
        workers.spawn(run_domain_check_worker(Arc::clone(context), cancel.clone()));
    }
    tokio::spawn(async move {
        workers.join_all().await;
    })
}

async fn run_domain_check_worker(context: Arc<AppContext>, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        match run_next_domain_check(&context, &cancel).await {
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
            () = context.signals.checks.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Runs one due check; returns whether there was one. Its lease is always given back.
async fn run_next_domain_check(context: &AppContext, cancel: &CancellationToken) -> Result<bool> {
    let Some(check) = lease_due_domain_check(context).await? else {
        return Ok(false);
    };
    if check.may_contact_host {
        let networks = DomainNetworkRecorder::default();
        match networks.record(context, &check.domain).await {
            Ok(true) => {}
            // The address block of the domain is at its limit, and the lease was given back.
            Ok(false) => return Ok(true),
            Err(error) => {
                release_domain_check(context, &check).await?;
                return Err(error.into());
            }
        }
    }
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        done = run_leased_domain_check(context, &check) => Some(done),
    };
    if let Some(Ok(())) = outcome {
        return Ok(true);
    }
    release_domain_check(context, &check).await?;
    outcome.unwrap_or(Ok(())).map(|()| true)
}
