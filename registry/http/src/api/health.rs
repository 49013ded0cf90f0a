//! Handlers for liveness, readiness and metrics of this process.

use std::time::Duration;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::health::readiness::{Readiness, check_readiness};
use a2a_registry_core::health::received_request::{ReceivedRequest, read_registry_id};
use a2a_registry_core::health::scrape::encode_current_metrics;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{FromRequest as _, HttpRequest, HttpResponse, get, web};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::answers::response::{self, HandlerResult};
use crate::limits::client_address::{client_address, is_in_networks};
use crate::problems::problem::{Problem, ProblemDocument};
use crate::problems::problem_kinds;
use crate::requests::auth::{PermissionCheck, ReadEvents};
use crate::requests::server_state::ServerState;

/// Time limit for authenticating the caller, after which it sees as little as without a token: probes and scrapes
/// expect a response within two seconds, also while the database does not respond.
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_millis(800);

/// Check that this process is alive
#[utoipa::path(
    tag = "operation",
    security(),
    responses((status = 200, description = "The process is alive", body = String, content_type = "text/plain"))
)]
#[get("/livez")]
pub async fn livez() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        ))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .body("ok\n")
}

/// A problem document with the readiness checks.
#[derive(Debug, Serialize, ToSchema)]
struct NotReady {
    #[serde(flatten)]
    problem: ProblemDocument,
    #[serde(flatten)]
    readiness: Readiness,
}

/// Check that this process is ready for requests
///
/// The 503 response is a problem document that also has the members of the 200 response. Callers who may read events
/// see the details of each check; others see only whether it passes.
#[utoipa::path(
    tag = "operation",
    security(),
    responses(
        (status = 200, description = "The process is ready", body = Readiness),
        (status = 503, description = "The process is not ready: a problem document with the additional members of the \
        200 response",
         body = NotReady, content_type = "application/problem+json"),
    )
)]
#[get("/readyz")]
pub async fn readyz(state: web::Data<ServerState>, request: HttpRequest) -> HandlerResult {
    let context = &state.context;
    // Anonymous callers must not cause the read of what they do not see.
    let received = async {
        let sees_details = can_see_details(&request).await?;
        Ok::<_, Problem>(match sees_details {
            true => Some(received_request(
                &request,
                context,
                read_registry_id(context).await,
            )),
            false => None,
        })
    };
    let (received, mut readiness) = tokio::join!(received, check_readiness(context));
    readiness.request = received?;
    if readiness.request.is_none() {
        readiness = readiness.without_details();
    }
    // During shutdown new connections are refused; load balancers should direct clients to other replicas.
    readiness.ready &= !state.shutdown.is_cancelled();
    if readiness.ready {
        return response::json_response(StatusCode::OK, &readiness);
    }
    let failing = readiness.checks.iter().filter(|check| !check.ok);
    let names: Vec<&str> = failing.map(|check| check.name.as_str()).collect();
    let detail = if names.is_empty() {
        "The process is shutting down.".to_owned()
    } else {
        format!("These checks fail: {}.", names.join(", "))
    };
    match serde_json::to_value(&readiness) {
        Ok(Value::Object(members)) => Err(Problem::new(&problem_kinds::NOT_READY, detail)
            .with_extension_members(members)
            .with_retry_after(5)),
        _ => Err(AppError::internal("readiness is not a JSON object").into()),
    }
}

fn received_request(
    request: &HttpRequest,
    context: &AppContext,
    registry: Option<String>,
) -> ReceivedRequest {
    let trusted = &context.config().server.trusted_proxies;
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
    let header = |name: &str| {
        let value = request.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let authority = request.uri().authority();
    ReceivedRequest {
        registry,
        client: client_address(request, trusted).map(|address| address.to_string()),
        peer: peer.map(|address| address.to_string()),
        trusted: peer.is_some_and(|address| is_in_networks(trusted, address)),
        host: authority
            .map(ToString::to_string)
            .or_else(|| header("host")),
        forwarded_for: header("x-forwarded-for"),
        forwarded_host: header("x-forwarded-host"),
        forwarded_proto: header("x-forwarded-proto"),
    }
}

/// Get the metrics of this process, for Prometheus
///
/// Callers who may read events get all metrics; others get only the process metrics: requests in progress, connections
/// and streams. The response is 404 if the metrics have a separate port (`server.metrics_listen`).
#[utoipa::path(
    tag = "operation",
    security(),
    responses(
        (status = 200, description = "OpenMetrics text", body = String,
         content_type = "application/openmetrics-text"),
        (status = 404, description = "The metrics have a separate port"),
    )
)]
#[get("/metrics")]
pub async fn metrics(state: web::Data<ServerState>, request: HttpRequest) -> HandlerResult {
    let sees_details = can_see_details(&request).await?;
    match state.context.config().server.metrics_listen {
        None if sees_details => metrics_response(state).await,
        None => {
            let text = state
                .metrics
                .encode_process_metrics(count_open_streams(&state));
            openmetrics_response(text)
        }
        Some(_) => metrics_not_found().await,
    }
}

/// Responds with 404 where metrics are not served.
pub async fn metrics_not_found() -> HandlerResult {
    Err(AppError::no_resource().into())
}

pub async fn metrics_response(state: web::Data<ServerState>) -> HandlerResult {
    let streams = count_open_streams(&state);
    openmetrics_response(encode_current_metrics(&state.context, &state.metrics, streams).await)
}

/// Whether the caller sees more than the process metrics. Always `false` while the database is unavailable, because
/// authenticating the token requires it.
async fn can_see_details(request: &HttpRequest) -> Result<bool, Problem> {
    let auditor = PermissionCheck::<ReadEvents>::extract(request);
    match tokio::time::timeout(AUTHENTICATION_TIMEOUT, auditor).await {
        Ok(Ok(auditor)) => Ok(auditor.is_permitted),
        Ok(Err(problem)) if problem.kind().status.is_client_error() => Err(problem),
        Ok(Err(_)) | Err(_) => Ok(false),
    }
}

/// Number of open event and task streams.
fn count_open_streams(state: &ServerState) -> i64 {
    i64::try_from(state.stream_limiter.count_open_streams()).unwrap_or(i64::MAX)
}

fn openmetrics_response(text: Result<String, std::fmt::Error>) -> HandlerResult {
    let text = text.map_err(|error| AppError::internal(error.to_string()))?;
    Ok(HttpResponse::Ok()
        .insert_header((
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .body(text))
}
