//! Which phase a request is in, so that each has a limit of its own.
//!
//! The client reports an answer's head and nothing before it. A layer around its connector therefore
//! tells the request that is waiting for it when connecting begins and ends, through a task-local,
//! because the connector is first polled inside that request's own future. A request that finds an idle
//! connection never hears from the layer and counts as connected from its start.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::limits::FetchLimits;

tokio::task_local! {
    static PHASE: watch::Sender<Phase>;
}

/// Where a request stands.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Looking up the name; the look-up bounds itself.
    Resolving,
    /// Connecting and shaking hands since then.
    Connecting(Instant),
    /// Waiting for the head of the answer since then.
    Waiting(Instant),
}

/// Which phase took longer than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elapsed {
    /// TCP and TLS together.
    Connect,
    /// The head of the answer.
    FirstByte,
}

/// Runs a request, and gives up when it stays in one of its phases for longer than `limits` allow.
pub(super) async fn with_limits<F: Future>(
    limits: &FetchLimits,
    request: F,
) -> Result<F::Output, Elapsed> {
    let (sender, receiver) = watch::channel(Phase::Waiting(Instant::now()));
    tokio::select! {
        output = PHASE.scope(sender, request) => Ok(output),
        elapsed = elapsed(receiver, limits) => Err(elapsed),
    }
}

/// Completes when the limit of the present phase has passed.
async fn elapsed(mut phase: watch::Receiver<Phase>, limits: &FetchLimits) -> Elapsed {
    loop {
        let present = *phase.borrow_and_update();
        let (until, which) = match present {
            Phase::Resolving => (None, Elapsed::Connect),
            Phase::Connecting(since) => (Some(since + limits.connect), Elapsed::Connect),
            Phase::Waiting(since) => (Some(since + limits.first_byte), Elapsed::FirstByte),
        };
        let changed = match until {
            None => phase.changed().await,
            Some(until) => match tokio::time::timeout_at(until, phase.changed()).await {
                Ok(changed) => changed,
                Err(_) => return which,
            },
        };
        if changed.is_err() {
            // The request is over; its result is on its way.
            std::future::pending::<()>().await;
        }
    }
}

/// Runs a look-up on behalf of the request that waits for it, so that its time is not the connection's.
pub(super) async fn resolving<F: Future>(lookup: F) -> F::Output {
    let phase = PHASE.try_with(Clone::clone).ok();
    let enter = |next| {
        if let Some(phase) = &phase {
            phase.send_replace(next);
        }
    };
    enter(Phase::Resolving);
    let answer = lookup.await;
    enter(Phase::Connecting(Instant::now()));
    answer
}

/// Wraps the client's connector.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseLayer;

/// The wrapped connector.
#[derive(Debug, Clone)]
pub(super) struct PhaseService<S>(S);

impl<S> Layer<S> for PhaseLayer {
    type Service = PhaseService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PhaseService(inner)
    }
}

impl<S, Request> Service<Request> for PhaseService<S>
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
            phase.send_replace(Phase::Connecting(Instant::now()));
        }
        let connecting = self.0.call(request);
        Box::pin(async move {
            let Some(phase) = phase else {
                return connecting.await;
            };
            // Whoever polls the connection, the look-up inside it finds the request it is for.
            let connection = PHASE.scope(phase.clone(), connecting).await;
            phase.send_replace(Phase::Waiting(Instant::now()));
            connection
        })
    }
}
