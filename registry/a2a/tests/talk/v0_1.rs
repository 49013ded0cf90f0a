//! Calls in the forms of 0.1, and how an agent without a version is found to speak them.

use a2a_client::{AgentClient, CallError, Message, Part, StreamEventContent};
use serde_json::{Value, json};

use super::card;
use super::raw::{RawReply, RawServer};
use super::streams::quick;

fn agent(server: &RawServer, version: Option<&str>) -> AgentClient {
    let mut card = card(&server.base, "JSONRPC", version);
    card.capabilities.streaming = true;
    AgentClient::new(&card, &quick()).unwrap()
}

fn result(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

fn refusal(code: i64) -> RawReply {
    RawReply::json(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}))
}

fn chunk(text: &str, append: bool) -> Value {
    let artifact = json!({"name": "Plan", "index": 0, "append": append, "parts": [{"type": "text", "text": text}]});
    result(&json!({"id": "m", "artifact": artifact}))
}

fn state(state: &str) -> Value {
    result(&json!({"id": "m", "status": {"state": state}, "final": state == "completed"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_names_its_task_and_its_session() {
    let done = json!({"id": "m", "sessionId": "s", "status": {"state": "completed"},
        "artifacts": [{"index": 0, "parts": [{"type": "text", "text": "fine"}]}]});
    let replies = vec![
        RawReply::json(&result(&done)),
        RawReply::json(&result(&done)),
    ];
    let server = RawServer::start(replies).await;
    let agent = agent(&server, Some("0.1"));
    let first = agent
        .send_message(&Message::from_text("m", "hi"))
        .await
        .unwrap();
    assert_eq!(
        (first.text.as_str(), first.context_id.as_deref()),
        ("fine", Some("s"))
    );
    let message = Message {
        parts: vec![
            Part::Data(json!({"days": 1})),
            Part::File {
                name: "a.bin".to_owned(),
                media_type: "image/png".to_owned(),
                bytes: vec![0xfb, 0xff],
            },
        ],
        context_id: first.context_id,
        task_id: Some("t".to_owned()),
        ..Message::from_text("m-2", "")
    };
    agent.send_message(&message).await.unwrap();
    let seen = server.seen();
    let params = |nth: usize| {
        assert_eq!(seen[nth].body["method"], "tasks/send");
        seen[nth].body["params"].clone()
    };
    let modes = json!(["text", "text/plain", "application/json"]);
    assert_eq!(
        params(0),
        json!({"id": "m", "acceptedOutputModes": modes,
            "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}})
    );
    assert_eq!(
        params(1),
        json!({"id": "t", "sessionId": "s", "acceptedOutputModes": modes, "message": {"role": "user", "parts": [
            {"type": "data", "data": {"days": 1}},
            {"type": "file", "file": {"bytes": "+/8=", "name": "a.bin", "mimeType": "image/png"}},
        ]}})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_put_together_and_resumed_by_the_task_that_the_client_named() {
    // It breaks before the agent has said anything about the task, whose name the client chose.
    let replies = vec![
        RawReply::events(&[]).then_dies(),
        RawReply::events(&[
            state("working"),
            chunk("one, ", false),
            chunk("two", true),
            state("completed"),
        ]),
    ];
    let server = RawServer::start(replies).await;
    let mut stream = agent(&server, Some("0.1"))
        .stream_message(&Message::from_text("m", "hi"))
        .await
        .unwrap();
    let mut artifacts = 0;
    while let Some(event) = stream.next_event().await {
        artifacts += usize::from(matches!(
            event.unwrap().kind,
            StreamEventContent::Artifact(_)
        ));
    }
    assert_eq!(artifacts, 2);
    let answer = stream.response().unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.state.as_deref()),
        ("one, two", Some("completed"))
    );
    assert_eq!(
        server.methods(),
        ["tasks/sendSubscribe", "tasks/resubscribe"]
    );
    assert_eq!(server.seen()[1].body["params"], json!({"id": "m"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_version_is_called_in_every_form_that_it_refuses_to_know() {
    let done = json!({"id": "m", "status": {"state": "completed"}, "artifacts": [{"parts": [{"type": "text", "text": "fine"}]}]});
    let replies = vec![
        refusal(-32600),
        refusal(-32601),
        refusal(-32601),
        RawReply::json(&result(&done)),
    ];
    let server = RawServer::start(replies).await;
    let answer = agent(&server, None)
        .send_message(&Message::from_text("m", "hi"))
        .await;
    assert_eq!(answer.unwrap().text, "fine");
    assert_eq!(
        server.methods(),
        [
            "message/send",
            "SendMessage",
            "a2a.sendMessage",
            "tasks/send"
        ]
    );

    // Another error says nothing about the form, and an agent with a version is called in no other.
    for (version, code) in [(None, -32603), (Some("0.3"), -32600)] {
        let server = RawServer::start(vec![refusal(code)]).await;
        let error = agent(&server, version)
            .send_message(&Message::from_text("m", "hi"))
            .await;
        assert!(
            matches!(error, Err(CallError::Protocol { .. })),
            "{error:?}"
        );
        assert_eq!(server.methods(), ["message/send"]);
    }
}
