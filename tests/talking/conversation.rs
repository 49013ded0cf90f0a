//! Conversations with `send -i`: several turns with agents on the SDKs, and the state stored between two runs.

use futures::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::card_of;
use super::raw::{RawReply, RawServer};
use super::streams::StreamingAgent;
use crate::support::program::{FinishedProgram, Program, join_lines, registry_command};

/// `send -i` with these further words, and these lines typed.
async fn run_interactive_send(
    state: &TempDir,
    card: &str,
    more: &[&str],
    lines: &str,
) -> FinishedProgram {
    let mut command = registry_command(["send", "--direct", card, "-i"]);
    command.args(more).env("XDG_STATE_HOME", state.path());
    Program::run_with_input(command, lines.as_bytes()).await
}

pub(super) async fn lines_are_turns_of_one_conversation(streamers: &[StreamingAgent]) {
    join_all(streamers.iter().map(|streamer| async move {
        let state = TempDir::new().unwrap();
        let lines = "ask me\n\nthe blue one\nwork in pieces\n";
        let finished = run_interactive_send(&state, &streamer.card, &[], lines).await;
        let name = streamer.name();
        assert_eq!(finished.status.code(), Some(0), "{name}: {finished:#?}");
        // The second line answers the question of the first: its task goes on.
        let answer = streamer.sdk.reply_to("the blue one");
        let expected = ["which one?", &answer, "one, two, three"];
        assert_eq!(finished.stdout, expected, "{name}: {finished:#?}");
        let said = join_lines(&finished.stderr);
        assert!(
            said.contains("asks for more input"),
            "{name}: {finished:#?}"
        );
        assert!(!said.contains("answer with"), "{name}: {finished:#?}");
    }))
    .await;
}

/// A server whose answers name a context, and whose first one asks for input.
async fn server(replies: usize) -> RawServer {
    let asks = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED",
        "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "which?"}]}}}});
    let says = json!({"message": {"messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": "fine"}]}});
    let wrapped = |result: &Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let rest = std::iter::repeat_n(&says, replies - 1);
    let replies = std::iter::once(&asks).chain(rest);
    RawServer::start(
        replies
            .map(|reply| RawReply::events(&[wrapped(reply)]))
            .collect(),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_resumed_where_it_ended() {
    let state = TempDir::new().unwrap();
    let server = server(4).await;
    let origin = card_of(&server.base, "JSONRPC", "1.0");
    let card = origin.url(super::CARD);
    let none = run_interactive_send(&state, &card, &["--resume"], "hi\n").await;
    assert_eq!(none.status.code(), Some(1), "{none:#?}");
    assert!(
        join_lines(&none.stderr).contains("no earlier conversation"),
        "{none:#?}"
    );

    let first = run_interactive_send(&state, &card, &[], "one\n").await;
    assert_eq!(first.stdout, ["which?"], "{first:#?}");
    let second = run_interactive_send(&state, &card, &["--resume"], "two\nthree\n").await;
    assert_eq!(second.stdout, ["fine", "fine"], "{second:#?}");
    let earlier = join_lines(&second.stderr);
    assert!(
        earlier.contains("> one") && earlier.contains("< which?"),
        "{second:#?}"
    );
    let anew = run_interactive_send(&state, &card, &[], "four\n").await;
    assert!(join_lines(&anew.stderr).contains("--resume"), "{anew:#?}");

    let continued: Vec<(Value, Value)> = server
        .seen()
        .iter()
        .map(|request| {
            let message = &request.body["params"]["message"];
            (message["taskId"].clone(), message["contextId"].clone())
        })
        .collect();
    let (null, t, c) = (Value::Null, json!("t"), json!("c"));
    assert_eq!(
        continued,
        [
            (null.clone(), null.clone()),
            (t, c.clone()),
            (null.clone(), c),
            (null.clone(), null)
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_told_and_the_conversation_goes_on() {
    let state = TempDir::new().unwrap();
    let says = json!({"jsonrpc": "2.0", "id": 1, "result": {"message":
        {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "fine\u{1b}[2J"}]}}});
    let replies = vec![
        RawReply::status("500 Internal Server Error"),
        RawReply::events(&[says]),
    ];
    let server = RawServer::start(replies).await;
    let origin = card_of(&server.base, "JSONRPC", "1.0");
    let finished = run_interactive_send(&state, &origin.url(super::CARD), &["zero"], "one\n").await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(finished.stdout, ["fine\\u{1b}[2J"], "{finished:#?}");
    assert!(
        join_lines(&finished.stderr).contains("HTTP 500"),
        "{finished:#?}"
    );
}
