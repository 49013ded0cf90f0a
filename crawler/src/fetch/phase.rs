//! Which phase a request is in, so that each has a limit of its own.
//!
//! The client reports an answer's head and nothing before it. A layer around its connector therefore
//! tells the request that is waiting for it when connecting begins and ends, through a task-local,
//! because the connector is first polled inside that request's own future. A request that finds an idle
//! connection never hears from the layer and counts as connected from its start.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static PHASE: watch::Sender<Phase>;
}

/// Where a request stands.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Resolving, connecting or shaking hands; the connector bounds that itself.
    Connecting,
    /// Waiting for the head of the answer since then.
    Waiting(Instant),
}

/// The request waited longer for the head of its answer than it may.
#[derive(Debug)]
pub(super) struct FirstByteElapsed;

/// Runs a request, and gives up when its answer's head does not come within `limit` of its connection.
pub(super) async fn with_first_byte_limit<F: Future>(
    limit: Duration,
    request: F,
) -> Result<F::Output, FirstByteElapsed> {
    let (sender, receiver) = watch::channel(Phase::Waiting(Instant::now()));
    tokio::select! {
        output = PHASE.scope(sender, request) => Ok(output),
        () = elapsed(receiver, limit) => Err(FirstByteElapsed),
    }
}

/// Completes when `limit` has passed in the waiting phase.
async fn elapsed(mut phase: watch::Receiver<Phase>, limit: Duration) {
    loop {
        let since = match *phase.borrow_and_update() {
            Phase::Connecting => None,
            Phase::Waiting(since) => Some(since),
        };
        let changed = match since {
            None => phase.changed().await,
            Some(since) => match tokio::time::timeout_at(since + limit, phase.changed()).await {
                Ok(changed) => changed,
                Err(_) => return,
            },
        };
        if changed.is_err() {
            // The request is over; its result is on its way.
            std::future::pending::<()>().await;
        }
    }
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
            phase.send_replace(Phase::Connecting);
        }
        let connecting = self.0.call(request);
        Box::pin(async move {
            let connection = connecting.await;
            if let Some(phase) = phase {
                phase.send_replace(Phase::Waiting(Instant::now()));
            }
            connection
        })
    }
}
