//! The shared state of handlers.

use std::sync::Arc;

use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::metrics::Metrics;
use actix_web::{HttpRequest, web};
use tokio_util::sync::CancellationToken;

use crate::limits::anonymous_write_limit::AnonymousWriteLimit;
use crate::limits::sign_in_limit::SignInLimit;
use crate::limits::stream_places::StreamPlaces;
use crate::limits::unread_bytes::UnreadBytes;

/// One for all workers of a process.
#[derive(Debug)]
pub struct State {
    pub context: Arc<Context>,
    pub metrics: Arc<Metrics>,
    pub anonymous_writes: AnonymousWriteLimit,
    pub sign_ins: SignInLimit,
    pub streams: Arc<StreamPlaces>,
    pub unread: Arc<UnreadBytes>,
    pub shutdown: CancellationToken,
}

impl State {
    /// Event streams end when `shutdown` is cancelled.
    pub fn new(context: Arc<Context>, metrics: Arc<Metrics>, shutdown: CancellationToken) -> Self {
        Self {
            anonymous_writes: AnonymousWriteLimit::new(&context),
            sign_ins: SignInLimit::new(&context),
            unread: UnreadBytes::new(context.config().limits.unread_megabytes_per_address),
            streams: Arc::new(StreamPlaces::new(context.config().limits.streams)),
            context,
            metrics,
            shutdown,
        }
    }
}

pub fn state(request: &HttpRequest) -> Result<&State> {
    let state = request.app_data::<web::Data<State>>();
    state
        .map(|state| state.get_ref())
        .ok_or_else(|| AppError::internal("the server carries no state"))
}
