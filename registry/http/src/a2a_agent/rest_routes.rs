//! The interface for HTTP+JSON, of 1.0 (section 11). Its address is `/a2a/v1`; the same paths exist under `/a2a`.

use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::fault::{Fault, FaultKind, response};
use super::operations::{Operation, OperationRequest, OperationResult};
use super::stream::Form;
use super::version::version;
use crate::problems::problem::Problem;
use crate::requests::auth::Anyone;
use crate::requests::body::UnreadBody;
use crate::requests::path::decode;
use crate::requests::state::State;

const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

macro_rules! handlers {
    ($($handler:ident => $operation:ident;)+) => {$(
        pub(crate) async fn $handler(
            request: HttpRequest,
            caller: Anyone,
            body: UnreadBody,
            state: web::Data<State>,
        ) -> Result<HttpResponse, Problem> {
            answer(Operation::$operation, &request, &caller, body, &state).await
        }
    )+};
}

handlers! {
    message_send => SendMessage;
    message_stream => SendStreamingMessage;
    task_list => ListTasks;
    task_cancel => CancelTask;
    task_subscribe => SubscribeToTask;
    task_get => GetTask;
    task_push => ConfigurePush;
    extended_card => GetExtendedAgentCard;
}

/// Performs an operation. What its parameters are not read from, such as the body of a cancellation, is read all the same.
async fn answer(
    operation: Operation,
    request: &HttpRequest,
    caller: &Caller,
    body: UnreadBody,
    state: &web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let config = state.context.config();
    if !config.a2a.enabled {
        return Err(AppError::no_address().into());
    }
    let is_json = body.is_json();
    let bytes = body.read(config.limits.json_bytes).await?;
    let performed = async {
        version(request, false)?;
        let params = match operation {
            Operation::SendMessage | Operation::SendStreamingMessage => message(is_json, &bytes)?,
            _ => task_params(request)?,
        };
        let asked = OperationRequest {
            request,
            caller,
            state,
            form: Form::Rest,
        };
        asked.perform(operation, &params).await
    };
    Ok(match performed.await {
        Ok(OperationResult::Value(value)) => response(StatusCode::OK, A2A_JSON, value.to_string()),
        Ok(OperationResult::Stream(stream)) => stream,
        Err(fault) => fault.rest(),
    })
}

/// The parameters of a message that is sent, which are the body.
fn message(is_json: bool, bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
    if !is_json {
        return Err(Fault::new(
            FaultKind::ContentType,
            "Send JSON as `application/a2a+json`.",
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("The body is not a JSON object: {error}.");
        Fault::new(FaultKind::NotJson, message)
    })
}

/// The parameters of all other operations: those of the query, and the identifier of the task in the path.
fn task_params(request: &HttpRequest) -> Result<Map<String, Value>, Fault> {
    let pairs = form_urlencoded::parse(request.query_string().as_bytes());
    let mut params: Map<String, Value> = pairs
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .filter(|(_, value)| value != "")
        .collect();
    let Some(task) = request.match_info().get("task") else {
        return Ok(params);
    };
    decode(request.uri().path())
        .map_err(|problem| Fault::new(FaultKind::InvalidRequest, problem.to_string()))?;
    params.insert("id".to_owned(), task.into());
    Ok(params)
}
