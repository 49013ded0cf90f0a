//! The user's message, read from `params.message` of either generation.

use serde_json::{Map, Value};

use super::rpc_error::{self, RpcError};

/// The parts of a message that an agent needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UserMessage {
    /// Text parts, joined by line breaks.
    pub text: String,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
}

/// Parses a message whose sender must have the role `role`: `user` before 1.0, `ROLE_USER` since. Unknown members are
/// ignored, as 1.0 section 5.7 requires.
pub(super) fn parse_user_message(
    params: &Map<String, Value>,
    role: &str,
) -> Result<UserMessage, RpcError> {
    let message = params
        .get("message")
        .and_then(Value::as_object)
        .ok_or_else(|| RpcError::invalid_params("params.message must be an object"))?;
    if non_empty_string_member(message, "messageId")?.is_none_or(|id| id.is_empty()) {
        return Err(RpcError::invalid_params(
            "message.messageId must be a non-empty string",
        ));
    }
    if message.get("role").and_then(Value::as_str) != Some(role) {
        return Err(RpcError::invalid_params(format!(
            "message.role must be {role}"
        )));
    }
    let parts = message
        .get("parts")
        .and_then(Value::as_array)
        .filter(|parts| !parts.is_empty())
        .ok_or_else(|| {
            RpcError::invalid_params("message.parts must be a list of at least one part")
        })?;
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    if texts.is_empty() {
        return Err(RpcError::new(
            rpc_error::CONTENT_TYPE_NOT_SUPPORTED,
            "this agent accepts only text parts",
        ));
    }
    Ok(UserMessage {
        text: texts.join("\n"),
        context_id: non_empty_string_member(message, "contextId")?,
        task_id: non_empty_string_member(message, "taskId")?,
    })
}

fn non_empty_string_member(
    message: &Map<String, Value>,
    name: &str,
) -> Result<Option<String>, RpcError> {
    match message.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(RpcError::invalid_params(format!(
            "message.{name} must be a string"
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn read_message(message: Value) -> Result<UserMessage, i64> {
        let params = json!({"message": message});
        parse_user_message(params.as_object().unwrap(), "user").map_err(|fault| fault.kind.0)
    }

    #[test]
    fn the_texts_are_joined_and_the_rest_is_kept() {
        let incoming = read_message(json!({
            "messageId": "m", "role": "user", "contextId": "c", "taskId": "", "new": 1,
            "parts": [{"kind": "text", "text": "a"}, {"kind": "data", "data": {}}, {"text": "b"}],
        }));
        let expected = UserMessage {
            text: "a\nb".to_owned(),
            context_id: Some("c".to_owned()),
            task_id: None,
        };
        assert_eq!(incoming, Ok(expected));
    }

    #[test]
    fn malformed_messages_are_invalid_params() {
        let part = json!([{"kind": "text", "text": "a"}]);
        for message in [
            json!(null),
            json!("text"),
            json!({"role": "user", "parts": part}),
            json!({"messageId": 1, "role": "user", "parts": part}),
            json!({"messageId": "m", "role": "agent", "parts": part}),
            json!({"messageId": "m", "role": "user", "parts": []}),
            json!({"messageId": "m", "role": "user", "parts": "a"}),
            json!({"messageId": "m", "role": "user", "parts": part, "contextId": 1}),
        ] {
            assert_eq!(read_message(message.clone()), Err(-32602), "{message}");
        }
        let file = json!({"messageId": "m", "role": "user", "parts": [{"kind": "file", "file": {"uri": "x"}}]});
        assert_eq!(read_message(file), Err(-32005));
    }
}
