//! The shapes of 1.0, which tell parts apart by the member they hold.

use serde_json::{Value, json};

/// The `A2A-Version` this client speaks; a call without the header is one of 0.3 (1.0 section 3.6).
pub const VERSION: &str = "1.0";
/// Sends a message.
pub const SEND: &str = "SendMessage";
/// Asks for a task.
pub const GET: &str = "GetTask";

/// Parameters of [`SEND`], which are the HTTP+JSON body too: one text part. Waiting for the answer
/// and taking every output mode are the defaults (1.0 section 3.2.2). The tenant is copied from the interface where it is not in the path.
#[must_use]
pub fn send_params(text: &str, message_id: &str, tenant: Option<&str>) -> Value {
    let message = message("ROLE_USER", message_id, text);
    with_tenant(json!({ "message": message }), tenant)
}

/// Parameters of [`GET`].
#[must_use]
pub fn get_params(id: &str, tenant: Option<&str>) -> Value {
    with_tenant(json!({"id": id}), tenant)
}

fn with_tenant(mut params: Value, tenant: Option<&str>) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = Value::from(tenant);
    }
    params
}

/// A message of one text part, from `ROLE_USER` or `ROLE_AGENT`.
#[must_use]
pub fn message(role: &str, message_id: &str, text: &str) -> Value {
    json!({"messageId": message_id, "role": role, "parts": [{"text": text}]})
}
