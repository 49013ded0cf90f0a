//! Messages from clients, parsed from the 1.0 or the 0.3 format.

use serde_json::{Map, Value, json};

use super::card_document::OUTPUT_MODES;
use super::error::{A2aError, A2aErrorKind};
use super::protocol_version::ProtocolVersion;

pub(super) const MAX_PARTS: usize = 16;
/// Maximum number of characters of an identifier that a client chooses.
pub(super) const MAX_ID_CHARS: usize = 256;

/// A message and the client's requirements for the response.
#[derive(Debug)]
pub(super) struct IncomingMessage {
    /// The message in the 1.0 format, for the history.
    pub(super) message: Value,
    pub(super) context_id: Option<String>,
    pub(super) task_id: Option<String>,
    /// The text parts, one per line.
    pub(super) text: String,
    pub(super) data: Vec<Value>,
    /// The metadata of the message and of the request.
    pub(super) metadata: Map<String, Value>,
    pub(super) configuration: SendMessageConfiguration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SendMessageConfiguration {
    pub(super) accepts_text: bool,
    pub(super) accepts_data: bool,
    /// Number of the last history messages to return; `None` for all.
    pub(super) history_length: Option<usize>,
    /// Whether to return the task immediately, without waiting for its outcome.
    pub(super) return_immediately: bool,
}

/// Finds a member by its JSON name or by its proto field name, which `ProtoJSON` parsers must accept too.
pub(super) fn camel_or_snake_member<'m>(
    object: &'m Map<String, Value>,
    name: &str,
) -> Option<&'m Value> {
    let value = object.get(name).or_else(|| {
        let mut snake_name = String::with_capacity(name.len() + 4);
        for character in name.chars() {
            if character.is_ascii_uppercase() {
                snake_name.push('_');
            }
            snake_name.push(character.to_ascii_lowercase());
        }
        object.get(&snake_name)
    });
    value.filter(|value| !value.is_null())
}

/// A string member; an empty string counts as missing, as in proto.
pub(super) fn text_member<'m>(
    object: &'m Map<String, Value>,
    name: &str,
) -> Result<Option<&'m str>, A2aError> {
    match camel_or_snake_member(object, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(A2aError::invalid_params(format!(
            "`{name}` must be a string."
        ))),
    }
}

