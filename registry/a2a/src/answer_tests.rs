//! Answers in the shapes of each version.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn route() -> AgentRoute {
    AgentRoute {
        interface: Interface {
            url: "http://h/".to_owned(),
            ..Interface::default()
        },
        url: "http://h/".parse().unwrap(),
        protocol_binding: ProtocolBinding::V1JsonRpc,
    }
}

fn answer(raw: Value) -> AgentResponse {
    parse_send_result(raw, &route()).unwrap()
}

#[test]
fn both_generations_of_one_task_read_alike() {
    let old = answer(json!({
        "kind": "task", "id": "t", "contextId": "c",
        "status": {"state": "input-required", "message": {
            "kind": "message", "messageId": "m", "role": "agent",
            "parts": [{"kind": "text", "text": "which city?"}]}},
        "artifacts": [{"artifactId": "a", "name": "draft", "parts": [
            {"kind": "text", "text": "day 1"},
            {"kind": "file", "file": {"bytes": "AAAA", "name": "map.png", "mimeType": "image/png"}},
            {"kind": "file", "file": {"uri": "https://h/x", "mimeType": "image/png"}},
            {"kind": "data", "data": {"days": 1}}]}],
    }));
    let new = answer(json!({"task": {
        "id": "t", "contextId": "c",
        "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": {
            "messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "which city?"}]}},
        "artifacts": [{"artifactId": "a", "name": "draft", "parts": [
            {"text": "day 1"},
            {"raw": "AAAA", "filename": "map.png", "mediaType": "image/png"},
            {"url": "https://h/x", "mediaType": "image/png"},
            {"data": {"days": 1}}]}],
    }}));
    for answer in [&old, &new] {
        assert_eq!(answer.text, "which city?\n\nday 1");
        assert_eq!(answer.state.as_deref(), Some("input-required"));
        assert_eq!(answer.task_id.as_deref(), Some("t"));
        assert_eq!(answer.context_id.as_deref(), Some("c"));
        assert_eq!(
            answer.artifacts,
            [ArtifactSummary {
                id: Some("a".to_owned()),
                name: Some("draft".to_owned()),
                text: "day 1".to_owned(),
                media_types: vec!["image/png".to_owned()],
                other_parts: vec![
                    "file map.png (image/png), 3 bytes".to_owned(),
                    "file (image/png) at https://h/x".to_owned(),
                    "data: {\"days\":1}".to_owned(),
                ],
            }]
        );
    }
}

#[test]
fn messages_are_read_wrapped_or_bare() {
    for raw in [
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "contextId": "c", "parts": [{"text": "a"}, {"text": "b"}]}}),
        json!({"kind": "message", "messageId": "m", "role": "agent", "contextId": "c", "parts": [{"kind": "text", "text": "a"}, {"kind": "text", "text": "b"}]}),
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "contextId": "c", "content": [{"text": "a"}, {"text": "b"}]}}),
        json!({"role": "agent", "contextId": "c", "parts": [{"type": "text", "text": "a"}, {"text": "b"}]}),
    ] {
        let answer = answer(raw.clone());
        assert_eq!(
            (answer.text.as_str(), answer.state.as_deref()),
            ("a\nb", None),
            "{raw}"
        );
        assert_eq!(answer.context_id.as_deref(), Some("c"));
    }
}

#[test]
fn a_completed_task_answers_with_its_artifacts_then_its_status_then_its_history() {
    let status = json!({"state": "completed", "message": {"parts": [{"text": "done"}]}});
    let history = json!([
        {"role": "user", "parts": [{"text": "question"}]},
        {"role": "agent", "parts": [{"text": "said before"}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]);
    let with = |artifacts: Value, status: &Value| {
        answer(json!({"kind": "task", "id": "t", "status": status, "artifacts": artifacts, "history": history})).text
    };
    assert_eq!(
        with(json!([{"parts": [{"text": "result"}]}]), &status),
        "result"
    );
    assert_eq!(with(json!([]), &status), "done");
    assert_eq!(
        with(json!([]), &json!({"state": "completed"})),
        "said before"
    );
}

#[test]
fn states_have_one_spelling() {
    for (raw, plain) in [
        ("TASK_STATE_CANCELLED", "canceled"),
        ("TASK_STATE_CANCELED", "canceled"),
        ("canceled", "canceled"),
        ("TASK_STATE_AUTH_REQUIRED", "auth-required"),
        ("working", "working"),
        ("created", "submitted"),
        ("input_required", "input-required"),
    ] {
        assert_eq!(normalize_task_state(raw), plain);
    }
}

#[test]
fn what_is_no_answer_is_refused_not_guessed_at() {
    for raw in [
        json!("text"),
        json!([]),
        json!({}),
        json!({"task": "t"}),
        json!({"kind": "task", "id": "t"}),
        json!({"kind": "task", "status": {"state": 3}}),
        json!({"kind": "status-update", "taskId": "t"}),
    ] {
        let error = parse_send_result(raw.clone(), &route()).unwrap_err();
        assert!(
            matches!(error, CallError::InvalidResponse { .. }),
            "{raw}: {error:?}"
        );
    }
}

#[test]
fn only_the_first_hundred_artifacts_are_summarised() {
    let artifacts: Vec<Value> = (0..101)
        .map(|n| json!({"name": n.to_string(), "parts": []}))
        .collect();
    let answer = answer(
        json!({"kind": "task", "id": "t", "status": {"state": "completed"}, "artifacts": artifacts}),
    );
    assert_eq!(answer.artifacts.len(), ARTIFACT_LIMIT);
    assert_eq!(answer.raw["artifacts"].as_array().unwrap().len(), 101);
}
