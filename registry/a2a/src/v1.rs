//! The forms of 1.0, which distinguish parts by the member that they have.

use serde_json::{Value, json};

/// The `A2A-Version` of this client; a call without the header counts as 0.3 (1.0 section 3.6).
pub const VERSION: &str = "1.0";
/// Method that sends a message.
pub const SEND: &str = "SendMessage";
/// Method that gets a task.
pub const GET: &str = "GetTask";

/// Parameters of [`SEND`], which are also the HTTP+JSON body: one text part. Waiting for the answer and accepting
/// every output mode are the defaults (1.0 section 3.2.2). The tenant is copied from the interface unless it is in
/// the path.
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
