//! Agents that break in mid-stream or are malicious: one line, an exit code, and no message is sent twice.

use serde_json::{Value, json};

use super::card_of;
use super::raw::{RawReply, RawServer};
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, assert_exit, registry_command};

const SSE: &str = "text/event-stream";

fn wrapped(event: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": event})
}

fn task(artifacts: &Value) -> Value {
    wrapped(&json!({"task": {"id": "t-1", "contextId": "c",
        "status": {"state": "TASK_STATE_WORKING"}, "artifacts": artifacts}}))
}

fn chunk(text: &str, append: bool) -> Value {
    wrapped(
        &json!({"artifactUpdate": {"taskId": "t-1", "append": append,
        "artifact": {"artifactId": "a", "parts": [{"text": text}]}}}),
    )
}

fn status_event(state: &str, text: &str) -> Value {
    wrapped(
        &json!({"statusUpdate": {"taskId": "t-1", "status": {"state": state,
        "message": {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": text}]}}}}),
    )
}

async fn send_to(server: &RawServer, more: &[&str]) -> FinishedProgram {
    let origin = card_of(&server.base, "JSONRPC", "1.0");
    let mut command = registry_command(["send", "--direct", &origin.url(super::CARD), "do it"]);
    command.args(more);
    Program::run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_stream_is_one_line_and_the_message_was_sent_once() {
    let begun = format!("data: {}\n\n", task(&json!([])));
    let begun = || begun.clone().into_bytes();
    let mut foreign_call = chunk("not yours", false);
    foreign_call["id"] = json!("another");
    let mut foreign_task = chunk("not yours", false);
    foreign_task["result"]["artifactUpdate"]["taskId"] = json!("\u{1b}]0;t-2\u{7}");
    let large =
        vec![format!("data: {}\n\n", chunk(&"x".repeat(1_000_000), true)).into_bytes(); 100];
    for (fault, reply, words) in [
        (
            "dead at once",
            RawReply::events(&[]).then_dies(),
            "may have received",
        ),
        ("empty", RawReply::events(&[]), "may have received"),
        (
            "a page",
            RawReply::bytes("text/html", vec![b"<h1>hi</h1>".to_vec()]),
            "text/html",
        ),
        (
            "a redirect",
            RawReply::status("302 Found\r\nlocation: http://127.0.0.1:1/"),
            "redirects to",
        ),
        (
            "busy",
            RawReply::status("429 Too Many Requests\r\nretry-after: 30"),
            "HTTP 429; try again in 30 s",
        ),
        (
            "broken data",
            RawReply::bytes(SSE, vec![begun(), b"data: {\"\n\n".to_vec()]),
            "is not an event",
        ),
        (
            "not UTF-8",
            RawReply::bytes(SSE, vec![begun(), b"data: \xff\n\n".to_vec()]),
            "UTF-8",
        ),
        (
            "another call",
            RawReply::events(&[task(&json!([])), foreign_call]),
            "call 1",
        ),
        (
            "another task",
            RawReply::events(&[task(&json!([])), foreign_task]),
            "\\u{1b}]0;t-2",
        ),
        (
            "100 MB",
            RawReply::bytes(SSE, [vec![begun()], large].concat()),
            "67108864",
        ),
        (
            "one huge event",
            RawReply::bytes(SSE, vec![vec![b'x'; 1_000_000]; 20]),
            "8388608",
        ),
    ] {
        let server = RawServer::start(vec![reply]).await;
        let finished = send_to(&server, &[]).await;
        assert_eq!(server.methods(), ["SendStreamingMessage"], "{fault}");
        assert_eq!(finished.stderr.len(), 1, "{fault}: {:?}", finished.stderr);
        assert_exit(&finished, 2, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_dies_is_resumed_and_no_text_is_printed_twice() {
    let so_far = json!([{"artifactId": "a", "parts": [{"text": "one, "}, {"text": "two, "}]}]);
    let server = RawServer::start(vec![
        RawReply::events(&[
            task(&json!([])),
            chunk("one, ", false),
            chunk("two, ", true),
        ])
        .then_dies(),
        RawReply::status("503 Service Unavailable"),
        RawReply::events(&[task(&so_far)]).then_dies(),
        RawReply::events(&[
            task(&so_far),
            status_event("TASK_STATE_WORKING", "busy"),
            status_event("TASK_STATE_WORKING", "busy"),
            chunk("three", true),
            status_event("TASK_STATE_COMPLETED", "done"),
        ]),
    ])
    .await;
    let finished = send_to(&server, &[]).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(finished.stdout, ["one, two, three"]);
    assert_eq!(
        finished.stderr,
        ["working: busy"],
        "repeated events are told once"
    );
    let mut expected = vec!["SendStreamingMessage"];
    expected.extend(["SubscribeToTask"; 3]);
    assert_eq!(server.methods(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_lost_or_never_ends_is_told_with_its_id() {
    let missing =
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no such task"}});
    let server = RawServer::start(vec![
        RawReply::events(&[task(&json!([])), chunk("one", false)]).then_dies(),
        RawReply::json(&missing),
    ])
    .await;
    let finished = send_to(&server, &[]).await;
    assert_eq!(finished.stdout, ["one"]);
    assert_exit(&finished, 2, "t-1");
    assert!(finished.stderr[0].contains("no such task"), "{finished:#?}");
    assert_eq!(
        server.methods(),
        ["SendStreamingMessage", "SubscribeToTask", "GetTask"]
    );

    let server = RawServer::start(vec![
        RawReply::events(&[task(&json!([])), chunk("one", false)]).then_is_silent(),
    ])
    .await;
    let finished = send_to(&server, &["--timeout", "1"]).await;
    assert_eq!(finished.stdout, ["one"]);
    assert_exit(&finished, 1, "still working after 1 s");
    assert_eq!(server.methods(), ["SendStreamingMessage"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_streams_is_made_visible() {
    let server = RawServer::start(vec![RawReply::events(&[
        task(&json!([])),
        status_event("TASK_STATE_WORKING", "\u{1b}[2Jbusy\nand\u{202e}more"),
        chunk("evil\u{1b}]0;title\u{7}\rx\n", false),
        status_event("TASK_STATE_REJECTED", "not\u{9b}today"),
    ])])
    .await;
    let finished = send_to(&server, &[]).await;
    let shown = [finished.stdout.clone(), finished.stderr.clone()].concat();
    for line in &shown {
        assert!(!line.chars().any(char::is_control), "{finished:#?}");
    }
    assert_eq!(
        finished.stdout,
        ["evil\\u{1b}]0;title\\u{7}\\rx", "", "not\\u{9b}today"]
    );
    assert_eq!(
        finished.stderr,
        [
            "working: \\u{1b}[2Jbusy\\nand\\u{202e}more",
            "the task is rejected"
        ]
    );
    assert_eq!(finished.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_binding_is_called_only_as_the_user_says() {
    let message = json!({"kind": "message", "messageId": "m", "role": "agent",
        "parts": [{"kind": "text", "text": "at your service"}]});
    let server = RawServer::start(vec![RawReply::json(&wrapped(&message))]).await;
    let origin = Origin::start();
    let card = json!({"name": "Desk", "endpoints": {"base_url": server.base}});
    origin.set_reply(super::CARD, OriginReply::json(card.to_string()));
    let url = origin.url(super::CARD);
    let send = ["send", "--direct", &url, "hi"];
    let refused = Program::run(registry_command(send)).await;
    assert_exit(&refused, 2, "--binding JSONRPC");
    assert!(server.seen().is_empty(), "nothing is sent");
    let mut command = registry_command(send);
    command.args(["--binding", "jsonrpc"]);
    let finished = Program::run(command).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(finished.stdout, ["at your service"]);
    assert_eq!(server.methods(), ["message/send"]);
}
