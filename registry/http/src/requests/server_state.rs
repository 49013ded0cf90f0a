//! Shared state of handlers.

use std::sync::Arc;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::metrics::Metrics;
use actix_web::{HttpRequest, web};
use tokio_util::sync::CancellationToken;

use crate::limits::anonymous_write_limit::AnonymousWriteLimit;
use crate::limits::sign_in_limit::SignInLimit;
use crate::limits::stream_limit::StreamLimiter;
use crate::limits::unread_bytes::UnreadBytesLimiter;

/// State shared by all workers of a process.
#[derive(Debug)]
pub struct ServerState {
    pub context: Arc<AppContext>,
    pub metrics: Arc<Metrics>,
    pub anonymous_write_limit: AnonymousWriteLimit,
    pub sign_in_limit: SignInLimit,
    pub stream_limiter: Arc<StreamLimiter>,
    pub unread_bytes: Arc<UnreadBytesLimiter>,
    pub shutdown: CancellationToken,
}

impl ServerState {
    /// Creates the state. Event streams end when `shutdown` is cancelled.
    pub fn new(
        context: Arc<AppContext>,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            anonymous_write_limit: AnonymousWriteLimit::new(&context),
            sign_in_limit: SignInLimit::new(&context),
            unread_bytes: UnreadBytesLimiter::new(
                context.config().limits.unread_megabytes_per_address,
            ),
            stream_limiter: Arc::new(StreamLimiter::new(context.config().limits.streams)),
            context,
            metrics,
            shutdown,
        }
    }
}

pub fn server_state(request: &HttpRequest) -> Result<&ServerState> {
    let state = request.app_data::<web::Data<ServerState>>();
    state
        .map(|state| state.get_ref())
        .ok_or_else(|| AppError::internal("the server state is missing"))
}
