//! Protocol bindings: JSON-RPC (1.0 section 9, and all of 0.2 and 0.3), and HTTP+JSON (1.0 section 11).

use a2a_client::v1;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value};

use super::agent_handler::{AgentHandler, OperationResult};
use super::card::CardResponder;
use super::generation::ProtocolGeneration;
use super::jsonrpc;
use super::operation::Operation;
use super::rpc_error::{self, RpcError};
use super::samples::SampleDefinition;

/// Media type of responses in 1.0 over HTTP+JSON.
const A2A_JSON: &str = "application/a2a+json";

pub(super) fn configure_routes(
    config: &mut web::ServiceConfig,
    sample: &SampleDefinition,
    card: &CardResponder,
) {
    let card = card.clone();
    let serve_card = move |request: HttpRequest| {
        let response = card.respond(&request);
        async move { response }
    };
    config
        .service(web::resource(sample.card_path).route(web::get().to(serve_card)))
        .service(web::resource(sample.rpc_paths.to_vec()).route(web::post().to(handle_json_rpc)));
    if sample.generation == ProtocolGeneration::V1 {
        config.service(web::resource("/rest/{path:.*}").to(handle_http_json));
    }
}

async fn handle_json_rpc(
    agent: web::Data<AgentHandler>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    let generation = agent.generation;
    let call = match jsonrpc::parse_rpc_request(&body) {
        Ok(call) => call,
        Err((id, fault)) => {
            return jsonrpc::rpc_error_response(&id, &fault.to_json_rpc(generation));
        }
    };
    let result = check_protocol_version(generation, &request).and_then(|()| {
        let operation = generation
            .operation_for_method(&call.method)
            .ok_or_else(|| RpcError::method_not_found(&call.method))?;
        agent.perform_operation(operation, &call.params)
    });
    match result {
        Ok(OperationResult::Single(document)) => {
            jsonrpc::json_response(&jsonrpc::success_envelope(&call.id, &document))
        }
        Ok(OperationResult::Events(events)) => {
            let events = events
                .iter()
                .map(|event| jsonrpc::success_envelope(&call.id, event));
            event_stream_response(events)
        }
        Err(fault) => jsonrpc::rpc_error_response(&call.id, &fault.to_json_rpc(generation)),
    }
}

async fn handle_http_json(
    agent: web::Data<AgentHandler>,
    request: HttpRequest,
    path: web::Path<String>,
    body: web::Bytes,
) -> HttpResponse {
    let result = parse_rest_route(request.method().as_str(), &path)
        .ok_or_else(|| RpcError::method_not_found(request.path()))
        .and_then(|(operation, id)| {
            check_protocol_version(agent.generation, &request)?;
            let params = match operation {
                Operation::Send | Operation::Stream => parse_json_object(&body)?,
                Operation::List => query_params(&request)
                    .map(|(name, value)| (name, Value::from(value)))
                    .collect(),
                _ => Map::from_iter([("id".to_owned(), Value::from(id))]),
            };
            agent.perform_operation(operation, &params)
        });
    let (status, document) = match result {
        Ok(OperationResult::Events(events)) => return event_stream_response(events.into_iter()),
        Ok(OperationResult::Single(document)) => (StatusCode::OK, document),
        Err(fault) => fault.to_http_json(),
    };
    HttpResponse::build(status)
        .content_type(A2A_JSON)
        .body(document.to_string())
}

/// Operation for a method and a path below `/rest`, and the task id in the path.
fn parse_rest_route<'a>(method: &str, path: &'a str) -> Option<(Operation, &'a str)> {
    match (method, path) {
        ("POST", "message:send") => Some((Operation::Send, "")),
        ("POST", "message:stream") => Some((Operation::Stream, "")),
        ("GET", "tasks") => Some((Operation::List, "")),
        _ => {
            let task = path.strip_prefix("tasks/")?;
            match (method, task.rsplit_once(':')) {
                ("POST", Some((id, "cancel"))) => Some((Operation::Cancel, id)),
                (_, Some((id, "subscribe"))) => Some((Operation::Subscribe, id)),
                ("GET", _) => Some((Operation::Get, task)),
                _ => None,
            }
        }
    }
}

fn parse_json_object(body: &[u8]) -> Result<Map<String, Value>, RpcError> {
    match serde_json::from_slice(body).map_err(|error| RpcError::invalid_json(&error))? {
        Value::Object(params) => Ok(params),
        _ => Err(RpcError::new(
            rpc_error::INVALID_REQUEST,
            "the body must be a JSON object",
        )),
    }
}

fn query_params(request: &HttpRequest) -> impl Iterator<Item = (String, String)> {
    url::form_urlencoded::parse(request.query_string().as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
}

/// Rejects calls of other versions than 1.0 to an agent that speaks 1.0. A call without the header counts as 0.3; the
/// version may also be in the query (1.0 section 3.6).
fn check_protocol_version(
    generation: ProtocolGeneration,
    request: &HttpRequest,
) -> Result<(), RpcError> {
    if generation == ProtocolGeneration::V0 {
        return Ok(());
    }
    let header = request.headers().get("A2A-Version");
    let header = header.and_then(|value| value.to_str().ok());
    let asked = header.map(str::to_owned).or_else(|| {
        query_params(request)
            .find(|(name, _)| name.eq_ignore_ascii_case("A2A-Version"))
            .map(|(_, value)| value)
    });
    let asked = asked.as_deref().unwrap_or_default().trim();
    if asked == v1::PROTOCOL_VERSION {
        return Ok(());
    }
    let asked: String = asked.chars().take(20).collect();
    let asked = if asked.is_empty() {
        "no A2A-Version".to_owned()
    } else {
        format!("A2A-Version {asked}")
    };
    Err(RpcError::new(
        rpc_error::VERSION_NOT_SUPPORTED,
        format!("the call has {asked}; this agent requires 1.0"),
    ))
}

/// Builds a `text/event-stream` with one `data` line for each event. Serialized JSON contains no line breaks.
fn event_stream_response(events: impl Iterator<Item = Value>) -> HttpResponse {
    let body: String = events.map(|event| format!("data: {event}\n\n")).collect();
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-store"))
        .body(body)
}
