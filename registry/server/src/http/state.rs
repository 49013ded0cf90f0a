//! The shared state of handlers.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::anonymous_write_limit::AnonymousWriteLimit;
use super::sign_in_limit::SignInLimit;
use super::stream_places::StreamPlaces;
use crate::context::Context;
use crate::metrics::Metrics;

/// The shared state of handlers; one for all workers of a process.
#[derive(Debug)]
pub struct State {
    pub(crate) context: Arc<Context>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) anonymous_writes: AnonymousWriteLimit,
    pub(crate) sign_ins: SignInLimit,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) task_streams: Arc<StreamPlaces>,
    pub(crate) shutdown: CancellationToken,
}

impl State {
    /// What handlers share. Event streams end when `shutdown` is cancelled.
    pub fn new(context: Arc<Context>, metrics: Arc<Metrics>, shutdown: CancellationToken) -> Self {
        let places = context.config().limits.streams.min(Semaphore::MAX_PERMITS);
        let streams = Arc::new(Semaphore::new(places));
        Self {
            anonymous_writes: AnonymousWriteLimit::new(&context),
            sign_ins: SignInLimit::new(&context),
            task_streams: Arc::new(StreamPlaces::new(Arc::clone(&streams), places)),
            streams,
            context,
            metrics,
            shutdown,
        }
    }
}
