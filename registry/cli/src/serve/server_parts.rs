//! The parts of a registry in this process: they start together and end in order.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_server::jobs::{self, JobOptions, ModelSource};
use a2a_registry_server::serve as server;
use a2a_registry_server::serve::Listeners;
use a2a_registry_server::startup;
use a2a_registry_server::trace_export::TraceExport;
use futures::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ServerRoles;
use crate::command_error::CommandError;
use crate::service_manager;

pub(super) struct ServerStartInput {
    pub(super) app: Arc<AppContext>,
    pub(super) roles: ServerRoles,
    pub(super) rebuild: Option<String>,
    pub(super) traces: Option<TraceExport>,
}

/// Background jobs of a process with these roles.
fn job_options(roles: ServerRoles, rebuild: Option<String>, metrics: Arc<Metrics>) -> JobOptions {
    JobOptions {
        crawl: roles.crawler,
        rebuild,
        on_outcome: Arc::new(move |outcome| metrics.count_crawl_outcome(outcome.as_str())),
        // Only a process that responds to searches needs the encoder.
        models: if roles.api {
            ModelSource::Configured
        } else {
            ModelSource::None
        },
    }
}

/// Starts the parts, and returns the task in which they run until `shutdown`. They end in the order of
/// docs/develop/architecture.md#shutdown: nothing new is leased or accepted, requests drain, fetches are aborted and
/// their leases returned, the index is committed, the database closed.
///
/// # Errors
/// If a part does not start; then nothing runs.
pub(super) async fn spawn_server(
    parts: ServerStartInput,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> Result<JoinHandle<Result<i64, CommandError>>, CommandError> {
    let ServerStartInput {
        app,
        roles,
        rebuild,
        traces,
    } = parts;
    let metrics = Arc::new(match &traces {
        Some(traces) => Metrics::with_span_counters(traces.counters()),
        None => Metrics::new(),
    });
    let options = job_options(roles, rebuild, Arc::clone(&metrics));
    let jobs = jobs::start_jobs(&app, options);
    let mut serving: HttpServerFuture = if listeners.is_empty() {
        Box::pin(shutdown.clone().cancelled_owned().map(Ok))
    } else {
        Box::pin(server::run_server(
            Arc::clone(&app),
            listeners,
            shutdown.clone(),
            Arc::clone(&metrics),
        ))
    };
    // An error at the start, such as a listener that cannot be used, appears at the first poll.
    if let Poll::Ready(ended) = futures::poll!(serving.as_mut()) {
        jobs.stop().await;
        startup::close_store(&app.store).await;
        let why = ended.map_or_else(
            |error| error.to_string(),
            |()| "it ended at once".to_owned(),
        );
        return Err(CommandError::new(format!("the server cannot start: {why}")));
    }
    Ok(tokio::spawn(async move {
        let drain = Duration::from_secs(app.config().server.drain_seconds);
        let serving = await_drained(serving, &shutdown, drain, &metrics);
        let stop_crawler = async {
            shutdown.cancelled().await;
            jobs.stop_crawling();
        };
        let report = service_manager::report_service_state(&app, &shutdown);
        let ((served, unanswered), (), ()) = tokio::join!(serving, stop_crawler, report);
        jobs.stop().await;
        startup::close_store(&app.store).await;
        if let Some(traces) = traces {
            traces.stop().await;
        }
        served
            .map(|()| unanswered)
            .map_err(|error| CommandError::new(format!("the server failed: {error}")))
    }))
}

/// Waits until the server has ended. Returns the number of requests, too, that had no response when `drain`
/// (`server.drain_seconds`) was over: the server drops these.
async fn await_drained(
    mut serving: HttpServerFuture,
    shutdown: &CancellationToken,
    drain: Duration,
    metrics: &Metrics,
) -> (std::io::Result<()>, i64) {
    let drain_end = async {
        shutdown.cancelled().await;
        tokio::time::sleep(drain).await;
        metrics.requests_in_flight()
    };
    let ended = tokio::select! {
        served = serving.as_mut() => (served, 0),
        unanswered = drain_end => (serving.await, unanswered),
    };
    // If the server ended by itself, everything else ends with it.
    shutdown.cancel();
    ended
}

/// Future of the API and the pages.
type HttpServerFuture = Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>>;
