//! Streams of agents that are broken or mean harm: each ends with one line, and nothing is sent twice.

use a2a_client::{CallError, EVENT_COUNT_LIMIT, EVENT_LIMIT, STREAM_LIMIT, SendOptions};
use serde_json::json;

use super::raw::{RawReply, RawServer};
use super::streams::{DIALECTS, agent, all, chunk, message, quick, status, task, wrapped};
use super::{card, interface};

const SSE: &str = "text/event-stream";

/// The error that a stream ends with, before or after its first event; the agent received one request.
async fn ends(dialect: (&str, &str), reply: RawReply) -> CallError {
    let server = RawServer::start(vec![reply]).await;
    let opened = agent(&server, dialect, &quick())
        .stream_message(&message())
        .await;
    let error = match opened {
        Ok(stream) => all(stream).await.2.unwrap(),
        Err(error) => error,
    };
    assert_eq!(server.seen().len(), 1, "{:?}", server.methods());
    let line = error.to_string();
    assert!(!line.contains('\n') && line.chars().count() < 500, "{line}");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_ends_the_stream() {
    for dialect in DIALECTS {
        let first = wrapped(dialect, task(dialect, "working", &json!([])));
        let first = format!("data: {first}\n\n").into_bytes();
        for data in [
            "data: not json\n\n".to_owned(),
            "data: [DONE]\n\n".to_owned(),
            "data: 7\n\n".to_owned(),
            format!("data: {}\n\n", wrapped(dialect, json!({"kind": "hello"}))),
            format!(
                "data: {}\n\n",
                wrapped(dialect, json!({"statusUpdate": {"taskId": "t"}}))
            ),
            format!("data: {}\n\n", "[".repeat(100_000)),
            format!("data: {}\n\ndata: x\n\n", "long ".repeat(10_000)),
        ] {
            let reply = RawReply::bytes(SSE, vec![first.clone(), data.clone().into_bytes()]);
            let error = ends(dialect, reply).await;
            assert!(
                matches!(error, CallError::NotAnEvent { .. }),
                "{data:.80}: {error:?}"
            );
        }
        let reply = RawReply::bytes(SSE, vec![first, b"data: \"\xff\xfe\"\n\n".to_vec()]);
        let error = ends(dialect, reply).await;
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_others_end_the_stream() {
    for dialect in DIALECTS {
        let first = wrapped(dialect, task(dialect, "working", &json!([])));
        let mut foreign = chunk(dialect, "not yours", false);
        let update = match dialect.1 {
            "0.3" => &mut foreign,
            _ => &mut foreign["artifactUpdate"],
        };
        update["taskId"] = json!("\u{1b}other");
        let error = ends(
            dialect,
            RawReply::events(&[first.clone(), wrapped(dialect, foreign)]),
        )
        .await;
        assert!(
            matches!(&error, CallError::ForeignEvent { expected, found } if expected == "task t" && found.ends_with("other")),
            "{error:?}"
        );
        if dialect.0 == "JSONRPC" {
            let mut foreign = wrapped(dialect, chunk(dialect, "not yours", false));
            foreign["id"] = json!(2);
            let error = ends(dialect, RawReply::events(&[first, foreign])).await;
            assert!(matches!(error, CallError::ForeignEvent { .. }), "{error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_stream_is_told_as_the_agent_tells_it() {
    for dialect in DIALECTS {
        let first = wrapped(dialect, task(dialect, "working", &json!([])));
        let failed = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "out of\nsorts"}});
        let named = format!("data: {first}\n\nevent: error\ndata: {failed}\n\n");
        for reply in [
            RawReply::events(&[first.clone(), failed.clone()]),
            RawReply::bytes(SSE, vec![named.into_bytes()]),
        ] {
            let error = ends(dialect, reply).await;
            assert!(
                matches!(&error, CallError::Protocol { code: -32603, message, .. } if message == "out of sorts"),
                "{error:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_of_another_type_is_no_stream() {
    for dialect in DIALECTS {
        for content_type in [
            "text/html",
            "text/event-streams",
            "application/octet-stream",
        ] {
            let reply = RawReply::bytes(content_type, vec![b"<h1>hello</h1>".to_vec()]);
            let error = ends(dialect, reply).await;
            assert!(
                matches!(&error, CallError::NotJson { content_type: named, .. } if named == content_type),
                "{error:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_read_as_the_standard_of_the_web_has_them() {
    let dialect = DIALECTS[1];
    let done = status(dialect, "completed", "done").to_string();
    let (start, rest) = done.split_at(done.find(':').unwrap() + 1);
    let frames = format!(
        "\u{feff}: hello\r\n\r\nid: 1\r\nretry: 5\r\ndata:{}\r\n\r\n:\n\nevent: x\rdata: {start}\rdata:{rest}\r\r",
        task(dialect, "working", &json!([]))
    );
    // Split at every byte, so that no piece ends where an event does.
    let pieces = frames.bytes().map(|byte| vec![byte]).collect();
    let server = RawServer::start(vec![RawReply::bytes(
        "Text/Event-Stream; charset=utf-8",
        pieces,
    )])
    .await;
    let stream = agent(&server, dialect, &quick())
        .stream_message(&message())
        .await
        .unwrap();
    let (events, answer, error) = all(stream).await;
    assert_eq!((error, events.len()), (None, 2));
    assert_eq!(answer.text, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_read_up_to_its_limit_and_no_further() {
    let dialect = DIALECTS[1];
    let done = task(dialect, "completed", &json!([])).to_string();
    for (over, expected) in [(0, true), (1, false)] {
        let padding = " ".repeat(EVENT_LIMIT - done.len() + over);
        let reply = RawReply::bytes(SSE, vec![format!("data: {padding}{done}\n\n").into_bytes()]);
        // The space after the colon is no part of the data.
        if expected {
            let server = RawServer::start(vec![reply]).await;
            let stream = agent(&server, dialect, &quick())
                .stream_message(&message())
                .await
                .unwrap();
            assert_eq!(all(stream).await.2, None);
        } else {
            let error = ends(dialect, reply).await;
            assert!(
                matches!(error, CallError::StreamTooLong { .. }),
                "{error:?}"
            );
        }
    }
    // Neither an event without an end nor endless comments are kept.
    for piece in ["data: and so on\n", ": and so on\n"] {
        let many = vec![piece.repeat(100_000).into_bytes(); 40];
        let error = ends(dialect, RawReply::bytes(SSE, many)).await;
        assert!(
            matches!(error, CallError::StreamTooLong { .. }),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_read_up_to_its_limit_and_no_further() {
    let dialect = DIALECTS[1];
    let piece = |event: &str, length: usize| {
        let mut frame = format!("data: {event}");
        frame.push_str(&" ".repeat(length - frame.len() - 2));
        frame.push_str("\n\n");
        frame.into_bytes()
    };
    let working = task(dialect, "working", &json!([])).to_string();
    let done = status(dialect, "completed", "done").to_string();
    for (over, expected) in [(0, true), (1, false)] {
        let share = STREAM_LIMIT / 16;
        let mut pieces = vec![piece(&working, share); 15];
        pieces.push(piece(&done, share + over));
        let reply = RawReply::bytes(SSE, pieces);
        if expected {
            let server = RawServer::start(vec![reply]).await;
            let stream = agent(&server, dialect, &quick())
                .stream_message(&message())
                .await
                .unwrap();
            assert_eq!(all(stream).await.2, None);
        } else {
            let error = ends(dialect, reply).await;
            assert!(
                error.to_string().contains(&STREAM_LIMIT.to_string()),
                "{error}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_repeats_events_for_ever_is_left() {
    let dialect = DIALECTS[1];
    let first = format!("data: {}\n\n", task(dialect, "working", &json!([])));
    let working = format!("data: {}\n\n", status(dialect, "working", "still at it"));
    let done = format!("data: {}\n\n", status(dialect, "completed", "done"));
    let repeated = |times: usize, last: &str| {
        let body = format!("{first}{}{last}", working.repeat(times));
        RawReply::bytes(SSE, vec![body.into_bytes()])
    };
    let server = RawServer::start(vec![repeated(EVENT_COUNT_LIMIT - 2, &done)]).await;
    let stream = agent(&server, dialect, &quick())
        .stream_message(&message())
        .await
        .unwrap();
    let (events, answer, error) = all(stream).await;
    assert_eq!((error, events.len()), (None, EVENT_COUNT_LIMIT));
    assert_eq!(answer.text, "done");
    let error = ends(dialect, repeated(EVENT_COUNT_LIMIT, &done)).await;
    assert!(error.to_string().contains("events"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_in_every_request_of_a_stream_and_stay_at_their_origin() {
    let dialect = DIALECTS[0];
    let options = SendOptions {
        bearer_token: Some("t0ken".to_owned()),
        ..quick()
    };
    let server = RawServer::start(vec![
        RawReply::events(&[wrapped(dialect, task(dialect, "working", &json!([])))]).then_dies(),
        RawReply::events(&[wrapped(dialect, status(dialect, "completed", "done"))]),
        RawReply::json(&wrapped(
            dialect,
            json!({"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}}),
        )),
    ])
    .await;
    let stream = agent(&server, dialect, &options)
        .stream_message(&message())
        .await
        .unwrap();
    assert_eq!(all(stream).await.2, None);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|request| request.head.contains("authorization: bearer t0ken"))
    );

    // The first interface is down, and the second one is elsewhere.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let elsewhere = RawServer::start(vec![RawReply::events(&[])]).await;
    let mut card = card(&format!("http://{free}/"), "JSONRPC", Some("1.0"));
    card.capabilities.streaming = true;
    card.interfaces
        .push(interface(&elsewhere.base, "JSONRPC", Some("1.0")));
    let agent = a2a_client::AgentClient::new(&card, &options).unwrap();
    let error = agent.stream_message(&message()).await.err().unwrap();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    let error = agent.send_message(&message()).await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    assert!(elsewhere.seen().is_empty());
}
