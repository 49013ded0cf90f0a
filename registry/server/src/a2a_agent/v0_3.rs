//! Tasks and events in the form of 0.3, made of that of 1.0.

use serde_json::{Map, Value, json};

pub(super) fn task(of: &Value) -> Value {
    let mut task = of.clone();
    task["kind"] = json!("task");
    task["status"] = status(&of["status"]);
    for (name, one) in [
        ("artifacts", artifact as fn(&Value) -> Value),
        ("history", message),
    ] {
        if let Some(list) = of.get(name).and_then(Value::as_array) {
            task[name] = list.iter().map(one).collect();
        }
    }
    task
}

/// An event of a stream; the last one says so.
pub(super) fn event(of: &Value, last: bool) -> Value {
    if let Some(of) = of.get("task") {
        return task(of);
    }
    if let Some(of) = of.get("artifactUpdate") {
        let mut update = of.clone();
        update["kind"] = json!("artifact-update");
        update["artifact"] = artifact(&of["artifact"]);
        return update;
    }
    let mut update = of.get("statusUpdate").cloned().unwrap_or_default();
    update["kind"] = json!("status-update");
    update["status"] = status(&update["status"]);
    update["final"] = json!(last);
    update
}

fn status(of: &Value) -> Value {
    let mut status = of.clone();
    let state = of["state"].as_str().unwrap_or_default();
    let word = state.trim_start_matches("TASK_STATE_").to_ascii_lowercase();
    status["state"] = json!(word.replace('_', "-"));
    if let Some(said) = of.get("message") {
        status["message"] = message(said);
    }
    status
}

fn artifact(of: &Value) -> Value {
    let mut artifact = of.clone();
    artifact["parts"] = parts(of);
    artifact
}

fn message(of: &Value) -> Value {
    let mut message = of.clone();
    message["kind"] = json!("message");
    let is_user = of["role"] == "ROLE_USER";
    message["role"] = json!(if is_user { "user" } else { "agent" });
    message["parts"] = parts(of);
    message
}

fn parts(of: &Value) -> Value {
    let parts = of["parts"].as_array();
    parts.into_iter().flatten().map(part).collect()
}

/// A part: its media type, for which 0.3 has no place but at files, is left out.
fn part(of: &Value) -> Value {
    let mut part = Map::new();
    for name in ["text", "data"] {
        if let Some(content) = of.get(name) {
            part.insert("kind".into(), json!(name));
            // Data of 0.3 is an object.
            let bare = name == "data" && !content.is_object();
            let content = if bare {
                json!({"value": content})
            } else {
                content.clone()
            };
            part.insert(name.into(), content);
        }
    }
    if let Some(metadata) = of.get("metadata") {
        part.insert("metadata".into(), metadata.clone());
    }
    Value::Object(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_written_in_the_older_form() {
        let new = json!({
            "id": "t", "contextId": "c",
            "status": {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "z", "message": {
                "messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "What?", "mediaType": "text/plain"}],
            }},
            "artifacts": [{"artifactId": "a", "parts": [{"data": {"b": 1}}]}],
            "history": [{"messageId": "n", "role": "ROLE_USER", "parts": [{"data": [1]}]}],
        });
        let old = json!({
            "kind": "task", "id": "t", "contextId": "c",
            "status": {"state": "input-required", "timestamp": "z", "message": {
                "kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "What?"}],
            }},
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "data", "data": {"b": 1}}]}],
            "history": [{"kind": "message", "messageId": "n", "role": "user",
                         "parts": [{"kind": "data", "data": {"value": [1]}}]}],
        });
        assert_eq!(task(&new), old);
        assert_eq!(event(&json!({"task": new}), false), old);
    }

    #[test]
    fn only_the_last_status_is_final() {
        let update = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
        for last in [true, false] {
            let old = event(&update, last);
            assert_eq!(old["kind"], "status-update");
            assert_eq!(old["status"]["state"], "working");
            assert_eq!(old["final"], last);
        }
        let update = json!({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}});
        let old = event(&update, true);
        assert_eq!(old["kind"], "artifact-update");
        assert_eq!(
            old["artifact"]["parts"],
            json!([{"kind": "text", "text": "x"}])
        );
        assert!(old.get("final").is_none());
    }
}
