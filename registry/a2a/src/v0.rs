//! Requests in the shapes of 0.2 and 0.3, which tell parts, messages and tasks apart by `kind`.

use serde_json::{Value, json};

/// Sends a message.
pub(super) const SEND: &str = "message/send";
/// Asks for a task.
pub(super) const GET: &str = "tasks/get";

/// Parameters of [`SEND`]: one text part, and the wish to wait for the answer (0.3 section 7.1.1).
/// 0.2 requires the accepted modes; `text` is what agents made for 0.1 and early 0.2 call plain text.
pub(super) fn send_params(text: &str, message_id: &str) -> Value {
    json!({
        "message": {
            "kind": "message",
            "messageId": message_id,
            "role": "user",
            "parts": [{"kind": "text", "text": text}],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain", "text", "application/json"],
            "blocking": true,
        },
    })
}

/// Parameters of [`GET`] (0.3 section 7.3.1).
pub(super) fn get_params(id: &str) -> Value {
    json!({"id": id})
}
