//! Assigns agents their addresses, and makes the due checks.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_store::endpoint_leases::LeasedEndpointHost;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::config::CheckEndpoints;
use crate::context::AppContext;
use crate::endpoints::assignment::{advance_endpoint_assignments, clear_endpoint_assignments};
use crate::endpoints::check::{
    HostCheckProgress, check_leased_host, end_host_lease, lease_due_endpoint_host,
};
use crate::error::AppError;

/// Maximum number of hosts that are asked at the same time. A dead one takes ten seconds.
const CONCURRENT_HOSTS: usize = 16;
/// How often due checks and new events are polled without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Runs the checks until cancelled, or takes their results away from the agents if they are off.
pub fn start_endpoint_checks(
    context: &Arc<AppContext>,
    cancel: &CancellationToken,
) -> JoinHandle<()> {
    let mut tasks = JoinSet::new();
    match context.config().crawler.check_endpoints {
        CheckEndpoints::Off => {
            tasks.spawn(run_clearing(Arc::clone(context), cancel.clone()));
        }
        CheckEndpoints::Vouched => {
            tasks.spawn(run_assignments(Arc::clone(context), cancel.clone()));
            tasks.spawn(run_checks(Arc::clone(context), cancel.clone()));
        }
    }
    tokio::spawn(async move {
        tasks.join_all().await;
    })
}

async fn run_clearing(context: Arc<AppContext>, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        match clear_endpoint_assignments(&context).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                log_failure("results of endpoint checks could not be cleared", &error);
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                }
            }
        }
    }
}

async fn run_assignments(context: Arc<AppContext>, cancel: CancellationToken) {
    let mut signal = context.event_signal();
    while !cancel.is_cancelled() {
        signal.mark_unchanged();
        let pause = match advance_endpoint_assignments(&context).await {
            Ok(true) => continue,
            Ok(false) => POLL_INTERVAL,
            Err(error) => {
                log_failure("endpoints to check could not be determined", &error);
                RETRY_DELAY
            }
        };
        let follows = pause == POLL_INTERVAL;
        tokio::select! {
            () = cancel.cancelled() => return,
            _ = signal.changed(), if follows => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Leases hosts one after another, and asks several at the same time.
async fn run_checks(context: Arc<AppContext>, cancel: CancellationToken) {
    let mut running = JoinSet::new();
    while !cancel.is_cancelled() {
        if running.len() >= CONCURRENT_HOSTS {
            // A cancelled check ends at once.
            let _ended = running.join_next().await;
            continue;
        }
        let pause = match lease_due_endpoint_host(&context).await {
            Ok(Some(leased)) => {
                running.spawn(check_host(Arc::clone(&context), cancel.clone(), leased));
                continue;
            }
            Ok(None) => POLL_INTERVAL,
            Err(error) => {
                log_failure("no endpoint check could be leased", &error);
                RETRY_DELAY
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = context.signals.endpoints.notified() => {}
            // Further checks of the same host may be due.
            Some(_) = running.join_next() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    running.join_all().await;
}

/// Makes the checks of one host. Its lease is always given back.
async fn check_host(
    context: Arc<AppContext>,
    cancel: CancellationToken,
    leased: LeasedEndpointHost,
) {
    let mut progress = HostCheckProgress::default();
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Ok(()),
        done = check_leased_host(&context, &leased, &mut progress) => done,
    };
    if let Err(error) = &outcome {
        progress.delay_retry();
        log_failure("an endpoint check failed; it is repeated later", error);
    }
    if let Err(error) = end_host_lease(&context, &leased.host, progress).await {
        log_failure(
            "the lease of an endpoint check could not be ended; it expires",
            &error,
        );
    }
}

fn log_failure(message: &'static str, error: &AppError) {
    tracing::warn!(error = error.log_message(), "{message}");
}
