//! The forms of 0.1, in which the sender names the task, and every message belongs to one.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::operation::Operation;
use super::{Dialect, Message, Part, push};

/// Method that sends a message.
pub const SEND: &str = "tasks/send";
/// Method that sends a message and streams the answer.
pub const STREAM: &str = "tasks/sendSubscribe";
/// Method that gets a task.
pub const GET: &str = "tasks/get";
/// Method that cancels a task.
pub const CANCEL: &str = "tasks/cancel";
/// Method that streams the further events of a task.
pub const SUBSCRIBE: &str = "tasks/resubscribe";
/// Method that would list tasks, which 0.1 does not have, so an agent refuses it.
const LIST: &str = "tasks/list";
/// Method that would get another card, which 0.1 does not have either.
const EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

pub(super) fn call(operation: Operation<'_>) -> (&'static str, Value) {
    match operation {
        Operation::Send(message) => (SEND, send_params(message)),
        Operation::Stream(message) => (STREAM, send_params(message)),
        Operation::Get(id) => (GET, json!({"id": id})),
        Operation::Cancel(id) => (CANCEL, json!({"id": id})),
        Operation::Subscribe(id) => (SUBSCRIBE, json!({"id": id})),
        Operation::List(query) => (LIST, query.members(Dialect::V01JsonRpc).collect()),
        Operation::Push(task, call) => push::call(call, task, Dialect::V01JsonRpc),
        Operation::ExtendedCard => (EXTENDED_CARD, json!({})),
    }
}

/// The task that a message belongs to: the one that it continues, or a new one with the message's own identifier.
pub(super) fn task_id(sent: &Message) -> &str {
    sent.task_id.as_deref().unwrap_or(&sent.id)
}

/// Parameters of [`SEND`] and [`STREAM`]. What later versions call a context is a session here.
fn send_params(sent: &Message) -> Value {
    let parts: Vec<Value> = sent.parts.iter().map(part).collect();
    let mut params = json!({
        "id": task_id(sent),
        "message": {"role": "user", "parts": parts},
        "acceptedOutputModes": ["text", "text/plain", "application/json"],
    });
    if let Some(context) = &sent.context_id {
        params["sessionId"] = context.as_str().into();
    }
    params
}

fn part(part: &Part) -> Value {
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
