//! The user's message, read from `params.message` of either generation.

use serde_json::{Map, Value};

use super::fault::{self, Fault};

/// The parts of a message that an agent needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    /// Its text parts, one a line.
    pub text: String,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
}

/// Reads a message whose sender has the role `role`: `user` before 1.0, `ROLE_USER` since. Unknown members are
/// ignored, as 1.0 section 5.7 requires.
pub(super) fn read(params: &Map<String, Value>, role: &str) -> Result<Incoming, Fault> {
    let message = params
        .get("message")
        .and_then(Value::as_object)
        .ok_or_else(|| Fault::invalid_params("params.message is an object"))?;
    if text(message, "messageId")?.is_none_or(|id| id.is_empty()) {
        return Err(Fault::invalid_params("message.messageId is a string"));
    }
    if message.get("role").and_then(Value::as_str) != Some(role) {
        return Err(Fault::invalid_params(format!("message.role is {role}")));
    }
    let parts = message
        .get("parts")
        .and_then(Value::as_array)
        .filter(|parts| !parts.is_empty())
        .ok_or_else(|| Fault::invalid_params("message.parts is a list of at least one part"))?;
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    if texts.is_empty() {
        return Err(Fault::new(
            fault::CONTENT_TYPE,
            "this agent reads text parts only",
        ));
    }
    Ok(Incoming {
        text: texts.join("\n"),
        context_id: text(message, "contextId")?,
        task_id: text(message, "taskId")?,
    })
}

fn text(message: &Map<String, Value>, name: &str) -> Result<Option<String>, Fault> {
    match message.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Fault::invalid_params(format!("message.{name} is a string"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn read_message(message: Value) -> Result<Incoming, i64> {
        let params = json!({"message": message});
        read(params.as_object().unwrap(), "user").map_err(|fault| fault.kind.0)
    }

    #[test]
    fn the_texts_are_joined_and_the_rest_is_kept() {
        let incoming = read_message(json!({
            "messageId": "m", "role": "user", "contextId": "c", "taskId": "", "new": 1,
            "parts": [{"kind": "text", "text": "a"}, {"kind": "data", "data": {}}, {"text": "b"}],
        }));
        let expected = Incoming {
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
