//! The forms of 0.2 and 0.3, which distinguish parts, messages and tasks by `kind`.

use serde_json::{Value, json};

/// Method that sends a message.
pub const SEND: &str = "message/send";
/// Method that gets a task.
pub const GET: &str = "tasks/get";

/// Parameters of [`SEND`]: one text part, and the request to wait for the answer (0.3 section 7.1.1). 0.2 requires
/// the accepted modes; `text` is the name of plain text in agents made for 0.1 and early 0.2.
#[must_use]
pub fn send_params(text: &str, message_id: &str) -> Value {
    json!({
        "message": message("user", message_id, text),
        "configuration": {
            "acceptedOutputModes": ["text/plain", "text", "application/json"],
            "blocking": true,
        },
    })
}

/// Parameters of [`GET`] (0.3 section 7.3.1).
#[must_use]
pub fn get_params(id: &str) -> Value {
    json!({"id": id})
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
