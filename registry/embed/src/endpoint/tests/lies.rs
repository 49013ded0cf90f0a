//! Faulty servers: late, wrong, oversized or missing responses.

use std::sync::atomic::{AtomicUsize, Ordering};

use a2a_crawler::foreign_text::MAX_DETAIL;
use time::OffsetDateTime;

use super::canary::Canary;
use super::*;

/// Requests the vector of one text from a server that always sends this reply.
async fn asked(reply: ScriptedReply) -> EmbedError {
    let server = Server::start(move |_| reply.clone()).await;
    let endpoint = open(&config(&server)).await.unwrap();
    let asked = endpoint.embed(owned(&["x"]), TextKind::Query).await;
    assert_eq!(server.requests().len(), 1);
    let error = asked.expect_err("an invalid response was accepted");
    let text = error.to_string();
    assert!(text.chars().count() < MAX_DETAIL, "{text}");
    assert!(!text.contains(char::is_control), "{text:?}");
    error
}

fn data(embedding: &str) -> ScriptedReply {
    ScriptedReply::json(format!(
        r#"{{"data":[{{"index":0,"embedding":{embedding}}}]}}"#
    ))
}

#[tokio::test]
async fn odd_answers_are_failures() {
    let twice = r#"{"data":[{"index":0,"embedding":[1,2,3]},{"index":0,"embedding":[1,2,3]}]}"#;
    for (reply, word) in [
        (ScriptedReply::json(r#"{"data":[]}"#), "0 vectors"),
        (ScriptedReply::json(twice), "2 vectors"),
        (data("[1,2]"), "2 numbers"),
        (data("[1,2,3,4]"), "4 numbers"),
        (data("[0,0,0]"), "length zero"),
        (data("[1,2,NaN]"), "form of embeddings"),
        (data("[1,2,null]"), "form of embeddings"),
        (data(r#"["1","2","3"]"#), "form of embeddings"),
        (data(r#""AACAPwAAAEAAAEBA""#), "form of embeddings"),
        (
            data(&format!("[1,2,\"\u{1b}[31m{}\"]", "x".repeat(5000))),
            "form of embeddings",
        ),
        (ScriptedReply::json("<html>"), "form of embeddings"),
        (ScriptedReply::json(""), "form of embeddings"),
        (ScriptedReply::new(201, "", r#"{"data":[]}"#), "201"),
        (ScriptedReply::new(204, "", ""), "204"),
        (
            ScriptedReply::new(404, "", "<h1>no</h1>"),
            "404: <h1>no</h1>",
        ),
        (
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"data\":[")
                .then_close(),
            "ended before",
        ),
        (
            ScriptedReply::json(vec![b' '; 2 * wire::MAX_VECTOR_BYTES + 1]),
            "larger",
        ),
        (
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
                .then_hang(),
            "larger",
        ),
    ] {
        let error = asked(reply).await;
        let EmbedError::Failed(text) = &error else {
            panic!("{error:?}");
        };
        assert!(text.contains(word) && text.contains(HOST), "{text}");
    }
}

#[tokio::test]
async fn vectors_are_put_in_the_order_of_their_texts() {
    let server = Server::start(|request| {
        let mut data: Vec<Value> = texts(request)
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "embedding": [text.len(), 1, 0]}))
            .collect();
        data.rotate_left(1);
        ScriptedReply::json(json!({ "data": data }).to_string())
    })
    .await;
    let endpoint = open(&config(&server)).await.unwrap();
    let texts = owned(&["a", "bb", "ccc"]);
    let vectors = endpoint.embed(texts, TextKind::Card).await.unwrap();
    assert!(near(&vectors, &[turned(1), turned(2), turned(3)]));
}

/// A repeated index, with the right count, and an index that was not requested.
#[tokio::test]
async fn each_text_is_answered_once() {
    for indexes in [[0, 0], [1, 1], [1, 2]] {
        let server = Server::start(move |_| {
            let data = indexes.map(|index| json!({"index": index, "embedding": [1, 2, 3]}));
            ScriptedReply::json(json!({ "data": data }).to_string())
        })
        .await;
        let endpoint = open(&config(&server)).await.unwrap();
        let refused = endpoint.embed(owned(&["a", "b"]), TextKind::Card).await;
        assert!(matches!(refused, Err(EmbedError::Failed(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_model_that_changes_its_length_is_not_believed() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        1 => data("[1,2,3,4]"),
        _ => data("[1,2,3]"),
    })
    .await;
    let unknown = EndpointOptions {
        dimensions: None,
        ..config(&server)
    };
    let endpoint = open(&unknown).await.unwrap();
    for changed in [true, false] {
        let vectors = endpoint.embed(owned(&["x"]), TextKind::Query).await;
        assert_eq!(vectors.is_err(), changed, "{vectors:?}");
    }
}

#[tokio::test]
async fn who_is_overloaded_or_broken_is_away_and_who_refuses_has_failed() {
    let said = json!({"error": {"message": "it is\u{1b}[31m\nlike that".repeat(50)}}).to_string();
    for status in [400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 529] {
        let error = asked(ScriptedReply::new(status, "", &said)).await;
        let text = match (&error, status) {
            (EmbedError::Unavailable(text), 429 | 500..) => text,
            (EmbedError::Failed(text), ..429) => text,
            _ => panic!("{status}: {error:?}"),
        };
        let begins = format!("{HOST}: it answered {status}: it is\\u{{1b}}[31m\\nlike that");
        assert!(text.starts_with(&begins), "{text}");
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let canary = Canary::new();
    for status in [301, 302, 303, 307, 308] {
        for location in [canary.url().as_str(), "/v2/embeddings"] {
            let headers = format!("location: {location}\r\n");
            let error = asked(ScriptedReply::new(status, &headers, "")).await;
            assert!(matches!(error, EmbedError::Failed(_)), "{error:?}");
        }
    }
    canary.assert_untouched();
}

/// Private networks are contacted only if the list of this section allows them.
#[tokio::test]
async fn nothing_is_sent_to_an_address_that_is_not_opened() {
    let canary = Canary::new();
    let server = Server::start(honest).await;
    let private = EndpointOptions {
        url: format!("http://{PRIVATE}:{}/", canary.at.port()),
        ..config(&server)
    };
    let denied = EndpointOptions {
        guard: GuardConfig {
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            deny_networks: vec![IpAddr::V4(FORBIDDEN).into()],
            ..opening(OPEN)
        },
        ..private.clone()
    };
    for config in [private.clone(), denied] {
        let endpoint = open(&config).await.unwrap();
        for kind in [TextKind::Query, TextKind::Card] {
            let error = endpoint.embed(owned(&["x"]), kind).await.unwrap_err();
            let EmbedError::Unavailable(text) = &error else {
                panic!("{error:?}");
            };
            assert!(text.contains("[embedding]"), "{text}");
        }
    }
    canary.assert_untouched();

    // If the address were allowed, the request would be sent.
    let opened = EndpointOptions {
        guard: opening(FORBIDDEN),
        ..private
    };
    let patience = EncodeTimeouts {
        query: Duration::from_millis(300),
        card: Duration::from_millis(300),
    };
    let endpoint =
        RemoteEncoder::open_with_timeouts(patience, &opened, resolver(), Arc::new(SystemClock))
            .await
            .unwrap();
    let unanswered = endpoint.embed(owned(&["x"]), TextKind::Query).await;
    assert!(matches!(unanswered, Err(EmbedError::Unavailable(_))));
    assert!(canary.was_touched());
}

#[tokio::test]
async fn who_does_not_answer_in_time_is_away() {
    let patience = EncodeTimeouts {
        query: Duration::from_millis(200),
        card: Duration::from_millis(200),
    };
    for reply in [
        ScriptedReply::raw("").then_hang(),
        ScriptedReply::raw("HTTP/1.1 200 OK\r\nx: ").then_hang(),
        ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").then_hang(),
    ] {
        let server = Server::start(move |_| reply.clone()).await;
        let (clock, resolver) = (Arc::new(SystemClock), resolver());
        let endpoint =
            RemoteEncoder::open_with_timeouts(patience, &config(&server), resolver, clock)
                .await
                .unwrap();
        for kind in [TextKind::Query, TextKind::Card] {
            let late = endpoint.embed(owned(&["x"]), kind).await;
            assert!(matches!(late, Err(EmbedError::Unavailable(_))), "{late:?}");
        }
    }
}

#[tokio::test]
async fn who_cannot_be_reached_is_away() {
    let server = Server::start(honest).await;
    let closed = config(&server);
    let unknown = EndpointOptions {
        url: closed.url.replace(HOST, "gone.example.com"),
        ..closed.clone()
    };
    drop(server);
    let hanging_up = Server::start(|_| ScriptedReply::raw("").then_close()).await;
    for config in [closed, unknown, config(&hanging_up)] {
        let endpoint = open(&config).await.unwrap();
        let asked = endpoint.embed(owned(&["x"]), TextKind::Query).await;
        assert!(
            matches!(asked, Err(EmbedError::Unavailable(_))),
            "{asked:?}"
        );
    }
}

/// A clock set by the test.
#[derive(Debug)]
struct HandClock(Mutex<OffsetDateTime>);

impl Clock for HandClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

impl HandClock {
    fn forward(&self, seconds: i64) {
        *self.0.lock().unwrap() += time::Duration::seconds(seconds);
    }
}

#[tokio::test]
async fn who_asks_to_be_left_alone_is_left_alone() {
    // Status and header of the response, and the seconds until the next request is sent.
    for (status, header, rest) in [
        (429, "retry-after: 30\r\n", 30),
        (503, "retry-after: 30\r\n", 30),
        (429, "retry-after: Thu, 01 Jan 1970 00:01:00 GMT\r\n", 60),
        (429, "retry-after: 99999999\r\n", 3600),
        (429, "", 0),
        (429, "retry-after: soon\r\n", 0),
        (500, "", 0),
        // Statuses for which the header has no meaning.
        (401, "retry-after: 30\r\n", 0),
    ] {
        let server = Server::start(move |request| match texts(request)[0].as_str() {
            "x" => ScriptedReply::new(status, header, ""),
            _ => honest(request),
        })
        .await;
        let clock = Arc::new(HandClock(Mutex::new(OffsetDateTime::UNIX_EPOCH)));
        let endpoint = RemoteEncoder::open(&config(&server), resolver(), Arc::clone(&clock) as _)
            .await
            .unwrap();
        let first = endpoint.embed(owned(&["x"]), TextKind::Card).await;
        assert!(first.is_err());
        if rest > 0 {
            clock.forward(rest - 1);
            for kind in [TextKind::Query, TextKind::Card] {
                let early = endpoint.embed(owned(&["y"]), kind).await;
                let Err(EmbedError::Unavailable(text)) = early else {
                    panic!("{early:?}");
                };
                assert!(text.contains("1 more s"), "{text}");
            }
            assert_eq!(server.requests().len(), 1, "{status} {header}");
            clock.forward(1);
        }
        for kind in [TextKind::Query, TextKind::Card] {
            let later = endpoint.embed(owned(&["y"]), kind).await;
            assert!(later.is_ok(), "{status} {header}: {later:?}");
        }
    }
}

/// Setting the clock back does not make the pause longer.
#[tokio::test]
async fn a_clock_that_is_set_back_prolongs_nothing() {
    let server = Server::start(|request| match texts(request)[0].as_str() {
        "x" => ScriptedReply::new(429, "retry-after: 30\r\n", ""),
        _ => honest(request),
    })
    .await;
    let clock = Arc::new(HandClock(Mutex::new(OffsetDateTime::UNIX_EPOCH)));
    let endpoint = RemoteEncoder::open(&config(&server), resolver(), Arc::clone(&clock) as _)
        .await
        .unwrap();
    let refused = endpoint.embed(owned(&["x"]), TextKind::Query).await;
    assert!(refused.is_err());
    clock.forward(-24 * 60 * 60);
    let later = endpoint.embed(owned(&["y"]), TextKind::Query).await;
    assert!(later.is_ok(), "{later:?}");
}
