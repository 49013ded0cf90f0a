//! Tasks that are not done when the send returns, and what the requests look like.

use std::time::Duration;

use a2a_client::{POLL_LIMIT, SendOptions, send_text};
use serde_json::{Value, json};

use super::card;
use super::scripted::{Scripted, ScriptedAnswer};

fn quick() -> SendOptions {
    let mut options = SendOptions::new("message-1");
    options.poll_interval = Duration::from_millis(1);
    options
}

fn rpc(result: &Value) -> ScriptedAnswer {
    ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

fn old_task(state: &str, text: &str) -> Value {
    json!({"kind": "task", "id": "t 1/x", "contextId": "c", "status": {"state": state,
        "message": {"kind": "message", "role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": text}]}}})
}

fn new_task(state: &str, text: &str) -> Value {
    json!({"id": "t 1/x", "contextId": "c", "status": {"state": state,
        "message": {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": text}]}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_0_3_task_is_asked_for_until_it_completes() {
    let server = Scripted::start([
        rpc(&old_task("submitted", "in the queue")),
        rpc(&old_task("working", "half done")),
        rpc(&old_task("completed", "all done")),
    ])
    .await;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("0.3")),
        "do it",
        &quick(),
    )
    .await
    .unwrap();
    assert_eq!(
        (
            answer.text.as_str(),
            answer.state.as_deref(),
            answer.unfinished_reason
        ),
        ("all done", Some("completed"), None)
    );
    let seen = server.stop().await;
    assert_eq!(seen[0].header("a2a-version"), None);
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[0].body["method"], "message/send");
    assert_eq!(
        seen[0].body["params"]["message"],
        json!({"kind": "message", "messageId": "message-1", "role": "user", "parts": [{"kind": "text", "text": "do it"}]})
    );
    assert_eq!(seen[0].body["params"]["configuration"]["blocking"], true);
    let asked: Vec<_> = seen[1..]
        .iter()
        .map(|seen| (&seen.body["method"], &seen.body["params"]))
        .collect();
    assert_eq!(
        asked,
        vec![(&json!("tasks/get"), &json!({"id": "t 1/x"})); 2]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_1_0_task_is_asked_for_with_the_tenant_on_both_bindings() {
    let message =
        json!({"messageId": "message-1", "role": "ROLE_USER", "parts": [{"text": "do it"}]});
    let server = Scripted::start([
        rpc(&json!({"task": new_task("TASK_STATE_WORKING", "wait")})),
        rpc(&new_task("TASK_STATE_COMPLETED", "all done")),
    ])
    .await;
    let mut spoken = card(&server.base, "JSONRPC", Some("1.0"));
    spoken.interfaces[0].tenant = Some("acme/eu".to_owned());
    assert_eq!(
        send_text(&spoken, "do it", &quick()).await.unwrap().text,
        "all done"
    );
    let seen = server.stop().await;
    assert_eq!(seen[0].header("a2a-version"), Some("1.0"));
    assert_eq!(
        (&seen[0].body["method"], &seen[0].body["params"]),
        (
            &json!("SendMessage"),
            &json!({"message": message, "tenant": "acme/eu"})
        )
    );
    assert_eq!(
        (&seen[1].body["method"], &seen[1].body["params"]),
        (
            &json!("GetTask"),
            &json!({"id": "t 1/x", "tenant": "acme/eu"})
        )
    );

    let server = Scripted::start([
        ScriptedAnswer::json(&json!({"task": new_task("TASK_STATE_WORKING", "wait")})),
        ScriptedAnswer::json(&new_task("TASK_STATE_COMPLETED", "all done")),
    ])
    .await;
    let mut spoken = card(
        &format!("{}/a2a/?key=1", server.base),
        "HTTP+JSON",
        Some("1.0"),
    );
    spoken.interfaces[0].tenant = Some("acme/eu".to_owned());
    assert_eq!(
        send_text(&spoken, "do it", &quick()).await.unwrap().text,
        "all done"
    );
    let seen = server.stop().await;
    let asked: Vec<_> = seen
        .iter()
        .map(|seen| (seen.method.as_str(), seen.path_and_query.as_str()))
        .collect();
    assert_eq!(
        asked,
        [
            ("POST", "/a2a/acme%2Feu/message:send?key=1"),
            ("GET", "/a2a/acme%2Feu/tasks/t%201%2Fx?key=1")
        ]
    );
    assert_eq!(seen[0].body, json!({"message": message}));
    assert!(
        seen.iter()
            .all(|seen| seen.header("a2a-version") == Some("1.0"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_the_user_is_not_asked_for() {
    let server = Scripted::start([rpc(&old_task("input-required", "which city?"))]).await;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("0.2")),
        "plan",
        &quick(),
    )
    .await
    .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.state.as_deref()),
        ("which city?", Some("input-required"))
    );
    assert_eq!(answer.unfinished_reason, None);
    assert_eq!(server.stop().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_stands_when_asking_fails() {
    let server = Scripted::start([
        rpc(&old_task("working", "half done")),
        ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no tasks/get"}})),
    ])
    .await;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("0.3")),
        "do it",
        &quick(),
    )
    .await
    .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.state.as_deref()),
        ("half done", Some("working"))
    );
    assert!(answer.unfinished_reason.unwrap().contains("no tasks/get"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_task_is_asked_for_a_bounded_number_of_times() {
    let answers = vec![rpc(&old_task("working", "still at it")); POLL_LIMIT as usize + 5];
    let server = Scripted::start(answers).await;
    let mut options = quick();
    options.poll_interval = Duration::ZERO;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("0.3")),
        "do it",
        &options,
    )
    .await
    .unwrap();
    assert_eq!(answer.task_id.as_deref(), Some("t 1/x"));
    assert!(answer.unfinished_reason.unwrap().contains("still working"));
    assert_eq!(server.stop().await.len(), POLL_LIMIT as usize + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_beyond_the_deadline_is_given_as_it_stands() {
    let server = Scripted::start([rpc(&old_task("working", "half done"))]).await;
    let mut options = quick();
    // The first time to ask again would be after the deadline.
    options.poll_interval = options.timeout * 2;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("0.3")),
        "do it",
        &options,
    )
    .await
    .unwrap();
    assert!(
        answer
            .unfinished_reason
            .unwrap()
            .contains("still working after 60 s")
    );
    assert_eq!(server.stop().await.len(), 1);
}
