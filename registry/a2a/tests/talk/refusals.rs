//! Agents that answer with something else than an answer.

use a2a_client::{BODY_LIMIT, CallError, SendOptions, send_text};
use serde_json::json;

use super::card;
use super::scripted::{Scripted, ScriptedAnswer};

/// What the client makes of one answer, over 1.0 JSON-RPC and over 1.0 HTTP+JSON.
async fn refused(answer: ScriptedAnswer) -> [CallError; 2] {
    let mut errors = Vec::new();
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let server = Scripted::start([answer.clone()]).await;
        let card = card(&server.base, binding, Some("1.0"));
        errors.push(
            send_text(&card, "hi", &SendOptions::new("m"))
                .await
                .unwrap_err(),
        );
        assert_eq!(server.stop().await.len(), 1, "nothing is asked twice");
    }
    errors.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protocol_error_is_told_with_its_code() {
    let answer = ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": 1, "error": {
        "code": -32005, "message": "no \u{1b}[31mtext", "data": [{"reason": "CONTENT_TYPE_NOT_SUPPORTED"}]}}));
    let [error, _] = refused(answer).await;
    let CallError::Protocol {
        code,
        reason,
        message,
        hint,
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (*code, reason.as_deref()),
        (-32005, Some("CONTENT_TYPE_NOT_SUPPORTED"))
    );
    assert_eq!(message, "no \u{1b}[31mtext", "left raw");
    assert!(hint.contains("plain text"));

    let status = json!({"error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "later",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "EXTENSION_SUPPORT_REQUIRED"}]}});
    let [_, error] = refused(ScriptedAnswer::new(
        400,
        "application/a2a+json",
        status.to_string(),
    ))
    .await;
    let CallError::Protocol {
        code, reason, hint, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (*code, reason.as_deref()),
        (400, Some("EXTENSION_SUPPORT_REQUIRED"))
    );
    assert!(hint.contains("extension"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_error_is_told_with_what_it_says() {
    for (content_type, body, said) in [
        (
            "application/problem+json",
            r#"{"title":"down","detail":"back at noon"}"#,
            ": back at noon",
        ),
        ("text/plain", "back at noon", ": back at noon"),
        ("text/html", "<h1>oops</h1>", ""),
    ] {
        for error in refused(ScriptedAnswer::new(503, content_type, body)).await {
            let CallError::Http { status, detail, .. } = &error else {
                panic!("{error:?}")
            };
            assert_eq!((*status, detail.as_str()), (503, said));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_instead_of_json_is_recognised() {
    for error in refused(ScriptedAnswer::new(
        200,
        "text/html; charset=utf-8",
        "<!doctype html>\n<title>Hi</title>",
    ))
    .await
    {
        let CallError::NotJson {
            content_type,
            beginning,
            ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!(content_type, "text/html; charset=utf-8");
        assert_eq!(beginning, "<!doctype html> <title>Hi</title>");
    }
    for error in refused(ScriptedAnswer::new(200, "application/json", "")).await {
        assert!(error.to_string().contains("an empty body"), "{error}");
    }
    // Deeper than the reader goes; it must not overflow the stack.
    for error in refused(ScriptedAnswer::new(
        200,
        "application/json",
        "[".repeat(100_000),
    ))
    .await
    {
        assert!(matches!(error, CallError::NotJson { .. }), "{error:?}");
        assert!(error.to_string().chars().count() < 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_is_no_answer_is_recognised() {
    for document in [
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}}),
        json!([]),
    ] {
        for error in refused(ScriptedAnswer::json(&document)).await {
            assert!(
                matches!(error, CallError::InvalidResponse { .. }),
                "{document}: {error:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_read_up_to_the_bound_and_no_further() {
    let padded = |length: usize| {
        let mut body = json!({"result": {"message": {"parts": [{"text": "hi"}]}}, "message": {"parts": [{"text": "hi"}]}}).to_string();
        body.push_str(&" ".repeat(length - body.len()));
        ScriptedAnswer::new(200, "application/json", body)
    };
    let server = Scripted::start([padded(BODY_LIMIT)]).await;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("1.0")),
        "hi",
        &SendOptions::new("m"),
    )
    .await;
    assert_eq!(answer.unwrap().text, "hi");
    server.stop().await;
    for error in refused(padded(BODY_LIMIT + 1)).await {
        assert!(
            matches!(
                error,
                CallError::TooLarge {
                    limit: BODY_LIMIT,
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_at_home_with_the_message_and_nowhere_else() {
    let message = json!({"result": {"message": {"parts": [{"text": "moved"}]}}});
    let server = Scripted::start([
        ScriptedAnswer::new(307, "text/plain", "").with("location", "/new?x=1"),
        ScriptedAnswer::json(&message),
    ])
    .await;
    let answer = send_text(
        &card(&server.base, "JSONRPC", Some("1.0")),
        "hi",
        &SendOptions::new("m"),
    )
    .await;
    assert_eq!(answer.unwrap().text, "moved");
    let seen = server.stop().await;
    assert_eq!(
        (seen[1].method.as_str(), seen[1].path_and_query.as_str()),
        ("POST", "/new?x=1")
    );
    assert_eq!(seen[0].body, seen[1].body);

    let elsewhere = Scripted::start([ScriptedAnswer::json(&message)]).await;
    for (status, location) in [
        (307, format!("{}/", elsewhere.base)),
        (302, "/new".to_owned()),
    ] {
        for error in
            refused(ScriptedAnswer::new(status, "text/plain", "").with("location", &location)).await
        {
            let CallError::Redirected { to, .. } = &error else {
                panic!("{error:?}")
            };
            assert_eq!(*to, location);
        }
    }
    assert!(
        elsewhere.stop().await.is_empty(),
        "the other host was asked"
    );

    let server = Scripted::start(vec![
        ScriptedAnswer::new(308, "text/plain", "")
            .with("location", "/");
        9
    ])
    .await;
    let error = send_text(
        &card(&server.base, "JSONRPC", Some("1.0")),
        "hi",
        &SendOptions::new("m"),
    )
    .await;
    assert!(
        matches!(error, Err(CallError::Redirected { .. })),
        "{error:?}"
    );
    assert_eq!(server.stop().await.len(), 6, "five redirects are followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_up_or_never_answers_is_told_apart() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let card = card(&base, "JSONRPC", Some("1.0"));
    let hang_up = async {
        let (socket, _) = listener.accept().await.unwrap();
        socket.readable().await.unwrap();
    };
    let options = SendOptions::new("m");
    let (error, ()) = tokio::join!(send_text(&card, "hi", &options), hang_up);
    assert!(
        matches!(error, Err(CallError::ConnectionLost { .. })),
        "{error:?}"
    );

    let mut options = SendOptions::new("m");
    options.timeout = std::time::Duration::from_millis(50);
    let silent = async {
        let (socket, _) = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
        drop(socket);
    };
    let error = tokio::select! {
        answer = send_text(&card, "hi", &options) => answer.unwrap_err(),
        () = silent => unreachable!(),
    };
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boundless_timeout_is_no_overflow() {
    let answer = ScriptedAnswer::json(&json!({"result": {"message": {"parts": [{"text": "hi"}]}}}));
    let server = Scripted::start([answer]).await;
    let mut options = SendOptions::new("m");
    options.timeout = std::time::Duration::MAX;
    options.poll_interval = std::time::Duration::MAX;
    let card = card(&server.base, "JSONRPC", Some("1.0"));
    assert_eq!(send_text(&card, "hi", &options).await.unwrap().text, "hi");
    server.stop().await;
}
