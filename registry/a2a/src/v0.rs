//! The forms of 0.2 and 0.3, which distinguish parts, messages and tasks by `kind`.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::operation::Operation;
use super::{Dialect, Message, Part, push, v1};

/// Method that sends a message.
pub const SEND: &str = "message/send";
/// Method that sends a message and streams the answer.
pub const STREAM: &str = "message/stream";
/// Method that gets a task.
pub const GET: &str = "tasks/get";
/// Method that cancels a task.
pub const CANCEL: &str = "tasks/cancel";
/// Method that streams the further events of a task.
pub const SUBSCRIBE: &str = "tasks/resubscribe";

/// Method that gets the card that callers with credentials see, which 0.2 has elsewhere.
pub const EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

/// Method that lists tasks. 0.3 has it over gRPC and HTTP+JSON only (0.3 section 7.4), so most agents refuse it.
const LIST: &str = "tasks/list";

/// The name that [`SUBSCRIBE`] has for `PromptKit`, and in a reference of 0.3.0 other than the specification.
const OTHER_SUBSCRIBE: &str = "tasks/subscribe";

/// The other name that a method has in agents that are written after that reference.
pub(super) fn other_name(operation: Operation<'_>) -> Option<&'static str> {
    match operation {
        Operation::Subscribe(_) => Some(OTHER_SUBSCRIBE),
        Operation::ExtendedCard => Some("agent/authenticatedExtendedCard"),
        _ => None,
    }
}

pub(super) fn call(operation: Operation<'_>, dialect: Dialect) -> (&'static str, Value) {
    let is_prompt_kit = dialect == Dialect::PromptKitJsonRpc;
    match operation {
        Operation::Send(message) => (SEND, send_params(message, is_prompt_kit)),
        Operation::Stream(message) => (STREAM, send_params(message, is_prompt_kit)),
        Operation::Get(id) => (GET, json!({"id": id})),
        Operation::Cancel(id) => (CANCEL, json!({"id": id})),
        Operation::Subscribe(id) if is_prompt_kit => (OTHER_SUBSCRIBE, json!({"id": id})),
        Operation::Subscribe(id) => (SUBSCRIBE, json!({"id": id})),
        Operation::List(query) => (LIST, query.members(dialect).collect()),
        Operation::Push(task, call) => push::call(call, task, Dialect::V0JsonRpc),
        Operation::ExtendedCard => (EXTENDED_CARD, json!({})),
    }
}

/// Parameters of [`SEND`] and [`STREAM`]: the message, and the request to wait for the answer (0.3 section 7.1.1). 0.2
/// requires the accepted modes; `text` is plain text in 0.1 and early 0.2. `PromptKit` has the parts of 1.0.
fn send_params(sent: &Message, is_prompt_kit: bool) -> Value {
    let mut message = match is_prompt_kit {
        true => v1::message("user", &sent.id, ""),
        false => message("user", &sent.id, ""),
    };
    let part: fn(&Part) -> Value = if is_prompt_kit { v1::part } else { part };
    message["parts"] = sent.parts.iter().map(part).collect();
    for (name, value) in sent.continues() {
        message[name] = value;
    }
    json!({
        "message": message,
        "configuration": {
            "acceptedOutputModes": ["text/plain", "text", "application/json"],
            "blocking": true,
        },
    })
}

/// The body over HTTP+JSON, in the JSON form of 0.3's protobuf definition: a message's parts are its `content`.
pub(super) fn rest_body(sent: &Message) -> Value {
    let mut message = json!({"messageId": sent.id, "role": "ROLE_USER"});
    message["content"] = sent.parts.iter().map(rest_part).collect();
    for (name, value) in sent.continues() {
        message[name] = value;
    }
    json!({
        "message": message,
        "configuration": {"acceptedOutputModes": ["text/plain", "application/json"], "blocking": true},
    })
}

/// A part in the JSON form of 0.3's protobuf definition.
fn rest_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Data(data) => json!({"data": {"data": data}}),
        Part::File {
            name,
            media_type,
            bytes,
        } => {
            let bytes = BASE64.encode(bytes);
            json!({"file": {"fileWithBytes": bytes, "name": name, "mimeType": media_type}})
        }
    }
}

/// A part in the form of 0.2 and 0.3 (0.3 section 6.5).
fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"kind": "text", "text": text}),
        Part::Data(data) => json!({"kind": "data", "data": data}),
        Part::File {
            name,
            media_type,
            bytes,
        } => {
            let bytes = BASE64.encode(bytes);
            json!({"kind": "file", "file": {"bytes": bytes, "name": name, "mimeType": media_type}})
        }
    }
}

/// A message of one text part, from a `user` or an `agent`.
#[must_use]
pub fn message(role: &str, message_id: &str, text: &str) -> Value {
    json!({
        "kind": "message",
        "messageId": message_id,
        "role": role,
        "parts": [{"kind": "text", "text": text}],
    })
}
