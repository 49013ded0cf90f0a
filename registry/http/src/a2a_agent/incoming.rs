//! A message that a client sends, read from the form of either version.

use serde_json::{Map, Value, json};

use super::card::MODES;
use super::fault::{Fault, FaultKind};
use super::version::Version;

pub(super) const MAX_PARTS: usize = 16;
/// Characters of an identifier that a client chooses.
pub(super) const MAX_ID: usize = 256;

/// A message with what its client wants of the answer.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The message in the form of 1.0, for the history.
    pub(super) message: Value,
    pub(super) context_id: Option<String>,
    pub(super) task_id: Option<String>,
    /// Its texts, one a line.
    pub(super) text: String,
    pub(super) data: Vec<Value>,
    /// Its metadata, with that of the request.
    pub(super) metadata: Map<String, Value>,
    pub(super) wants: Wants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants {
    pub(super) text: bool,
    pub(super) data: bool,
    /// The last so many messages of the history, or all.
    pub(super) history: Option<usize>,
    /// The task at once, and not what comes of it.
    pub(super) immediately: bool,
}

/// A member by its name in JSON, or by that of the field, which parsers of proto's JSON must take too.
pub(super) fn member<'m>(object: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    let found = object.get(name).or_else(|| {
        let mut field = String::with_capacity(name.len() + 4);
        for character in name.chars() {
            if character.is_ascii_uppercase() {
                field.push('_');
            }
            field.push(character.to_ascii_lowercase());
        }
        object.get(&field)
    });
    found.filter(|value| !value.is_null())
}

/// A text member; an empty one counts as missing, as in proto.
pub(super) fn text<'m>(
    object: &'m Map<String, Value>,
    name: &str,
) -> Result<Option<&'m str>, Fault> {
    match member(object, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(Fault::params(format!("`{name}` is a string."))),
    }
}

pub(super) fn identifier(object: &Map<String, Value>, name: &str) -> Result<Option<String>, Fault> {
    let found = text(object, name)?;
    if found.is_some_and(|id| id.chars().count() > MAX_ID || id.chars().any(char::is_control)) {
        return Err(Fault::params(format!(
            "`{name}` has at most {MAX_ID} characters, and no control characters."
        )));
    }
    Ok(found.map(str::to_owned))
}

/// A number that is not negative, as one, or as text as in a query.
pub(super) fn number(object: &Map<String, Value>, name: &str) -> Result<Option<u64>, Fault> {
    let read = match member(object, name) {
        None => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        // Proto's parsers take 10.0 for 10.
        Some(value) => value.as_u64().or_else(|| {
            let whole = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (0.0..1e15).contains(&whole).then_some(whole as u64)
        }),
    };
    read.map(Some)
        .ok_or_else(|| Fault::params(format!("`{name}` is a whole number that is not negative.")))
}

/// Yes or no, as such, or as text as in a query.
pub(super) fn flag(object: &Map<String, Value>, name: &str) -> Result<Option<bool>, Fault> {
    match member(object, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(Value::String(text)) if text == "true" => Ok(Some(true)),
        Some(Value::String(text)) if text == "false" => Ok(Some(false)),
        Some(_) => Err(Fault::params(format!("`{name}` is true or false."))),
    }
}

