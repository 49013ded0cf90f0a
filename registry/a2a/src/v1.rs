//! The forms of 1.0, which distinguish parts by the member that they have.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::operation::Operation;
use super::{Dialect, Message, Part, push};

/// The `A2A-Version` of this client; a call without the header counts as 0.3 (1.0 section 3.6).
pub const VERSION: &str = "1.0";
/// Method that sends a message.
pub const SEND: &str = "SendMessage";
/// Method that sends a message and streams the answer.
pub const STREAM: &str = "SendStreamingMessage";
/// Method that gets a task.
pub const GET: &str = "GetTask";
/// Method that cancels a task.
pub const CANCEL: &str = "CancelTask";
/// Method that streams the further events of a task.
pub const SUBSCRIBE: &str = "SubscribeToTask";

/// Method that gets the card that callers with credentials see.
pub const EXTENDED_CARD: &str = "GetExtendedAgentCard";

/// Method that lists tasks.
pub const LIST: &str = "ListTasks";

pub(super) fn call(operation: Operation<'_>, tenant: Option<&str>) -> (&'static str, Value) {
    let by_id = |id: &str| with_tenant(json!({"id": id}), tenant);
    match operation {
        Operation::Send(message) => (SEND, send_params(message, tenant)),
        Operation::Stream(message) => (STREAM, send_params(message, tenant)),
        Operation::Get(id) => (GET, by_id(id)),
        Operation::Cancel(id) => (CANCEL, by_id(id)),
        Operation::Subscribe(id) => (SUBSCRIBE, by_id(id)),
        Operation::List(query) => (
            LIST,
            with_tenant(query.members(Dialect::V1JsonRpc).collect(), tenant),
        ),
        Operation::Push(task, call) => {
            let (method, params) = push::call(call, task, Dialect::V1JsonRpc);
            (method, with_tenant(params, tenant))
        }
        Operation::ExtendedCard => (EXTENDED_CARD, with_tenant(json!({}), tenant)),
    }
}

/// Parameters of [`SEND`] and [`STREAM`], which are also the HTTP+JSON body. Waiting for the answer and accepting every
/// output mode are the defaults (1.0 section 3.2.2). The tenant is copied from the interface unless it is in the path.
pub(super) fn send_params(sent: &Message, tenant: Option<&str>) -> Value {
    let mut message = message("ROLE_USER", &sent.id, "");
    message["parts"] = sent.parts.iter().map(part).collect();
    for (name, value) in sent.continues() {
        message[name] = value;
    }
    with_tenant(json!({ "message": message }), tenant)
}

pub(super) fn with_tenant(mut params: Value, tenant: Option<&str>) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = Value::from(tenant);
    }
    params
}

/// A part in the form of 1.0 (1.0 section 4.1.6).
pub(super) fn part(part: &Part) -> Value {
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
pub fn message(role: &str, message_id: &str, text: &str) -> Value {
    json!({"messageId": message_id, "role": role, "parts": [{"text": text}]})
}
