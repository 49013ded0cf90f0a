//! The forms of 0.1, in which the sender names the task, and every message belongs to one.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::operation::Operation;
use super::{Message, Part, ProtocolBinding, push};

/// Method that sends a message.
pub const SEND_MESSAGE: &str = "tasks/send";
/// Method that sends a message and streams the answer.
pub const STREAM_MESSAGE: &str = "tasks/sendSubscribe";
/// Method that gets a task.
pub const GET_TASK: &str = "tasks/get";
/// Method that cancels a task.
pub const CANCEL_TASK: &str = "tasks/cancel";
/// Method that streams the further events of a task.
pub const SUBSCRIBE_TASK: &str = "tasks/resubscribe";
/// Method that would list tasks, which 0.1 does not have, so an agent refuses it.
const LIST_TASKS: &str = "tasks/list";
/// Method that would get another card, which 0.1 does not have either.
const GET_EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

pub(super) fn rpc_method_and_params(operation: Operation<'_>) -> (&'static str, Value) {
    match operation {
        Operation::Send(message) => (SEND_MESSAGE, message_send_params(message)),
        Operation::Stream(message) => (STREAM_MESSAGE, message_send_params(message)),
        Operation::Get(id) => (GET_TASK, json!({"id": id})),
        Operation::Cancel(id) => (CANCEL_TASK, json!({"id": id})),
        Operation::Subscribe(id) => (SUBSCRIBE_TASK, json!({"id": id})),
        Operation::List(query) => (
            LIST_TASKS,
            query.request_members(ProtocolBinding::V01JsonRpc).collect(),
        ),
        Operation::Push(task, call) => {
            push::push_config_request(call, task, ProtocolBinding::V01JsonRpc)
        }
        Operation::ExtendedCard => (GET_EXTENDED_CARD, json!({})),
    }
}

/// The task that a message belongs to: the one that it continues, or a new one with the message's own identifier.
pub(super) fn message_task_id(outgoing: &Message) -> &str {
    outgoing.task_id.as_deref().unwrap_or(&outgoing.id)
}

/// Parameters of [`SEND_MESSAGE`] and [`STREAM_MESSAGE`]. A context of later versions is a session here.
fn message_send_params(outgoing: &Message) -> Value {
    let parts: Vec<Value> = outgoing.parts.iter().map(part_to_json).collect();
    let mut params = json!({
        "id": message_task_id(outgoing),
        "message": {"role": "user", "parts": parts},
        "acceptedOutputModes": ["text", "text/plain", "application/json"],
    });
    if let Some(context) = &outgoing.context_id {
        params["sessionId"] = context.as_str().into();
    }
    params
}

fn part_to_json(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Data(data) => json!({"type": "data", "data": data}),
        Part::File {
            name,
            media_type,
            bytes,
        } => {
            let bytes = BASE64.encode(bytes);
            json!({"type": "file", "file": {"bytes": bytes, "name": name, "mimeType": media_type}})
        }
    }
}
