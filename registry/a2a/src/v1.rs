//! The forms of 1.0, which distinguish parts by the member that they have.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::operation::Operation;
use super::{Message, Part, ProtocolBinding, push};

/// The `A2A-Version` of this client; a call without the header counts as 0.3 (1.0 section 3.6).
pub const PROTOCOL_VERSION: &str = "1.0";
/// Method that sends a message.
pub const SEND_MESSAGE: &str = "SendMessage";
/// Method that sends a message and streams the answer.
pub const STREAM_MESSAGE: &str = "SendStreamingMessage";
/// Method that gets a task.
pub const GET_TASK: &str = "GetTask";
/// Method that cancels a task.
pub const CANCEL_TASK: &str = "CancelTask";
/// Method that streams the further events of a task.
pub const SUBSCRIBE_TASK: &str = "SubscribeToTask";

/// Method that gets the card that callers with credentials see.
pub const GET_EXTENDED_CARD: &str = "GetExtendedAgentCard";

/// Method that lists tasks.
pub const LIST_TASKS: &str = "ListTasks";

pub(super) fn rpc_method_and_params(
    operation: Operation<'_>,
    tenant: Option<&str>,
) -> (&'static str, Value) {
    let by_id = |id: &str| params_with_tenant(json!({"id": id}), tenant);
    match operation {
        Operation::Send(message) => (SEND_MESSAGE, message_send_params(message, tenant)),
        Operation::Stream(message) => (STREAM_MESSAGE, message_send_params(message, tenant)),
        Operation::Get(id) => (GET_TASK, by_id(id)),
        Operation::Cancel(id) => (CANCEL_TASK, by_id(id)),
        Operation::Subscribe(id) => (SUBSCRIBE_TASK, by_id(id)),
        Operation::List(query) => (
            LIST_TASKS,
            params_with_tenant(
                query.request_members(ProtocolBinding::V1JsonRpc).collect(),
                tenant,
            ),
        ),
        Operation::Push(task, call) => {
            let (method, params) =
                push::push_config_request(call, task, ProtocolBinding::V1JsonRpc);
            (method, params_with_tenant(params, tenant))
        }
        Operation::ExtendedCard => (GET_EXTENDED_CARD, params_with_tenant(json!({}), tenant)),
    }
}

/// Parameters of [`SEND_MESSAGE`] and [`STREAM_MESSAGE`], which are also the HTTP+JSON body. Waiting for the answer
/// and accepting every output mode are the defaults (1.0 section 3.2.2). The tenant is copied from the interface
/// unless it is in the path.
pub(super) fn message_send_params(outgoing: &Message, tenant: Option<&str>) -> Value {
    let mut message = text_message("ROLE_USER", &outgoing.id, "");
    message["parts"] = outgoing.parts.iter().map(part_to_json).collect();
    for (name, value) in outgoing.continuation_ids() {
        message[name] = value;
    }
    params_with_tenant(json!({ "message": message }), tenant)
}

pub(super) fn params_with_tenant(mut params: Value, tenant: Option<&str>) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = Value::from(tenant);
    }
    params
}

/// A part in the form of 1.0 (1.0 section 4.1.6).
pub(super) fn part_to_json(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Data(data) => json!({"data": data, "mediaType": "application/json"}),
        Part::File {
            name,
            media_type,
            bytes,
        } => json!({"raw": BASE64.encode(bytes), "filename": name, "mediaType": media_type}),
    }
}

/// A message of one text part, from `ROLE_USER` or `ROLE_AGENT`.
#[must_use]
pub fn text_message(role: &str, message_id: &str, text: &str) -> Value {
    json!({"messageId": message_id, "role": role, "parts": [{"text": text}]})
}