pub(super) fn history_length(object: &Map<String, Value>) -> Result<Option<usize>, Fault> {
    let number = number(object, "historyLength")?;
    Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

pub(super) fn read(params: &Map<String, Value>, version: Version) -> Result<Incoming, Fault> {
    let Some(Value::Object(message)) = member(params, "message") else {
        return Err(Fault::params("`message` is an object."));
    };
    let id = identifier(message, "messageId")?
        .ok_or_else(|| Fault::params("`message.messageId` is missing."))?;
    let user = match version {
        Version::V1 => "ROLE_USER",
        Version::V03 => "user",
    };
    if member(message, "role").and_then(Value::as_str) != Some(user) {
        return Err(Fault::params(format!("`message.role` is `{user}`.")));
    }
    let parts = parts(message, version)?;
    let context_id = identifier(message, "contextId")?;
    let task_id = identifier(message, "taskId")?;
    let mut metadata = object(params, "metadata")?;
    metadata.extend(object(message, "metadata")?);
    let mut kept = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    for name in ["metadata", "extensions", "referenceTaskIds"] {
        if let Some(value) = member(message, name) {
            kept[name] = value.clone();
        }
    }
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    let texts: Vec<&str> = texts.collect();
    let data = parts.iter().filter_map(|part| part.get("data").cloned());
    Ok(Incoming {
        text: texts.join("\n"),
        data: data.collect(),
        message: kept,
        context_id,
        task_id,
        metadata,
        wants: wants(params, version)?,
    })
}

fn object(of: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, Fault> {
    match member(of, name) {
        None => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(Fault::params(format!("`{name}` is an object."))),
    }
}

/// The parts in the form of 1.0.
fn parts(message: &Map<String, Value>, version: Version) -> Result<Vec<Value>, Fault> {
    let given = member(message, "parts").and_then(Value::as_array);
    let given = given.filter(|parts| !parts.is_empty());
    let given = given.ok_or_else(|| Fault::params("`message.parts` has at least one part."))?;
    if given.len() > MAX_PARTS {
        return Err(Fault::params(format!(
            "A message has at most {MAX_PARTS} parts here."
        )));
    }
    given.iter().map(|part| read_part(part, version)).collect()
}

fn read_part(part: &Value, version: Version) -> Result<Value, Fault> {
    let expected = match version {
        Version::V1 => "A part has exactly one of `text`, `data`, `raw` and `url`.",
        Version::V03 => "A part has the `kind` `text`, `data` or `file`, and what belongs to it.",
    };
    let wrong = || Fault::params(expected);
    let part = part.as_object().ok_or_else(wrong)?;
    let content = match version {
        Version::V1 => {
            let names = ["text", "data", "raw", "url"];
            let mut given = names.into_iter().filter(|name| part.contains_key(*name));
            match (given.next(), given.next()) {
                (Some(name), None) => name,
                _ => return Err(wrong()),
            }
        }
        Version::V03 => part.get("kind").and_then(Value::as_str).unwrap_or_default(),
    };
    let mut kept = match (content, part.get(content)) {
        ("text", Some(Value::String(text))) => json!({"text": text}),
        ("data", Some(data)) if version == Version::V1 || data.is_object() => json!({"data": data}),
        ("raw" | "url" | "file", Some(_)) => {
            return Err(Fault::new(
                FaultKind::ContentType,
                "This agent reads text and data, and no files.",
            ));
        }
        _ => return Err(wrong()),
    };
    for name in ["mediaType", "filename", "metadata"] {
        if let Some(value) = member(part, name) {
            kept[name] = value.clone();
        }
    }
    Ok(kept)
}

fn wants(params: &Map<String, Value>, version: Version) -> Result<Wants, Fault> {
    let config = object(params, "configuration")?;
    let (push, immediately) = match version {
        Version::V1 => (
            "taskPushNotificationConfig",
            flag(&config, "returnImmediately")?,
        ),
        Version::V03 => (
            "pushNotificationConfig",
            flag(&config, "blocking")?.map(|blocks| !blocks),
        ),
    };
    if member(&config, push).is_some() {
        return Err(Fault::new(
            FaultKind::PushNotSupported,
            "This agent sends no push notifications; leave them out, and read the task.",
        ));
    }
    let modes = match member(&config, "acceptedOutputModes") {
        None => Vec::new(),
        Some(Value::Array(modes)) => modes.clone(),
        Some(_) => return Err(Fault::params("`acceptedOutputModes` is a list.")),
    };
    let takes = |mode: &str| modes.is_empty() || modes.iter().any(|one| fits(one, mode));
    let [text, data] = MODES.map(takes);
    if !text && !data {
        return Err(Fault::new(
            FaultKind::ContentType,
            format!("This agent answers with {}.", MODES.join(" and ")),
        ));
    }
    Ok(Wants {
        text,
        data,
        history: history_length(&config)?,
        immediately: immediately.unwrap_or(false),
    })
}

/// Whether an accepted mode, which may be a range of media types or the word of 0.1, has this one.
fn fits(accepted: &Value, mode: &str) -> bool {
    let accepted = accepted.as_str().unwrap_or_default();
    let essence = accepted.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let kind = mode.split('/').next().unwrap_or_default();
    essence == mode
        || essence == "*/*"
        || essence == "*"
        || essence == format!("{kind}/*")
        || (essence == "text" && kind == "text")
        || (essence == "data" && kind == "application")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn v1(message: &Value, config: &Value) -> Result<Incoming, Fault> {
        let params = json!({"message": message, "configuration": config});
        read(params.as_object().unwrap(), Version::V1)
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
        let old = read(old.as_object().unwrap(), Version::V03).unwrap();
        assert_eq!((&new.text, &new.data), (&old.text, &old.data));
        assert_eq!(new.text, "a\nc");
        assert_eq!(old.message["parts"][0], json!({"text": "a"}));
        assert_eq!(old.message["role"], "ROLE_USER");
        let snake = json!({"message": {"message_id": "m", "role": "ROLE_USER", "context_id": "c", "parts": [{"text": "a"}]}});
        let snake = read(snake.as_object().unwrap(), Version::V1).unwrap();
        assert_eq!(snake.context_id.as_deref(), Some("c"));
    }

    #[test]
    fn what_is_wrong_has_its_kind() {
        let many = json!(vec![json!({"text": "a"}); MAX_PARTS + 1]);
        let most = json!(vec![json!({"text": "a"}); MAX_PARTS]);
        assert!(v1(&message(&most), &json!({})).is_ok());
        let ok = json!([{"text": "a"}]);
        for (message, config, kind) in [
            (json!("text"), json!({}), FaultKind::InvalidParams),
            (
                json!({"role": "ROLE_USER", "parts": ok}),
                json!({}),
                FaultKind::InvalidParams,
            ),
            (
                json!({"messageId": "m", "role": "ROLE_AGENT", "parts": ok}),
                json!({}),
                FaultKind::InvalidParams,
            ),
            (
                json!({"messageId": "m", "role": "user", "parts": ok}),
                json!({}),
                FaultKind::InvalidParams,
            ),
            (message(&json!([])), json!({}), FaultKind::InvalidParams),
            (message(&many), json!({}), FaultKind::InvalidParams),
            (message(&json!([{}])), json!({}), FaultKind::InvalidParams),
            (
                message(&json!([{"text": "a", "data": 1}])),
                json!({}),
                FaultKind::InvalidParams,
            ),
            (
                message(&json!([{"text": 1}])),
                json!({}),
                FaultKind::InvalidParams,
            ),
            (
                message(&json!([{"raw": "dGNr"}])),
                json!({}),
                FaultKind::ContentType,
            ),
            (
                message(&json!([{"url": "https://example.com/"}])),
                json!({}),
                FaultKind::ContentType,
            ),
            (
                message(&ok),
                json!({"acceptedOutputModes": ["image/png"]}),
                FaultKind::ContentType,
            ),
            (
                message(&ok),
                json!({"historyLength": -1}),
                FaultKind::InvalidParams,
            ),
            (
                message(&ok),
                json!({"returnImmediately": "perhaps"}),
                FaultKind::InvalidParams,
            ),
            (
                message(&ok),
                json!({"taskPushNotificationConfig": {"url": "https://example.com/"}}),
                FaultKind::PushNotSupported,
            ),
        ] {
            let fault = v1(&message, &config).unwrap_err();
            assert_eq!(fault.kind, kind, "{message} {config}");
        }
        let long = "i".repeat(MAX_ID);
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
            let wants = read.unwrap().wants;
            assert_eq!((wants.text, wants.data), (text, data), "{modes}");
        }
    }
}
