//! The shared state of handlers.

use std::sync::Arc;

use actix_web::{HttpRequest, web};
use tokio_util::sync::CancellationToken;

use super::anonymous_write_limit::AnonymousWriteLimit;
use super::sign_in_limit::SignInLimit;
use super::stream_places::StreamPlaces;
use super::unread_bytes::UnreadBytes;
use crate::context::Context;
use crate::error::AppError;
use crate::metrics::Metrics;

/// One for all workers of a process.
#[derive(Debug)]
pub struct State {
    pub(crate) context: Arc<Context>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) anonymous_writes: AnonymousWriteLimit,
    pub(crate) sign_ins: SignInLimit,
    pub(crate) streams: Arc<StreamPlaces>,
    pub(crate) unread: Arc<UnreadBytes>,
    pub(crate) shutdown: CancellationToken,
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

pub fn state(request: &HttpRequest) -> Result<&State, AppError> {
    let state = request.app_data::<web::Data<State>>();
    state
        .map(|state| state.get_ref())
        .ok_or_else(|| AppError::internal("the server carries no state"))
}
