//! Calls over gRPC to a server that does what a test says, at the level of frames.

use a2a_client::{
    AgentClient, BODY_LIMIT, CallError, Message, SendOptions, StreamEventContent, TaskQuery,
};
use serde_json::{Value, json};

use super::grpc_server::{Reply, Server};
use super::streams::quick;
use super::{card, interface};

fn options(change: impl FnOnce(&mut SendOptions)) -> SendOptions {
    let mut options = quick();
    change(&mut options);
    options
}

fn agent(server: &Server, options: &SendOptions) -> AgentClient {
    let mut card = card(&server.base, "GRPC", Some("1.0"));
    card.capabilities.streaming = true;
    AgentClient::new(&card, options).unwrap()
}

fn text(text: &str) -> Message {
    Message::from_text("m", text)
}

fn answer(text: &str) -> Value {
    json!({"message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": text}]}})
}

fn task(state: &str) -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_carries_version_extensions_tenant_and_credentials() {
    let server = Server::start([Reply::messages("SendMessageResponse", &[answer("hello")])]).await;
    let mut card = card(&server.base, "GRPC", Some("1.0"));
    card.interfaces[0].tenant = Some("acme".to_owned());
    let options = options(|options| {
        options.bearer_token = Some("s3cret".to_owned());
        options.extensions = vec!["https://x.example/e".to_owned()];
    });
    let answer = AgentClient::new(&card, &options)
        .unwrap()
        .send_message(&text("hi"))
        .await;
    assert_eq!(answer.unwrap().text, "hello");
    let [seen] = &server.seen()[..] else {
        panic!("{:?}", server.seen())
    };
    assert_eq!(seen.path, "/lf.a2a.v1.A2AService/SendMessage");
    let header = |name: &str| seen.headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("a2a-version"), "1.0");
    assert_eq!(header("a2a-extensions"), "https://x.example/e");
    assert_eq!(header("authorization"), "Bearer s3cret");
    assert_eq!(header("content-type"), "application/grpc");
    assert_eq!(header("te"), "trailers");
    let sent = seen.document("SendMessageRequest");
    assert_eq!(sent["tenant"], "acme");
    assert_eq!(sent["message"]["parts"], json!([{"text": "hi"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_host_and_port_means_tls_unless_the_user_says_otherwise() {
    let server = Server::start([Reply::messages("SendMessageResponse", &[answer("hello")])]).await;
    let bare = server.base.strip_prefix("http://").unwrap();
    let card = card(bare, "GRPC", Some("1.0"));
    let agent = AgentClient::new(&card, &quick()).unwrap();
    let error = agent.send_message(&text("hi")).await.unwrap_err();
    let over_tls = matches!(error, CallError::UnreachableOverTls { .. });
    assert!(over_tls, "{error:?}");
    let line = error.to_string();
    assert!(
        line.contains("https://") && line.contains("--plaintext"),
        "{line}"
    );
    assert!(server.seen().is_empty(), "{:?}", server.seen());

    let plaintext = options(|options| options.interface_filter.plaintext = true);
    let agent = AgentClient::new(&card, &plaintext).unwrap();
    assert_eq!(agent.send_message(&text("hi")).await.unwrap().text, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_are_told_in_one_line_and_only_an_unknown_method_moves_on() {
    for (code, says) in [
        (5, "responded with NOT_FOUND: no such thing"),
        (13, "responded with INTERNAL: no such thing"),
        (14, "responded with UNAVAILABLE: no such thing"),
        (16, "it responded with UNAUTHENTICATED: no such thing"),
    ] {
        let second = Server::start([]).await;
        let server = Server::start([Reply::status(code, "no such thing")]).await;
        let mut card = card(&server.base, "GRPC", Some("1.0"));
        card.interfaces
            .push(interface(&second.base, "GRPC", Some("1.0")));
        let agent = AgentClient::new(&card, &quick()).unwrap();
        let error = agent.send_message(&text("hi")).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(second.seen().is_empty(), "{code}: {:?}", second.seen());
    }
    let server = Server::start([Reply::status(12, "what?")]).await;
    let second = Server::start([Reply::messages("SendMessageResponse", &[answer("hello")])]).await;
    let mut card = card(&server.base, "GRPC", Some("1.0"));
    card.interfaces
        .push(interface(&second.base, "GRPC", Some("1.0")));
    let agent = AgentClient::new(&card, &quick()).unwrap();
    assert_eq!(agent.send_message(&text("hi")).await.unwrap().text, "hello");

    let bearer = options(|options| options.bearer_token = Some("s3cret".to_owned()));
    let server = Server::start([Reply::status(7, "not you")]).await;
    let error = agent_error(&server, &bearer).await;
    let CallError::CredentialsRejected { status, detail } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (status.as_str(), detail.as_str()),
        ("PERMISSION_DENIED", ": not you")
    );
}

/// The error of a message to this server.
async fn agent_error(server: &Server, options: &SendOptions) -> CallError {
    let error = agent(server, options)
        .send_message(&text("hi"))
        .await
        .unwrap_err();
    let line = error.to_string();
    assert!(!line.contains('\n') && line.chars().count() < 400, "{line}");
    assert_eq!(server.seen().len(), 1, "{:?}", server.seen());
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_grpc_ends_the_call() {
    let server = Server::start([Reply::http(404, "text/html", "<p>no")]).await;
    let error = agent_error(&server, &quick()).await;
    assert!(
        matches!(error, CallError::Http { status: 404, .. }),
        "{error:?}"
    );

    let server = Server::start([Reply::http(200, "text/html", "<p>welcome")]).await;
    let error = agent_error(&server, &quick()).await;
    assert!(
        error.to_string().contains("text/html instead of gRPC"),
        "{error}"
    );

    let server = Server::start([Reply::http(302, "text/html", "")]).await;
    let error = agent_error(&server, &quick()).await;
    assert!(
        matches!(error, CallError::Http { status: 302, .. }),
        "{error:?}"
    );

    // Bytes that are no message, a message of another type, and a frame that announces more than is read.
    let announced = u32::try_from(BODY_LIMIT + 1).unwrap().to_be_bytes();
    for (frames, too_large) in [
        (b"\0\0\0\0\x02\xff\xff".to_vec(), false),
        ([&[0][..], &announced[..], b"beginning"].concat(), true),
    ] {
        let server = Server::start([Reply::frames(frames)]).await;
        let error = agent_error(&server, &quick()).await;
        assert_eq!(
            matches!(error, CallError::TooLarge { .. }),
            too_large,
            "{error:?}"
        );
        assert_eq!(
            matches!(error, CallError::InvalidResponse { .. }),
            !too_large,
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_dies_is_resumed_and_the_message_is_not_sent_again() {
    let update = |state: &str| json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}}});
    let server = Server::start([
        Reply::messages("StreamResponse", &[json!({"task": task("WORKING")})]).without_trailers(),
        Reply::messages(
            "StreamResponse",
            &[json!({"task": task("WORKING")}), update("COMPLETED")],
        ),
    ])
    .await;
    let mut stream = agent(&server, &quick())
        .stream_message(&text("hi"))
        .await
        .unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = stream.next_event().await {
        kinds.push(match event.unwrap().kind {
            StreamEventContent::Task(task) => format!("task {}", task.state.unwrap()),
            StreamEventContent::Status(status) => status.state,
            other => format!("{other:?}"),
        });
    }
    assert_eq!(kinds, ["task working", "task working", "completed"]);
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(
        paths,
        [
            "/lf.a2a.v1.A2AService/SendStreamingMessage",
            "/lf.a2a.v1.A2AService/SubscribeToTask",
            // Nothing that was streamed can be read, so the task is asked for, which this server refuses.
            "/lf.a2a.v1.A2AService/GetTask"
        ]
    );
    assert_eq!(
        server.seen()[1].document("SubscribeToTaskRequest"),
        json!({"id": "t"})
    );

    // Without a task there is nothing to resume.
    let server = Server::start([Reply::reset()]).await;
    let error = agent(&server, &quick()).stream_message(&text("hi")).await;
    let error = error.err().unwrap();
    assert!(
        matches!(error, CallError::ConnectionLost { .. }),
        "{error:?}"
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_read_listed_and_cancelled() {
    let server = Server::start([
        Reply::messages("Task", &[task("WORKING")]),
        Reply::messages(
            "ListTasksResponse",
            &[json!({"tasks": [task("WORKING")], "nextPageToken": "n"})],
        ),
        Reply::messages("Task", &[task("CANCELED")]),
    ])
    .await;
    let agent = agent(&server, &quick());
    assert_eq!(
        agent.get_task("t").await.unwrap().state.as_deref(),
        Some("working")
    );
    let query = TaskQuery {
        state: Some("working".to_owned()),
        page_size: Some(3),
        ..TaskQuery::default()
    };
    let page = agent.list_tasks(&query).await.unwrap();
    assert_eq!(
        (page.tasks.len(), page.next_page_token.as_deref()),
        (1, Some("n"))
    );
    let listed = server.seen()[1].document("ListTasksRequest");
    assert_eq!(
        listed,
        json!({"status": "TASK_STATE_WORKING", "pageSize": 3})
    );
    assert_eq!(
        agent.cancel_task("t").await.unwrap().state.as_deref(),
        Some("canceled")
    );

    // 0.3 has no list over gRPC, and a key in an address has no place there: nothing is sent.
    let old = card(&server.base, "GRPC", Some("0.3"));
    let error = AgentClient::new(&old, &quick())
        .unwrap()
        .list_tasks(&query)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("no ListTasks over gRPC"),
        "{error}"
    );
    let asking = a2a_card::parse_card(
        json!({"name": "A", "supportedInterfaces": [{"url": server.base, "protocolBinding": "GRPC", "protocolVersion": "1.0"}],
            "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "query", "name": "key"}}},
            "securityRequirements": [{"schemes": {"k": {}}}]})
        .to_string()
        .as_bytes(),
    );
    let key = options(|options| options.api_key = Some("s3cret".to_owned()));
    let agent = AgentClient::new(&asking.unwrap().card, &key).unwrap();
    assert_eq!(
        agent.get_task("t").await.unwrap_err(),
        CallError::QueryKeyOverGrpc
    );
    assert_eq!(server.seen().len(), 3);
}