pub(super) fn identifier_member(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Option<String>, A2aError> {
    let id = text_member(object, name)?;
    if id.is_some_and(|id| id.chars().count() > MAX_ID_CHARS || id.chars().any(char::is_control)) {
        return Err(A2aError::invalid_params(format!(
            "`{name}` must have at most {MAX_ID_CHARS} characters and no control characters."
        )));
    }
    Ok(id.map(str::to_owned))
}

/// A non-negative number member, written as a number, or as a string as in a query.
pub(super) fn number_member(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Option<u64>, A2aError> {
    let parsed = match camel_or_snake_member(object, name) {
        None => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        // ProtoJSON parsers accept 10.0 as 10.
        Some(value) => value.as_u64().or_else(|| {
            let whole = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (0.0..1e15).contains(&whole).then_some(whole as u64)
        }),
    };
    parsed.map(Some).ok_or_else(|| {
        A2aError::invalid_params(format!("`{name}` must be a non-negative integer."))
    })
}

/// A boolean member, written as a boolean, or as a string as in a query.
pub(super) fn bool_member(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Option<bool>, A2aError> {
    match camel_or_snake_member(object, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(Value::String(text)) if text == "true" => Ok(Some(true)),
        Some(Value::String(text)) if text == "false" => Ok(Some(false)),
        Some(_) => Err(A2aError::invalid_params(format!(
            "`{name}` must be true or false."
        ))),
    }
}

pub(super) fn history_length_member(
    object: &Map<String, Value>,
) -> Result<Option<usize>, A2aError> {
    let number = number_member(object, "historyLength")?;
    Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

pub(super) fn parse_send_params(
    params: &Map<String, Value>,
    version: ProtocolVersion,
) -> Result<IncomingMessage, A2aError> {
    let Some(Value::Object(message)) = camel_or_snake_member(params, "message") else {
        return Err(A2aError::invalid_params("`message` must be an object."));
    };
    let id = identifier_member(message, "messageId")?
        .ok_or_else(|| A2aError::invalid_params("`message.messageId` is missing."))?;
    let user = match version {
        ProtocolVersion::V1 => "ROLE_USER",
        ProtocolVersion::V03 => "user",
    };
    if camel_or_snake_member(message, "role").and_then(Value::as_str) != Some(user) {
        return Err(A2aError::invalid_params(format!(
            "`message.role` is `{user}`."
        )));
    }
    let parts = parse_message_parts(message, version)?;
    let context_id = identifier_member(message, "contextId")?;
    let task_id = identifier_member(message, "taskId")?;
    let mut metadata = object_member(params, "metadata")?;
    metadata.extend(object_member(message, "metadata")?);
    let mut stored_message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    for name in ["metadata", "extensions", "referenceTaskIds"] {
        if let Some(value) = camel_or_snake_member(message, name) {
            stored_message[name] = value.clone();
        }
    }
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    let texts: Vec<&str> = texts.collect();
    let data = parts.iter().filter_map(|part| part.get("data").cloned());
    Ok(IncomingMessage {
        text: texts.join("\n"),
        data: data.collect(),
        message: stored_message,
        context_id,
        task_id,
        metadata,
        configuration: parse_send_configuration(params, version)?,
    })
}

fn object_member(parent: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, A2aError> {
    match camel_or_snake_member(parent, name) {
        None => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(A2aError::invalid_params(format!(
            "`{name}` must be an object."
        ))),
    }
}

/// Parses the parts into the 1.0 format.
fn parse_message_parts(
    message: &Map<String, Value>,
    version: ProtocolVersion,
) -> Result<Vec<Value>, A2aError> {
    let raw_parts = camel_or_snake_member(message, "parts").and_then(Value::as_array);
    let given = raw_parts.filter(|parts| !parts.is_empty());
    let given = given
        .ok_or_else(|| A2aError::invalid_params("`message.parts` must have at least one part."))?;
    if given.len() > MAX_PARTS {
        return Err(A2aError::invalid_params(format!(
            "A message can have at most {MAX_PARTS} parts."
        )));
    }
    given
        .iter()
        .map(|part| parse_message_part(part, version))
        .collect()
}

fn parse_message_part(part: &Value, version: ProtocolVersion) -> Result<Value, A2aError> {
    let expected = match version {
        ProtocolVersion::V1 => "A part must have exactly one of `text`, `data`, `raw` and `url`.",
        ProtocolVersion::V03 => {
            "A part must have the `kind` `text`, `data` or `file`, and the members of that kind."
        }
    };
    let invalid_part = || A2aError::invalid_params(expected);
    let part = part.as_object().ok_or_else(invalid_part)?;
    let content_name = match version {
        ProtocolVersion::V1 => {
            let names = ["text", "data", "raw", "url"];
            let mut given = names.into_iter().filter(|name| part.contains_key(*name));
            match (given.next(), given.next()) {
                (Some(name), None) => name,
                _ => return Err(invalid_part()),
            }
        }
        ProtocolVersion::V03 => part.get("kind").and_then(Value::as_str).unwrap_or_default(),
    };
    let mut normalized = match (content_name, part.get(content_name)) {
        ("text", Some(Value::String(text))) => json!({"text": text}),
        ("data", Some(data)) if version == ProtocolVersion::V1 || data.is_object() => {
            json!({"data": data})
        }
        ("raw" | "url" | "file", Some(_)) => {
            return Err(A2aError::new(
                A2aErrorKind::ContentTypeNotSupported,
                "This agent accepts text and data parts; it does not accept files.",
            ));
        }
        _ => return Err(invalid_part()),
    };
    for name in ["mediaType", "filename", "metadata"] {
        if let Some(value) = camel_or_snake_member(part, name) {
            normalized[name] = value.clone();
        }
    }
    Ok(normalized)
}

fn parse_send_configuration(
    params: &Map<String, Value>,
    version: ProtocolVersion,
) -> Result<SendMessageConfiguration, A2aError> {
    let config = object_member(params, "configuration")?;
    let (push_member, immediately) = match version {
        ProtocolVersion::V1 => (
            "taskPushNotificationConfig",
            bool_member(&config, "returnImmediately")?,
        ),
        ProtocolVersion::V03 => (
            "pushNotificationConfig",
            bool_member(&config, "blocking")?.map(|blocks| !blocks),
        ),
    };
    if camel_or_snake_member(&config, push_member).is_some() {
        return Err(A2aError::new(
            A2aErrorKind::PushNotSupported,
            "This agent does not send push notifications. Leave the configuration out and poll the task.",
        ));
    }
    let modes = match camel_or_snake_member(&config, "acceptedOutputModes") {
        None => Vec::new(),
        Some(Value::Array(modes)) => modes.clone(),
        Some(_) => {
            return Err(A2aError::invalid_params(
                "`acceptedOutputModes` must be a list.",
            ));
        }
    };
    let takes =
        |mode: &str| modes.is_empty() || modes.iter().any(|one| accepts_output_mode(one, mode));
    let [text, data] = OUTPUT_MODES.map(takes);
    if !text && !data {
        return Err(A2aError::new(
            A2aErrorKind::ContentTypeNotSupported,
            format!(
                "This agent responds with {} only.",
                OUTPUT_MODES.join(" and ")
            ),
        ));
    }
    Ok(SendMessageConfiguration {
        accepts_text: text,
        accepts_data: data,
        history_length: history_length_member(&config)?,
        return_immediately: immediately.unwrap_or(false),
    })
}

/// Whether an accepted output mode, which may be a media range or a 0.1 keyword, includes this mode.
fn accepts_output_mode(accepted: &Value, mode: &str) -> bool {
    let accepted = accepted.as_str().unwrap_or_default();
    let media_type = accepted.split(';').next().unwrap_or_default();
    let essence = media_type.trim().to_ascii_lowercase();
    let main_type = mode.split('/').next().unwrap_or_default();
    essence == mode
        || essence == "*/*"
        || essence == "*"
        || essence == format!("{main_type}/*")
        || (essence == "text" && main_type == "text")
        || (essence == "data" && main_type == "application")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn v1(message: &Value, config: &Value) -> Result<IncomingMessage, A2aError> {
        let params = json!({"message": message, "configuration": config});
        parse_send_params(params.as_object().unwrap(), ProtocolVersion::V1)
    }

    fn message(parts: &Value) -> Value {
        json!({"messageId": "m", "role": "ROLE_USER", "parts": parts})
    }

    #[test]
    fn both_forms_become_the_one_of_1_0() {
        let new = v1(
            &message(&json!([{"text": "a", "mediaType": "text/plain"}, {"data": {"b": 1}}, {"text": "c"}])),
            &json!({}),
        )
        .unwrap();
        let old = json!({"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [
            {"kind": "text", "text": "a"}, {"kind": "data", "data": {"b": 1}}, {"kind": "text", "text": "c"},
        ]}});
        let old = parse_send_params(old.as_object().unwrap(), ProtocolVersion::V03).unwrap();
        assert_eq!((&new.text, &new.data), (&old.text, &old.data));
        assert_eq!(new.text, "a\nc");
        assert_eq!(old.message["parts"][0], json!({"text": "a"}));
        assert_eq!(old.message["role"], "ROLE_USER");
        let snake = json!({"message": {"message_id": "m", "role": "ROLE_USER", "context_id": "c", "parts": [{"text": "a"}]}});
        let snake = parse_send_params(snake.as_object().unwrap(), ProtocolVersion::V1).unwrap();
        assert_eq!(snake.context_id.as_deref(), Some("c"));
    }

    #[test]
    fn what_is_wrong_has_its_kind() {
        let many = json!(vec![json!({"text": "a"}); MAX_PARTS + 1]);
        let most = json!(vec![json!({"text": "a"}); MAX_PARTS]);
        assert!(v1(&message(&most), &json!({})).is_ok());
        let ok = json!([{"text": "a"}]);
        for (message, config, kind) in [
            (json!("text"), json!({}), A2aErrorKind::InvalidParams),
            (
                json!({"role": "ROLE_USER", "parts": ok}),
                json!({}),
                A2aErrorKind::InvalidParams,
            ),
            (
                json!({"messageId": "m", "role": "ROLE_AGENT", "parts": ok}),
                json!({}),
                A2aErrorKind::InvalidParams,
            ),
            (
                json!({"messageId": "m", "role": "user", "parts": ok}),
                json!({}),
                A2aErrorKind::InvalidParams,
            ),
            (message(&json!([])), json!({}), A2aErrorKind::InvalidParams),
            (message(&many), json!({}), A2aErrorKind::InvalidParams),
            (
                message(&json!([{}])),
                json!({}),
                A2aErrorKind::InvalidParams,
            ),
            (
                message(&json!([{"text": "a", "data": 1}])),
                json!({}),
                A2aErrorKind::InvalidParams,
            ),
            (
                message(&json!([{"text": 1}])),
                json!({}),
                A2aErrorKind::InvalidParams,
            ),
            (
                message(&json!([{"raw": "dGNr"}])),
                json!({}),
                A2aErrorKind::ContentTypeNotSupported,
            ),
            (
                message(&json!([{"url": "https://example.com/"}])),
                json!({}),
                A2aErrorKind::ContentTypeNotSupported,
            ),
            (
                message(&ok),
                json!({"acceptedOutputModes": ["image/png"]}),
                A2aErrorKind::ContentTypeNotSupported,
            ),
            (
                message(&ok),
                json!({"historyLength": -1}),
                A2aErrorKind::InvalidParams,
            ),
            (
                message(&ok),
                json!({"returnImmediately": "perhaps"}),
                A2aErrorKind::InvalidParams,
            ),
            (
                message(&ok),
                json!({"taskPushNotificationConfig": {"url": "https://example.com/"}}),
                A2aErrorKind::PushNotSupported,
            ),
        ] {
            let fault = v1(&message, &config).unwrap_err();
            assert_eq!(fault.kind, kind, "{message} {config}");
        }
        let long = "i".repeat(MAX_ID_CHARS);
        let with = |id: &str| json!({"messageId": id, "role": "ROLE_USER", "parts": ok});
        assert!(v1(&with(&long), &json!({})).is_ok());
        assert!(v1(&with(&format!("{long}i")), &json!({})).is_err());
        assert!(v1(&with("a\u{0}"), &json!({})).is_err());
    }

    #[test]
    fn accepted_modes_choose_the_parts() {
        for (modes, text, data) in [
            (json!([]), true, true),
            (json!(["text/plain"]), true, false),
            (json!(["application/json"]), false, true),
            (json!(["text"]), true, false),
            (json!(["*/*"]), true, true),
            (json!(["text/*", "image/png"]), true, false),
            (json!(["Application/JSON; charset=utf-8"]), false, true),
        ] {
            let read = v1(
                &message(&json!([{"text": "a"}])),
                &json!({"acceptedOutputModes": modes}),
            );
            let wants = read.unwrap().configuration;
            assert_eq!(
                (wants.accepts_text, wants.accepts_data),
                (text, data),
                "{modes}"
            );
        }
    }
}
