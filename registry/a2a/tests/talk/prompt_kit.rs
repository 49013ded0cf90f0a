//! Calls to agents whose cards name no address, in the forms of `PromptKit`.

use a2a_card::AgentCard;
use a2a_client::{
    AgentClient, CallError, InterfacePreferences, Message, Part, ProtocolBinding, SendOptions,
    TaskQuery,
};
use serde_json::{Value, json};

use super::card;
use super::raw::{RawReply, RawServer};
use super::streams::{all, quick};

fn without_address() -> AgentCard {
    let mut card = AgentCard {
        name: "Agent".to_owned(),
        ..AgentCard::default()
    };
    card.capabilities.streaming = true;
    card
}

fn at(url: &str, card: &AgentCard) -> Result<AgentClient, CallError> {
    let options = SendOptions {
        interface_filter: InterfacePreferences {
            url: Some(url.to_owned()),
            ..InterfacePreferences::default()
        },
        ..quick()
    };
    AgentClient::new(card, &options)
}

fn result(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_events_have_no_kind() {
    let state =
        |state: &str| result(&json!({"taskId": "t", "contextId": "c", "status": {"state": state}}));
    let chunk = |text: &str, append: bool| {
        let artifact = json!({"artifactId": "a", "parts": [{"text": text}]});
        result(&json!({"taskId": "t", "contextId": "c", "artifact": artifact, "append": append}))
    };
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "completed"},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "one, two"}]}]});
    let replies = vec![
        RawReply::events(&[state("submitted"), state("working"), chunk("one, ", false)])
            .then_dies(),
        RawReply::events(&[chunk("two", true), state("completed")]),
        RawReply::json(&result(&task)),
    ];
    let server = RawServer::start(replies).await;
    let agent = at(&format!("{}/a2a", server.base), &without_address()).unwrap();
    let message = Message {
        parts: vec![
            Part::Text("hi".to_owned()),
            Part::File {
                name: "a.bin".to_owned(),
                media_type: "image/png".to_owned(),
                bytes: vec![0xfb, 0xff],
            },
        ],
        task_id: Some("t".to_owned()),
        ..Message::from_text("m", "")
    };
    let (_, answer, error) = all(agent.stream_message(&message).await.unwrap()).await;
    assert_eq!(error, None);
    assert_eq!(
        (
            answer.text.as_str(),
            answer.context_id.as_deref(),
            answer.protocol_binding
        ),
        ("one, two", Some("c"), ProtocolBinding::PromptKitJsonRpc)
    );
    let seen = server.seen();
    assert_eq!(seen[0].line, "POST /a2a HTTP/1.1");
    let sent = json!({"messageId": "m", "role": "user", "taskId": "t", "parts": [
        {"text": "hi"},
        {"raw": "+/8=", "filename": "a.bin", "mediaType": "image/png"},
    ]});
    assert_eq!(seen[0].body["params"]["message"], sent);
    assert_eq!(server.methods()[..2], ["message/stream", "tasks/subscribe"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn states_are_spelled_with_underscores() {
    let task = json!({"id": "t", "status": {"state": "input_required",
        "message": {"messageId": "m", "role": "agent", "parts": [{"text": "which?"}]}}});
    let replies = vec![
        RawReply::json(&result(&task)),
        RawReply::json(&result(&json!({"tasks": [task]}))),
    ];
    let server = RawServer::start(replies).await;
    let mut card = without_address();
    card.capabilities.streaming = false;
    let agent = at(&server.base, &card).unwrap();
    let answer = agent
        .send_message(&Message::from_text("m", "hi"))
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.state.as_deref()),
        ("which?", Some("input-required"))
    );
    let query = TaskQuery {
        state: answer.state,
        ..TaskQuery::default()
    };
    agent.list_tasks(&query).await.unwrap();
    assert_eq!(server.methods(), ["message/send", "tasks/list"]);
    assert_eq!(
        server.seen()[1].body["params"],
        json!({"status": "input_required"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_the_caller_replaces_those_of_the_card() {
    assert_eq!(
        AgentClient::new(&without_address(), &quick()).err(),
        Some(CallError::NoInterface)
    );
    let wrong = at("nowhere", &without_address()).err().unwrap();
    assert!(
        wrong.to_string().contains("`nowhere` is not an address"),
        "{wrong}"
    );

    let done = json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "fine"}]});
    let server = RawServer::start(vec![RawReply::json(&result(&done))]).await;
    let elsewhere = card("http://127.0.0.1:1/", "JSONRPC", Some("0.3"));
    let answer = at(&server.base, &elsewhere).unwrap();
    let answer = answer
        .send_message(&Message::from_text("m", "hi"))
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.protocol_binding),
        ("fine", ProtocolBinding::V0JsonRpc)
    );
    assert_eq!(
        server.seen()[0].body["params"]["message"]["kind"],
        "message"
    );
}
