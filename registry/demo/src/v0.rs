//! The methods of 0.2 and 0.3 over JSON-RPC, the same for both agents that speak them.

use a2a_client::v0;
use actix_web::HttpResponse;
use serde_json::{Map, Value};

use super::fault::Fault;
use super::incoming::{self, Incoming};
use super::jsonrpc;
use super::tasks::Tasks;

/// Answers one JSON-RPC body. `send` does the agent's work and gives a task or a message.
pub(super) fn dispatch(
    body: &[u8],
    tasks: &Tasks,
    send: impl FnOnce(Incoming) -> Value,
) -> HttpResponse {
    let call = match jsonrpc::read(body) {
        Ok(call) => call,
        Err((id, fault)) => return jsonrpc::refuse(&id, &fault.v0()),
    };
    let outcome = match call.method.as_str() {
        v0::SEND => incoming::read(&call.params, "user").and_then(|incoming| {
            // Every task here is completed when it is first seen, so none takes a further message.
            match &incoming.task_id {
                Some(id) if tasks.get(id).is_none() => Err(Fault::task_not_found()),
                Some(_) => Err(Fault::invalid_params(
                    "the task is completed; send a new message without taskId",
                )),
                None => Ok(send(incoming)),
            }
        }),
        v0::GET => task(&call.params, tasks),
        "tasks/cancel" => task(&call.params, tasks).and(Err(Fault::task_not_cancelable())),
        "message/stream" | "tasks/resubscribe" => {
            Err(Fault::unsupported("this agent does not stream"))
        }
        method if method.starts_with("tasks/pushNotificationConfig/") => {
            Err(Fault::push_not_supported())
        }
        method => Err(Fault::unknown_method(method)),
    };
    match outcome {
        Ok(result) => jsonrpc::respond(&jsonrpc::result(&call.id, &result)),
        Err(fault) => jsonrpc::refuse(&call.id, &fault.v0()),
    }
}

fn task(params: &Map<String, Value>, tasks: &Tasks) -> Result<Value, Fault> {
    let id = params
        .get("id")
        .and_then(Value::as_str)
        .ok_or_else(|| Fault::invalid_params("params.id is a string"))?;
    tasks.get(id).ok_or_else(Fault::task_not_found)
}

/// A message of the agent.
pub(super) fn message(message_id: &str, context_id: &str, text: &str) -> Value {
    let mut message = v0::message("agent", message_id, text);
    message["contextId"] = context_id.into();
    message
}
