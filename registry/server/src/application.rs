//! Actix application with all interfaces.

use std::sync::{Arc, LazyLock};

use a2a_registry_http::answers::catalog_links::CatalogLinkHeader;
use a2a_registry_http::answers::route_table::{self, RouteTable};
use a2a_registry_http::api::health;
use a2a_registry_http::mcp::McpService;
use a2a_registry_http::middleware::envelope::{self, ErrorPageRenderer};
use a2a_registry_http::middleware::unread_limit::limit_unread_bytes;
use a2a_registry_http::pages::problems;
use a2a_registry_http::requests::server_state::ServerState;
use a2a_registry_http::routes::openapi::operations;
use a2a_registry_http::routes::plain::PLAIN_ROUTES;
use a2a_registry_http::routes::{api as routes, plain as plain_routes};
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Compress, from_fn};
use actix_web::web;
use utoipa_actix_web::AppExt;

/// Route table, shared by the workers of a process.
static ROUTE_TABLE: LazyLock<RouteTable> = LazyLock::new(|| {
    let operations = operations::all_api_operations().iter();
    let handlers = operations.map(|one| (one.id.as_str(), one.method.as_str(), one.path.as_str()));
    RouteTable::new(handlers, PLAIN_ROUTES)
});

pub fn create_application(
    state: web::Data<ServerState>,
) -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let middleware = envelope::RequestMiddleware::new(Arc::clone(&state.metrics));
    let has_catalog = state.context.config().ard.enabled;
    let app = actix_web::App::new();
    let app = match has_catalog {
        true => app.app_data(CatalogLinkHeader),
        false => app,
    };
    app.app_data(web::Data::from(Arc::clone(&state.context)))
        .app_data(web::Data::new(McpService::new(&state)))
        .app_data(state)
        .app_data::<&'static RouteTable>(&ROUTE_TABLE)
        .app_data(ErrorPageRenderer(problems::error_page))
        .app_data(routes::PROTOCOL_ERRORS)
        .configure(plain_routes::frequent)
        .into_utoipa_app()
        .configure(routes::mount_api)
        .into_app()
        .configure(plain_routes::pages)
        .default_service(web::to(route_table::handle_unrouted))
        .wrap(from_fn(limit_unread_bytes))
        .wrap(Compress::default())
        .wrap(middleware)
}

/// Application on the metrics port, which serves only `/metrics`.
pub fn create_metrics_application(
    state: web::Data<ServerState>,
) -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let middleware = envelope::RequestMiddleware::new(Arc::clone(&state.metrics));
    actix_web::App::new()
        .app_data(state)
        .route("/metrics", web::get().to(health::metrics_response))
        .default_service(web::to(health::metrics_not_found))
        .wrap(middleware)
}
