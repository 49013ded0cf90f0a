//! Phases of a request, so that each can have its own limit.
//!
//! The client reports nothing before the response header. Therefore a layer around its connector reports when
//! connecting begins and ends, through a task-local of the request that first polls it. A request that reuses an idle
//! connection gets no report and counts as connected from its start.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::limits::FetchLimits;

tokio::task_local! {
    static PHASE: watch::Sender<RequestPhase>;
}

#[derive(Debug, Clone, Copy)]
enum RequestPhase {
    /// Resolving the name, which has its own limit.
    Resolving,
    /// Connecting, including the TLS handshake, since this time.
    Connecting(Instant),
    /// Waiting for the response header since this time.
    Waiting(Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimedOutPhase {
    Connect,
    FirstByte,
}

/// Runs a request, and fails if one of its phases takes longer than `limits` allow.
pub(super) async fn run_with_phase_limits<F: Future>(
    limits: &FetchLimits,
    request: F,
) -> Result<F::Output, TimedOutPhase> {
    let (sender, receiver) = watch::channel(RequestPhase::Waiting(Instant::now()));
    tokio::select! {
        output = PHASE.scope(sender, request) => Ok(output),
        elapsed = wait_for_phase_timeout(receiver, limits) => Err(elapsed),
    }
}

/// Completes when the limit of the current phase has passed.
async fn wait_for_phase_timeout(
    mut phase: watch::Receiver<RequestPhase>,
    limits: &FetchLimits,
) -> TimedOutPhase {
    loop {
        let current = *phase.borrow_and_update();
        let (deadline, timed_out) = match current {
            RequestPhase::Resolving => (None, TimedOutPhase::Connect),
            RequestPhase::Connecting(since) => {
                (Some(since + limits.connect), TimedOutPhase::Connect)
            }
            RequestPhase::Waiting(since) => {
                (Some(since + limits.first_byte), TimedOutPhase::FirstByte)
            }
        };
        let changed = match deadline {
            None => phase.changed().await,
            Some(until) => match tokio::time::timeout_at(until, phase.changed()).await {
                Ok(changed) => changed,
                Err(_) => return timed_out,
            },
        };
        if changed.is_err() {
            // The request is over; its result is about to be returned.
            std::future::pending::<()>().await;
        }
    }
}

/// Runs a look-up for the request that awaits it, so that its time does not count as connecting.
pub(super) async fn await_lookup_in_resolving_phase<F: Future>(lookup: F) -> F::Output {
    let phase = PHASE.try_with(Clone::clone).ok();
    let enter = |next| {
        if let Some(phase) = &phase {
            phase.send_replace(next);
        }
    };
    enter(RequestPhase::Resolving);
    let output = lookup.await;
    enter(RequestPhase::Connecting(Instant::now()));
    output
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectPhaseLayer;

#[derive(Debug, Clone)]
pub(super) struct ConnectPhaseService<S>(S);

impl<S> Layer<S> for ConnectPhaseLayer {
    type Service = ConnectPhaseService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ConnectPhaseService(inner)
    }
}

impl<S, Request> Service<Request> for ConnectPhaseService<S>
where
    S: Service<Request>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let phase = PHASE.try_with(Clone::clone).ok();
        if let Some(phase) = &phase {
            phase.send_replace(RequestPhase::Connecting(Instant::now()));
        }
        let connecting = self.0.call(request);
        Box::pin(async move {
            let Some(phase) = phase else {
                return connecting.await;
            };
            // Whichever task polls the connection, the look-up inside it is assigned to the right request.
            let connection = PHASE.scope(phase.clone(), connecting).await;
            phase.send_replace(RequestPhase::Waiting(Instant::now()));
            connection
        })
    }
}
