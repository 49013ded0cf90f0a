//! The forms of 0.2 and 0.3, which distinguish parts, messages and tasks by `kind`.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::operation::Operation;
use super::{Message, Part, ProtocolBinding, push, v1};

/// Method that sends a message.
pub const SEND_MESSAGE: &str = "message/send";
/// Method that sends a message and streams the answer.
pub const STREAM_MESSAGE: &str = "message/stream";
/// Method that gets a task.
pub const GET_TASK: &str = "tasks/get";
/// Method that cancels a task.
pub const CANCEL_TASK: &str = "tasks/cancel";
/// Method that streams the further events of a task.
pub const SUBSCRIBE_TASK: &str = "tasks/resubscribe";

/// Method that gets the card that callers with credentials see, which 0.2 has elsewhere.
pub const GET_EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

/// Method that lists tasks. 0.3 has it over gRPC and HTTP+JSON only (0.3 section 7.4), so most agents refuse it.
const LIST_TASKS: &str = "tasks/list";

/// The name that [`SUBSCRIBE_TASK`] has for `PromptKit`, and in a reference of 0.3.0 other than the specification.
const PROMPT_KIT_SUBSCRIBE: &str = "tasks/subscribe";

/// The alternate name of a method, which agents that follow that reference use.
pub(super) fn alternate_method_name(operation: Operation<'_>) -> Option<&'static str> {
    match operation {
        Operation::Subscribe(_) => Some(PROMPT_KIT_SUBSCRIBE),
        Operation::ExtendedCard => Some("agent/authenticatedExtendedCard"),
        _ => None,
    }
}

pub(super) fn rpc_method_and_params(
    operation: Operation<'_>,
    protocol_binding: ProtocolBinding,
) -> (&'static str, Value) {
    let is_prompt_kit = protocol_binding == ProtocolBinding::PromptKitJsonRpc;
    match operation {
        Operation::Send(message) => (SEND_MESSAGE, message_send_params(message, is_prompt_kit)),
        Operation::Stream(message) => (STREAM_MESSAGE, message_send_params(message, is_prompt_kit)),
        Operation::Get(id) => (GET_TASK, json!({"id": id})),
        Operation::Cancel(id) => (CANCEL_TASK, json!({"id": id})),
        Operation::Subscribe(id) if is_prompt_kit => (PROMPT_KIT_SUBSCRIBE, json!({"id": id})),
        Operation::Subscribe(id) => (SUBSCRIBE_TASK, json!({"id": id})),
        Operation::List(query) => (
            LIST_TASKS,
            query.request_members(protocol_binding).collect(),
        ),
        Operation::Push(task, call) => {
            push::push_config_request(call, task, ProtocolBinding::V0JsonRpc)
        }
        Operation::ExtendedCard => (GET_EXTENDED_CARD, json!({})),
    }
}

/// Parameters of [`SEND_MESSAGE`] and [`STREAM_MESSAGE`]: the message, and the request to wait for the answer (0.3
/// section 7.1.1). 0.2 requires the accepted modes; `text` is plain text in 0.1 and early 0.2. `PromptKit` has the
/// parts of 1.0.
fn message_send_params(outgoing: &Message, is_prompt_kit: bool) -> Value {
    let mut message = match is_prompt_kit {
        true => v1::text_message("user", &outgoing.id, ""),
        false => text_message("user", &outgoing.id, ""),
    };
    let part: fn(&Part) -> Value = if is_prompt_kit {
        v1::part_to_json
    } else {
        part_to_json
    };
    message["parts"] = outgoing.parts.iter().map(part).collect();
    for (name, value) in outgoing.continuation_ids() {
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
pub(super) fn rest_send_body(outgoing: &Message) -> Value {
    let mut message = json!({"messageId": outgoing.id, "role": "ROLE_USER"});
    message["content"] = outgoing.parts.iter().map(rest_part_to_json).collect();
    for (name, value) in outgoing.continuation_ids() {
        message[name] = value;
    }
    json!({
        "message": message,
        "configuration": {"acceptedOutputModes": ["text/plain", "application/json"], "blocking": true},
    })
}

/// A part in the JSON form of 0.3's protobuf definition.
fn rest_part_to_json(part: &Part) -> Value {
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
fn part_to_json(part: &Part) -> Value {
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
pub fn text_message(role: &str, message_id: &str, text: &str) -> Value {
    json!({
        "kind": "message",
        "messageId": message_id,
        "role": role,
        "parts": [{"kind": "text", "text": text}],
    })
}
