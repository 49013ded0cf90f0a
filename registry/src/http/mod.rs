//! The HTTP interface: what docs/contract.md promises, and nothing that decides anything.
//!
//! A handler parses, lets the type of its caller authorise, calls one function of [`App`] and renders what it gives. One
//! envelope stands around all of them: request ids, problem documents, headers, measuring.

mod agents;
mod allowed;
mod answer;
mod auth;
mod body;
mod cards;
mod connection;
mod connections;
mod domains;
mod envelope;
mod events;
mod health;
mod openapi;
mod operations;
mod pages;
mod path;
mod problem;
mod problem_pages;
mod problems;
mod query;
mod request_id;
mod reviews;
mod routes;
mod search;
mod server;
#[cfg(test)]
mod tests;
mod tokens;
mod writes;

use std::sync::Arc;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::Compress;
use actix_web::web;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use utoipa_actix_web::AppExt;

pub use openapi::openapi_document;
pub use operations::{Operation, all as operations};
pub use problem::{MemberError, ProblemDocument};
pub use server::{Listeners, run};

use crate::app::App;
use crate::metrics::Metrics;

/// Addresses outside of the `OpenAPI` document, with their methods.
const PLAIN_ROUTES: &[(&str, &str)] = &[
    ("/openapi.json", "GET"),
    ("/docs", "GET"),
    ("/docs/{file:.*}", "GET"),
    ("/problems/{slug}", "GET"),
    ("/", "GET"),
    ("/agents/{agent}", "GET"),
    ("/agents/{agent}/", "GET"),
    ("/register", "GET"),
    ("/register", "POST"),
    ("/domains/{domain}", "GET"),
    ("/crawler", "GET"),
    ("/static/{name}", "GET"),
];

/// What handlers share; one for all workers of a process.
#[derive(Debug)]
pub struct State {
    app: Arc<App>,
    metrics: Arc<Metrics>,
    writes: writes::Writes,
    streams: Arc<Semaphore>,
    shutdown: CancellationToken,
}

impl State {
    /// What handlers share. Event streams end when `shutdown` is cancelled.
    pub fn new(app: Arc<App>, metrics: Arc<Metrics>, shutdown: CancellationToken) -> Self {
        let streams = app.config().limits.streams.min(Semaphore::MAX_PERMITS);
        Self {
            writes: writes::Writes::new(&app),
            streams: Arc::new(Semaphore::new(streams)),
            app,
            metrics,
            shutdown,
        }
    }
}

/// The whole interface as an actix application: every route with everything around it.
pub fn application(
    state: web::Data<State>,
) -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let envelope = envelope::Envelope::new(Arc::clone(&state.metrics));
    actix_web::App::new()
        .app_data(web::Data::from(Arc::clone(&state.app)))
        .app_data(state)
        .into_utoipa_app()
        .configure(routes::api)
        .into_app()
        .configure(routes::rest)
        .wrap(Compress::default())
        .wrap(envelope)
}

/// What answers on a port of its own: `/metrics`, and nothing else.
pub fn metrics_application(
    state: web::Data<State>,
) -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let envelope = envelope::Envelope::new(Arc::clone(&state.metrics));
    actix_web::App::new()
        .app_data(state)
        .route("/metrics", web::get().to(health::metrics_text))
        .default_service(web::to(health::no_metrics))
        .wrap(envelope)
}
