//! Converts tasks and events from the 1.0 to the 0.3 format.

use serde_json::{Value, json};

pub(super) fn task_to_v03(mut task: Value) -> Value {
    task["kind"] = "task".into();
    status_to_v03(&mut task["status"]);
    convert_list_items(&mut task, "artifacts", parts_to_v03);
    convert_list_items(&mut task, "history", message_to_v03);
    task
}

/// Converts a stream event; the last event is marked as final.
pub(super) fn event_to_v03(mut event: Value, is_last: bool) -> Value {
    if let Some(of) = event.get_mut("task") {
        return task_to_v03(of.take());
    }
    if let Some(update) = event.get_mut("artifactUpdate") {
        update["kind"] = "artifact-update".into();
        parts_to_v03(&mut update["artifact"]);
        return update.take();
    }
    let mut update = event["statusUpdate"].take();
    update["kind"] = "status-update".into();
    status_to_v03(&mut update["status"]);
    update["final"] = is_last.into();
    update
}

fn convert_list_items(parent: &mut Value, list: &str, convert: fn(&mut Value)) {
    let items = parent.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(convert);
}

fn status_to_v03(status: &mut Value) {
    let state = status["state"].as_str().unwrap_or_default();
    let word = state.trim_start_matches("TASK_STATE_").to_ascii_lowercase();
    status["state"] = word.replace('_', "-").into();
    if let Some(message) = status.get_mut("message") {
        message_to_v03(message);
    }
}

fn message_to_v03(message: &mut Value) {
    let is_user = message["role"] == "ROLE_USER";
    message["kind"] = "message".into();
    message["role"] = if is_user { "user" } else { "agent" }.into();
    parts_to_v03(message);
}

fn parts_to_v03(parent: &mut Value) {
    convert_list_items(parent, "parts", part_to_v03);
}

/// Converts a part: drops its media type, which 0.3 supports for files only, and wraps data in an object.
fn part_to_v03(part: &mut Value) {
    let Some(members) = part.as_object_mut() else {
        return;
    };
    members.retain(|name, _| matches!(name.as_str(), "text" | "data" | "metadata"));
    let mut kind = "text";
    if let Some(data) = members.get_mut("data") {
        kind = "data";
        if !data.is_object() {
            *data = json!({"value": data.take()});
        }
    }
    members.insert("kind".to_owned(), kind.into());
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
        assert_eq!(task_to_v03(new.clone()), old);
        assert_eq!(event_to_v03(json!({"task": new}), false), old);
    }

    #[test]
    fn only_the_last_status_is_final() {
        let update = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
        for last in [true, false] {
            let old = event_to_v03(update.clone(), last);
            assert_eq!(old["kind"], "status-update");
            assert_eq!(old["status"]["state"], "working");
            assert_eq!(old["final"], last);
        }
        let update = json!({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}});
        let old = event_to_v03(update, true);
        assert_eq!(old["kind"], "artifact-update");
        assert_eq!(
            old["artifact"]["parts"],
            json!([{"kind": "text", "text": "x"}])
        );
        assert!(old.get("final").is_none());
    }
}
