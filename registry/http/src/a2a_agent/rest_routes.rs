//! HTTP+JSON interface of 1.0 (section 11). Its base path is `/a2a/v1`; the same paths exist under `/a2a`.

use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::error::{A2aError, A2aErrorKind, uncached_response};
use super::operations::{A2aOperation, OperationOutput, OperationRequest};
use super::protocol_version::requested_protocol_version;
use super::task_stream::EventEncoding;
use crate::problems::problem::Problem;
use crate::requests::auth::Anyone;
use crate::requests::body::PendingBody;
use crate::requests::path_parameters::decode_path_part;
use crate::requests::server_state::ServerState;

const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

macro_rules! handlers {
    ($($handler:ident => $operation:ident;)+) => {$(
        pub(crate) async fn $handler(
            request: HttpRequest,
            caller: Anyone,
            body: PendingBody,
            state: web::Data<ServerState>,
        ) -> Result<HttpResponse, Problem> {
            run_rest_operation(A2aOperation::$operation, &request, &caller, body, &state).await
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

/// Runs an operation. The body is always read, even if the operation takes no parameters from it, such as a
/// cancellation.
async fn run_rest_operation(
    operation: A2aOperation,
    request: &HttpRequest,
    caller: &Caller,
    body: PendingBody,
    state: &web::Data<ServerState>,
) -> Result<HttpResponse, Problem> {
    let config = state.context.config();
    if !config.a2a.enabled {
        return Err(AppError::no_resource().into());
    }
    let is_json = body.is_json();
    let bytes = body
        .read_and_reauthenticate(config.limits.json_bytes)
        .await?;
    let execution = async {
        requested_protocol_version(request, false)?;
        let params = match operation {
            A2aOperation::SendMessage | A2aOperation::SendStreamingMessage => {
                parse_message_body(is_json, &bytes)?
            }
            _ => parse_task_params(request)?,
        };
        let operation_request = OperationRequest {
            request,
            caller,
            state,
            encoding: EventEncoding::Rest,
        };
        operation_request.execute(operation, &params).await
    };
    Ok(match execution.await {
        Ok(OperationOutput::Json(result)) => {
            uncached_response(StatusCode::OK, A2A_JSON, result.get().to_owned())
        }
        Ok(OperationOutput::Stream(stream)) => stream,
        Err(fault) => fault.rest_response(),
    })
}

/// Parses the parameters of a sent message, which are the body.
fn parse_message_body(is_json: bool, bytes: &[u8]) -> Result<Map<String, Value>, A2aError> {
    if !is_json {
        return Err(A2aError::new(
            A2aErrorKind::ContentTypeNotSupported,
            "Send JSON as `application/a2a+json`.",
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("The body is not a JSON object: {error}.");
        A2aError::new(A2aErrorKind::NotJson, message)
    })
}

/// Parses the parameters of all other operations: the query, and the task identifier in the path.
fn parse_task_params(request: &HttpRequest) -> Result<Map<String, Value>, A2aError> {
    let pairs = form_urlencoded::parse(request.query_string().as_bytes());
    let mut params: Map<String, Value> = pairs
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .filter(|(_, value)| value != "")
        .collect();
    let Some(task) = request.match_info().get("task") else {
        return Ok(params);
    };
    decode_path_part(request.uri().path())
        .map_err(|problem| A2aError::new(A2aErrorKind::InvalidRequest, problem.to_string()))?;
    params.insert("id".to_owned(), task.into());
    Ok(params)
}
