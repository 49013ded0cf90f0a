//! The planner over JSON-RPC (1.0 section 9).

use a2a_client::v1;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Map, Value};

use super::super::fault::Fault;
use super::super::jsonrpc::{self, Call};
use super::operations::{OperationOutcome, Planner};
use super::{check_version, stream};

/// Answers one request, which may ask for a stream.
pub(in super::super) fn answer(
    planner: &Planner,
    request: &HttpRequest,
    body: &[u8],
) -> HttpResponse {
    let call = match jsonrpc::read(body) {
        Ok(call) => call,
        Err((id, fault)) => return jsonrpc::refuse(&id, &fault.v1()),
    };
    let answered = check_version(request).and_then(|()| match call.method.as_str() {
        "SendStreamingMessage" => streamed(planner, &call),
        _ => call_once(planner, &call)
            .map(|result| jsonrpc::respond(&jsonrpc::result(&call.id, &result))),
    });
    answered.unwrap_or_else(|fault| jsonrpc::refuse(&call.id, &fault.v1()))
}

fn streamed(planner: &Planner, call: &Call) -> Result<HttpResponse, Fault> {
    let outcome = planner.send(&call.params)?;
    let events = stream::events(planner, &outcome);
    let wrapped = events
        .iter()
        .map(|event| jsonrpc::result(&call.id, event))
        .collect();
    Ok(stream::respond(wrapped))
}

fn call_once(planner: &Planner, call: &Call) -> Result<Value, Fault> {
    let params = &call.params;
    match call.method.as_str() {
        v1::SEND => planner.send(params).map(OperationOutcome::into_result),
        v1::GET => planner.get(id(params)?),
        "ListTasks" => planner.list(params),
        "CancelTask" => planner.cancel(id(params)?),
        "SubscribeToTask" => planner.subscribe(id(params)?),
        "GetExtendedAgentCard" => Err(Fault::unsupported("this agent has no extended card")),
        method if method.contains("TaskPushNotificationConfig") => Err(Fault::push_not_supported()),
        method => Err(Fault::unknown_method(method)),
    }
}

fn id(params: &Map<String, Value>) -> Result<&str, Fault> {
    params
        .get("id")
        .and_then(Value::as_str)
        .ok_or_else(|| Fault::invalid_params("params.id is a string"))
}
