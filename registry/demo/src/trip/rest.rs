//! The planner over HTTP+JSON (1.0 section 11).

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value};

use super::super::fault::Fault;
use super::operations::{OperationOutcome, Planner};
use super::{check_version, stream};

/// The media type of 1.0's answers.
const A2A_JSON: &str = "application/a2a+json";

/// Routes below `/rest`.
pub(in super::super) fn routes(config: &mut web::ServiceConfig) {
    config.service(
        web::scope("/rest")
            .route("/message:send", web::post().to(send))
            .route("/message:stream", web::post().to(send_streaming))
            .route("/tasks", web::get().to(list))
            .route("/tasks/{id}:cancel", web::post().to(cancel))
            .route("/tasks/{id}:subscribe", web::to(subscribe))
            .route("/tasks/{id}", web::get().to(get))
            .default_service(web::to(unknown)),
    );
}

async fn send(planner: web::Data<Planner>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    respond(
        check_version(&request)
            .and_then(|()| read(&body))
            .and_then(|params| planner.send(&params))
            .map(OperationOutcome::into_result),
    )
}

async fn send_streaming(
    planner: web::Data<Planner>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    let outcome = check_version(&request)
        .and_then(|()| read(&body))
        .and_then(|params| planner.send(&params));
    match outcome {
        Ok(outcome) => stream::respond(stream::events(&planner, &outcome)),
        Err(fault) => refuse(&fault),
    }
}

async fn get(
    planner: web::Data<Planner>,
    request: HttpRequest,
    id: web::Path<String>,
) -> HttpResponse {
    respond(check_version(&request).and_then(|()| planner.get(&id)))
}

async fn cancel(
    planner: web::Data<Planner>,
    request: HttpRequest,
    id: web::Path<String>,
) -> HttpResponse {
    respond(check_version(&request).and_then(|()| planner.cancel(&id)))
}

async fn subscribe(
    planner: web::Data<Planner>,
    request: HttpRequest,
    id: web::Path<String>,
) -> HttpResponse {
    respond(check_version(&request).and_then(|()| planner.subscribe(&id)))
}

async fn list(planner: web::Data<Planner>, request: HttpRequest) -> HttpResponse {
    let query: Map<String, Value> = url::form_urlencoded::parse(request.query_string().as_bytes())
        .map(|(name, value)| (name.into_owned(), Value::from(value)))
        .collect();
    respond(check_version(&request).and_then(|()| planner.list(&query)))
}

async fn unknown(request: HttpRequest) -> HttpResponse {
    refuse(&Fault::unknown_method(request.path()))
}

fn read(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_slice(body).map_err(Fault::not_json)? {
        Value::Object(params) => Ok(params),
        _ => Err(Fault::invalid_request("the body is a JSON object")),
    }
}

fn respond(outcome: Result<Value, Fault>) -> HttpResponse {
    match outcome {
        Ok(document) => HttpResponse::Ok()
            .content_type(A2A_JSON)
            .body(document.to_string()),
        Err(fault) => refuse(&fault),
    }
}

fn refuse(fault: &Fault) -> HttpResponse {
    let (status, body) = fault.rest();
    HttpResponse::build(status)
        .content_type(A2A_JSON)
        .body(body.to_string())
}
