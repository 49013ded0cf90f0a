//! The whole interface as an actix application.

use std::sync::{Arc, LazyLock};

use a2a_registry_http::answers::allowed::{self, Addresses};
use a2a_registry_http::answers::catalog_links::CatalogLinks;
use a2a_registry_http::api::health;
use a2a_registry_http::mcp::McpService;
use a2a_registry_http::middleware::envelope::{self, ErrorPage};
use a2a_registry_http::middleware::unread_limit::limit_unread_bytes;
use a2a_registry_http::pages::problems;
use a2a_registry_http::requests::state::State;
use a2a_registry_http::routes::openapi::operations;
use a2a_registry_http::routes::plain::PLAIN_ROUTES;
use a2a_registry_http::routes::{api as routes, plain as plain_routes};
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Compress, from_fn};
use actix_web::web;
use utoipa_actix_web::AppExt;

/// Shared by the workers of a process.
static ADDRESSES: LazyLock<Addresses> = LazyLock::new(|| {
    let operations = operations::all().iter();
    let handlers = operations.map(|one| (one.id.as_str(), one.method.as_str(), one.path.as_str()));
    Addresses::new(handlers, PLAIN_ROUTES)
});

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
    let has_catalog = state.context.config().ard.enabled;
    let app = actix_web::App::new();
    let app = match has_catalog {
        true => app.app_data(CatalogLinks),
        false => app,
    };
    app.app_data(web::Data::from(Arc::clone(&state.context)))
        .app_data(web::Data::new(McpService::new(&state)))
        .app_data(state)
        .app_data::<&'static Addresses>(&ADDRESSES)
        .app_data(ErrorPage(problems::failed))
        .app_data(routes::DIALECT_ERRORS)
        .configure(plain_routes::frequent)
        .into_utoipa_app()
        .configure(routes::api)
        .into_app()
        .configure(plain_routes::pages)
        .default_service(web::to(allowed::unrouted))
        .wrap(from_fn(limit_unread_bytes))
        .wrap(Compress::default())
        .wrap(envelope)
}

/// The application on the metrics port: `/metrics`, and nothing else.
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
