//! Answers that arrive event by event, in each dialect, and streams that are resumed.

use std::time::Duration;

use a2a_client::{
    AgentClient, AgentResponse, CallError, EventStream, Message, RESUME_LIMIT, SendOptions,
    StreamEvent, StreamEventContent,
};
use serde_json::{Value, json};

use super::card;
use super::raw::{RawReply, RawServer};

/// The dialects with a stream: binding, version, and whether events are wrapped as JSON-RPC responses.
pub const DIALECTS: [(&str, &str); 3] =
    [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")];

pub fn quick() -> SendOptions {
    let mut options = SendOptions::new("unused");
    options.poll_interval = Duration::from_millis(1);
    options
}

/// The agent behind `server`, whose card says that it streams.
pub fn agent(server: &RawServer, dialect: (&str, &str), options: &SendOptions) -> AgentClient {
    let mut card = card(&server.base, dialect.0, Some(dialect.1));
    card.capabilities.streaming = true;
    AgentClient::new(&card, options).unwrap()
}

pub fn message() -> Message {
    Message::from_text("message-1", "do it")
}

/// Events of a dialect in its envelope.
pub fn wrapped(dialect: (&str, &str), event: Value) -> Value {
    match dialect.0 {
        "JSONRPC" => json!({"jsonrpc": "2.0", "id": 1, "result": event}),
        _ => event,
    }
}

pub fn task(dialect: (&str, &str), state: &str, artifacts: &Value) -> Value {
    match dialect.1 {
        "0.3" => json!({"kind": "task", "id": "t", "contextId": "c",
            "status": {"state": state}, "artifacts": artifacts}),
        _ => json!({"task": {"id": "t", "contextId": "c",
            "status": {"state": new_state(state)}, "artifacts": artifacts}}),
    }
}

fn new_state(state: &str) -> String {
    let state = state.to_uppercase().replace('-', "_");
    format!("TASK_STATE_{state}")
}

pub fn status(dialect: (&str, &str), state: &str, text: &str) -> Value {
    let message = |role| json!({"messageId": "m", "role": role, "parts": [{"text": text}]});
    match dialect.1 {
        "0.3" => json!({"kind": "status-update", "taskId": "t", "contextId": "c",
            "final": state == "completed", "status": {"state": state, "message": message("agent")}}),
        _ => json!({"statusUpdate": {"taskId": "t", "contextId": "c",
            "status": {"state": new_state(state), "message": message("ROLE_AGENT")}}}),
    }
}

pub fn chunk(dialect: (&str, &str), text: &str, append: bool) -> Value {
    let update = json!({"taskId": "t", "contextId": "c", "append": append,
        "artifact": {"artifactId": "a", "name": "plan", "parts": [{"text": text}]}});
    match dialect.1 {
        "0.3" => {
            let mut update = update;
            update["kind"] = json!("artifact-update");
            update
        }
        _ => json!({"artifactUpdate": update}),
    }
}

/// A stream of an answer in three pieces.
fn script(dialect: (&str, &str)) -> Vec<Value> {
    [
        task(dialect, "submitted", &json!([])),
        status(dialect, "working", "half done"),
        chunk(dialect, "one ", false),
        chunk(dialect, "two ", true),
        chunk(dialect, "three", true),
        status(dialect, "completed", "done"),
    ]
    .map(|event| wrapped(dialect, event))
    .to_vec()
}

/// All events of a stream, its answer, and the error at its end.
pub async fn all(mut stream: EventStream) -> (Vec<StreamEvent>, AgentResponse, Option<CallError>) {
    let mut events = Vec::new();
    let error = loop {
        match stream.next_event().await {
            None => break None,
            Some(Ok(event)) => events.push(event),
            Some(Err(error)) => break Some(error),
        }
    };
    let ended = stream.next_event().await;
    assert!(ended.is_none(), "{ended:?} after the end");
    (events, stream.response().unwrap(), error)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_streamed_in_every_dialect() {
    for dialect in DIALECTS {
        let server = RawServer::start(vec![RawReply::events(&script(dialect))]).await;
        let stream = agent(&server, dialect, &quick())
            .stream_message(&message())
            .await
            .unwrap();
        assert!(stream.is_streamed());
        let (events, answer, error) = all(stream).await;
        assert_eq!(error, None, "{dialect:?}");
        let seen: Vec<String> = events
            .iter()
            .map(|event| match &event.kind {
                StreamEventContent::Task(task) => {
                    format!("task {}", task.state.as_deref().unwrap())
                }
                StreamEventContent::Message(message) => message.text.clone(),
                StreamEventContent::Status(status) => format!("{}: {}", status.state, status.text),
                StreamEventContent::Artifact(update) => {
                    format!("{} {}", update.is_append, update.artifact.text)
                }
            })
            .collect();
        assert_eq!(
            seen,
            [
                "task submitted",
                "working: half done",
                "false one ",
                "true two ",
                "true three",
                "completed: done"
            ]
        );
        assert_eq!(answer.text, "one two three");
        assert_eq!(answer.state.as_deref(), Some("completed"));
        assert_eq!(
            (answer.task_id.as_deref(), answer.context_id.as_deref()),
            (Some("t"), Some("c"))
        );
        assert_eq!(answer.artifacts[0].name.as_deref(), Some("plan"));
        let expected = script(dialect).remove(2);
        let expected = expected.get("result").unwrap_or(&expected);
        assert_eq!(events[2].raw, *expected, "as received");

        let seen = server.seen().remove(0);
        assert!(
            seen.head.contains("accept: text/event-stream"),
            "{}",
            seen.head
        );
        let (line, method) = match dialect {
            ("HTTP+JSON", _) => ("POST /message:stream HTTP/1.1", Value::Null),
            (_, "1.0") => ("POST / HTTP/1.1", json!("SendStreamingMessage")),
            _ => ("POST / HTTP/1.1", json!("message/stream")),
        };
        assert_eq!((seen.line.as_str(), &seen.body["method"]), (line, &method));
        assert_eq!(seen.head.contains("a2a-version: 1.0"), dialect.1 == "1.0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_are_activated_by_the_header_of_each_version() {
    for dialect in DIALECTS {
        let options = SendOptions {
            extensions: vec!["urn:a".to_owned(), "https://b/1".to_owned()],
            ..quick()
        };
        let server = RawServer::start(vec![RawReply::events(&script(dialect))]).await;
        let called = agent(&server, dialect, &options);
        all(called.stream_message(&message()).await.unwrap()).await;
        let head = server.seen().remove(0).head;
        let is_old = head.contains("x-a2a-extensions: urn:a, https://b/1");
        assert_eq!(is_old, dialect.1 == "0.3", "{head}");
        assert!(
            head.contains("a2a-extensions: urn:a, https://b/1"),
            "{head}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_returned_as_they_arrive() {
    let dialect = DIALECTS[0];
    let server = RawServer::paced(vec![RawReply::events(&script(dialect))], 1).await;
    let mut stream = agent(&server, dialect, &quick())
        .stream_message(&message())
        .await
        .unwrap();
    for left in (0..6).rev() {
        // The server has sent this event and no other.
        stream.next_event().await.unwrap().unwrap();
        assert_eq!(server.permits.available_permits(), 0);
        server.permits.add_permits(usize::from(left > 0));
    }
    assert!(stream.next_event().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_is_resumed_by_its_task_and_sent_once() {
    for dialect in [DIALECTS[0], DIALECTS[1]] {
        let whole = json!([{"artifactId": "a", "parts": [{"text": "one two "}]}]);
        let resumed = [
            task(dialect, "working", &whole),
            chunk(dialect, "three", true),
            status(dialect, "completed", "done"),
        ];
        let resumed = resumed.map(|event| wrapped(dialect, event));
        for (end, busy) in [(0, false), (1, false), (2, true)] {
            let first = RawReply::events(&script(dialect)[..3]);
            let mut replies = vec![match end {
                0 => first.then_dies(),
                _ => first,
            }];
            if busy {
                replies.push(RawReply::status("503 Service Unavailable"));
            }
            replies.push(RawReply::events(&resumed));
            let server = RawServer::start(replies).await;
            let stream = agent(&server, dialect, &quick())
                .stream_message(&message())
                .await
                .unwrap();
            let (events, answer, error) = all(stream).await;
            assert_eq!(error, None, "{dialect:?}");
            assert_eq!((events.len(), answer.text.as_str()), (6, "one two three"));
            let (send, subscribe) = match dialect.0 {
                "JSONRPC" => ("SendStreamingMessage", "SubscribeToTask"),
                _ => ("POST /message:stream", "GET /tasks/t:subscribe"),
            };
            let mut expected = vec![send, subscribe];
            if busy {
                expected.push(subscribe);
            }
            assert_eq!(server.methods(), expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_missed_by_a_0_3_stream_are_read_from_the_task() {
    let dialect = DIALECTS[2];
    let resumed = [
        chunk(dialect, "three", true),
        status(dialect, "completed", "done"),
    ];
    let whole = json!([{"artifactId": "a", "parts": [{"text": "one two three"}]}]);
    let server = RawServer::start(vec![
        RawReply::events(&script(dialect)[..3]).then_dies(),
        RawReply::events(&resumed.map(|event| wrapped(dialect, event))),
        RawReply::json(&wrapped(dialect, task(dialect, "completed", &whole))),
    ])
    .await;
    let stream = agent(&server, dialect, &quick())
        .stream_message(&message())
        .await
        .unwrap();
    let (events, answer, error) = all(stream).await;
    assert_eq!((error, events.len()), (None, 6));
    assert_eq!(answer.text, "one two three");
    assert_eq!(
        server.methods(),
        ["message/stream", "tasks/resubscribe", "tasks/get"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_cannot_be_resumed_is_followed_by_its_task() {
    let dialect = DIALECTS[0];
    let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "over"}});
    let whole = json!([{"artifactId": "a", "parts": [{"text": "one two three"}]}]);
    // Some servers refuse with a document, others inside of a stream.
    for refused in [
        RawReply::json(&refusal),
        RawReply::events(std::slice::from_ref(&refusal)),
    ] {
        let mut working = task(dialect, "working", &json!([]));
        let mut done = task(dialect, "completed", &whole);
        let server = RawServer::start(vec![
            RawReply::events(&script(dialect)[..3]).then_dies(),
            refused,
            RawReply::json(&wrapped(dialect, working["task"].take())),
            RawReply::json(&wrapped(dialect, done["task"].take())),
        ])
        .await;
        let stream = agent(&server, dialect, &quick())
            .stream_message(&message())
            .await
            .unwrap();
        let (_, answer, error) = all(stream).await;
        assert_eq!((error, answer.text.as_str()), (None, "one two three"));
        assert_eq!(
            server.methods(),
            [
                "SendStreamingMessage",
                "SubscribeToTask",
                "GetTask",
                "GetTask"
            ]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_always_breaks_is_given_up() {
    for dialect in DIALECTS {
        let server = RawServer::start(vec![
            RawReply::events(&script(dialect)[..1]).then_dies(),
            RawReply::events(&[]).then_dies(),
        ])
        .await;
        let stream = agent(&server, dialect, &quick())
            .stream_message(&message())
            .await
            .unwrap();
        let (events, answer, error) = all(stream).await;
        assert_eq!(
            (events.len(), answer.state.as_deref()),
            (1, Some("submitted"))
        );
        assert!(
            matches!(&error, Some(CallError::StreamLost { task, .. }) if task == "t"),
            "{error:?}"
        );
        // It was sent once, subscribed to, and asked for at last.
        let methods = server.methods();
        let limit = RESUME_LIMIT as usize;
        assert_eq!(methods.len(), 1 + limit + 1, "{methods:?}");
        assert!(
            methods[1..=limit]
                .iter()
                .all(|method| *method == methods[1])
        );
        assert!(methods[0] != methods[1] && !methods[limit + 1..].contains(&methods[0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_a_task_is_known_nothing_can_be_resumed() {
    for dialect in DIALECTS {
        for end in [
            RawReply::events(&[]),
            RawReply::events(&[]).then_dies(),
            RawReply::bytes("text/event-stream", vec![b"data: {\"half".to_vec()]).then_dies(),
        ] {
            let server = RawServer::start(vec![end]).await;
            let opened = agent(&server, dialect, &quick())
                .stream_message(&message())
                .await;
            let error = opened.err().unwrap();
            assert!(
                matches!(error, CallError::ConnectionLost { .. }),
                "{error:?}"
            );
            assert!(error.to_string().contains("may have received"), "{error}");
            assert_eq!(server.seen().len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_stream_is_resumed_and_an_endless_one_ends_with_the_time_allowed() {
    let dialect = DIALECTS[0];
    let so_far = json!([{"artifactId": "a", "parts": [{"text": "one two "}]}]);
    let snapshot = wrapped(dialect, task(dialect, "working", &so_far));
    let mut options = quick();
    options.idle_timeout = Duration::from_millis(20);
    let server = RawServer::start(vec![
        RawReply::events(&script(dialect)[..3]).then_is_silent(),
        RawReply::events(&[
            snapshot,
            script(dialect).remove(4),
            script(dialect).remove(5),
        ]),
    ])
    .await;
    let stream = agent(&server, dialect, &options)
        .stream_message(&message())
        .await
        .unwrap();
    let (_, answer, error) = all(stream).await;
    assert_eq!((error, answer.text.as_str()), (None, "one two three"));
    assert_eq!(
        server.methods(),
        ["SendStreamingMessage", "SubscribeToTask"]
    );

    let mut options = quick();
    options.timeout = Duration::from_millis(500);
    let server = RawServer::start(vec![
        RawReply::events(&script(dialect)[..2]).then_is_silent(),
    ])
    .await;
    let stream = agent(&server, dialect, &options)
        .stream_message(&message())
        .await
        .unwrap();
    let (events, _, error) = all(stream).await;
    assert_eq!(events.len(), 2);
    assert!(
        matches!(&error, Some(CallError::Unfinished { state, .. }) if state == "working"),
        "{error:?}"
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_stream_after_all_is_waited_for() {
    for dialect in DIALECTS {
        let refusal = match dialect.0 {
            "JSONRPC" => RawReply::json(
                &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "no"}}),
            ),
            _ => RawReply::status("404 Not Found"),
        };
        let server = RawServer::start(vec![
            refusal,
            RawReply::json(&wrapped(dialect, task(dialect, "working", &json!([])))),
            RawReply::json(&wrapped(dialect, task(dialect, "completed", &json!([])))),
        ])
        .await;
        let stream = agent(&server, dialect, &quick())
            .stream_message(&message())
            .await
            .unwrap();
        assert!(!stream.is_streamed());
        let (events, answer, error) = all(stream).await;
        assert_eq!((error, events.len()), (None, 2));
        assert_eq!(answer.state.as_deref(), Some("completed"));
        assert_eq!(server.seen().len(), 3, "{:?}", server.methods());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_instead_of_a_stream_is_the_answer() {
    for dialect in DIALECTS {
        let server = RawServer::start(vec![RawReply::json(&wrapped(
            dialect,
            task(dialect, "completed", &json!([])),
        ))])
        .await;
        let stream = agent(&server, dialect, &quick())
            .stream_message(&message())
            .await
            .unwrap();
        let (events, _, error) = all(stream).await;
        assert_eq!((error, events.len(), server.seen().len()), (None, 1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_cancelled_where_it_is_streamed() {
    for dialect in DIALECTS {
        let mut canceled = task(dialect, "canceled", &json!([]));
        let canceled = match canceled.get_mut("task") {
            Some(task) => task.take(),
            None => canceled,
        };
        let server = RawServer::start(vec![
            RawReply::events(&script(dialect)[..2]).then_is_silent(),
            RawReply::json(&wrapped(dialect, canceled)),
        ])
        .await;
        let stream = agent(&server, dialect, &quick())
            .stream_message(&message())
            .await
            .unwrap();
        let answer = stream.cancel_task().await.unwrap();
        assert_eq!(answer.state.as_deref(), Some("canceled"));
        let expected = match dialect {
            ("HTTP+JSON", _) => "POST /tasks/t:cancel",
            (_, "1.0") => "CancelTask",
            _ => "tasks/cancel",
        };
        assert_eq!(server.methods()[1], expected);
    }
}
