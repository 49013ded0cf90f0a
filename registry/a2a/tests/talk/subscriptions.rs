//! Tasks that exist already: read, listed, cancelled and followed, in each dialect.

use a2a_client::{CallError, StreamEventContent, TaskQuery};
use serde_json::{Value, json};

use super::raw::{RawReply, RawServer};
use super::streams::{DIALECTS, agent, all, chunk, quick, status, task, wrapped};

const MISSING: &str =
    r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no such task"}}"#;
const OVER: &str =
    r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "it is done"}}"#;

fn document(text: &str) -> RawReply {
    RawReply::json(&serde_json::from_str(text).unwrap())
}

/// A task as the answer to a request for it, which 1.0 does not wrap.
fn bare(dialect: (&str, &str), state: &str, artifacts: &Value) -> RawReply {
    let mut task = task(dialect, state, artifacts);
    let task = match task.get_mut("task") {
        Some(task) => task.take(),
        None => task,
    };
    RawReply::json(&wrapped(dialect, task))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_read_and_cancelled() {
    for dialect in DIALECTS {
        let server = RawServer::start(vec![
            bare(dialect, "working", &json!([])),
            bare(dialect, "canceled", &json!([])),
        ])
        .await;
        let agent = agent(&server, dialect, &quick());
        assert_eq!(
            agent.get_task("t").await.unwrap().state.as_deref(),
            Some("working")
        );
        assert_eq!(
            agent.cancel_task("t").await.unwrap().state.as_deref(),
            Some("canceled")
        );
        let expected = match dialect {
            ("HTTP+JSON", _) => ["GET /tasks/t", "POST /tasks/t:cancel"],
            (_, "1.0") => ["GetTask", "CancelTask"],
            _ => ["tasks/get", "tasks/cancel"],
        };
        assert_eq!(server.methods(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed_as_far_as_the_version_has_that() {
    let query = TaskQuery {
        context_id: Some("c 1".to_owned()),
        state: Some("input-required".to_owned()),
        page_size: Some(2),
        page_token: Some("n&m".to_owned()),
    };
    for dialect in [DIALECTS[0], DIALECTS[1]] {
        let page = json!({"tasks": [{"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}], "nextPageToken": "o"});
        let server = RawServer::start(vec![RawReply::json(&wrapped(dialect, page))]).await;
        let page = agent(&server, dialect, &quick())
            .list_tasks(&query)
            .await
            .unwrap();
        assert_eq!(
            (page.tasks.len(), page.next_page_token.as_deref()),
            (1, Some("o"))
        );
        let seen = server.seen().remove(0);
        if dialect.0 == "JSONRPC" {
            assert_eq!(seen.body["method"], "ListTasks");
            let expected = json!({"contextId": "c 1", "status": "TASK_STATE_INPUT_REQUIRED", "pageSize": 2, "pageToken": "n&m"});
            assert_eq!(seen.body["params"], expected);
        } else {
            let expected = "GET /tasks?contextId=c+1&status=TASK_STATE_INPUT_REQUIRED&pageSize=2&pageToken=n%26m HTTP/1.1";
            assert_eq!(seen.line, expected);
        }
    }
    let refusal = r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "unknown"}}"#;
    let server = RawServer::start(vec![document(refusal)]).await;
    let error = agent(&server, DIALECTS[2], &quick())
        .list_tasks(&query)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Protocol { code: -32601, .. }),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_followed_from_its_state_on() {
    let so_far = json!([{"artifactId": "a", "parts": [{"text": "one "}]}]);
    let whole = json!([{"artifactId": "a", "parts": [{"text": "one two"}]}]);
    for dialect in DIALECTS {
        let further = [
            chunk(dialect, "two", true),
            status(dialect, "completed", "done"),
        ];
        let further = further.map(|event| wrapped(dialect, event)).to_vec();
        let snapshot = wrapped(dialect, task(dialect, "working", &so_far));
        let replies = match dialect.1 {
            "0.3" => vec![
                bare(dialect, "working", &so_far),
                RawReply::events(&further),
                bare(dialect, "completed", &whole),
            ],
            // It breaks before the first event, and is resumed.
            _ => vec![
                RawReply::events(&[]).then_dies(),
                RawReply::events(&[vec![snapshot], further].concat()),
            ],
        };
        let server = RawServer::start(replies).await;
        let stream = agent(&server, dialect, &quick())
            .subscribe_to_task("t")
            .await
            .unwrap();
        let (events, answer, error) = all(stream).await;
        assert_eq!(error, None, "{dialect:?}");
        assert!(
            matches!(events[0].kind, StreamEventContent::Task(_)),
            "{events:?}"
        );
        assert_eq!(answer.text, "one two");
        let expected = match dialect {
            ("HTTP+JSON", _) => vec!["GET /tasks/t:subscribe"; 2],
            (_, "1.0") => vec!["SubscribeToTask"; 2],
            _ => vec!["tasks/get", "tasks/resubscribe", "tasks/get"],
        };
        assert_eq!(server.methods(), expected);
    }
}

/// A reference of 0.3.0 beside the specification has other names for two methods, and another first state.
#[tokio::test(flavor = "multi_thread")]
async fn methods_are_called_by_their_other_names_where_the_first_is_unknown() {
    const UNKNOWN: &str =
        r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "unknown"}}"#;
    let dialect = DIALECTS[2];
    let whole = json!([{"artifactId": "a", "parts": [{"text": "one two"}]}]);
    let events = [
        chunk(dialect, "one two", false),
        status(dialect, "completed", "done"),
    ];
    let server = RawServer::start(vec![
        bare(dialect, "created", &json!([])),
        document(UNKNOWN),
        RawReply::events(&events.map(|event| wrapped(dialect, event))),
        bare(dialect, "completed", &whole),
    ])
    .await;
    let stream = agent(&server, dialect, &quick())
        .subscribe_to_task("t")
        .await
        .unwrap();
    let (events, answer, error) = all(stream).await;
    assert_eq!((error, answer.text.as_str()), (None, "one two"));
    assert!(
        matches!(&events[0].kind, StreamEventContent::Task(task) if task.state.as_deref() == Some("submitted")),
        "{events:?}"
    );
    assert_eq!(
        server.methods()[..3],
        ["tasks/get", "tasks/resubscribe", "tasks/subscribe"]
    );

    let card = json!({"jsonrpc": "2.0", "id": 1, "result": {"name": "Desk"}});
    let server = RawServer::start(vec![document(UNKNOWN), RawReply::json(&card)]).await;
    let card = agent(&server, dialect, &quick())
        .fetch_extended_card()
        .await
        .unwrap();
    assert_eq!(card["name"], "Desk");
    assert_eq!(
        server.methods(),
        [
            "agent/getAuthenticatedExtendedCard",
            "agent/authenticatedExtendedCard"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_done_is_shown_and_a_missing_one_is_an_error() {
    for dialect in [DIALECTS[0], DIALECTS[2]] {
        let done = bare(dialect, "completed", &json!([]));
        let (replies, count) = match dialect.1 {
            "0.3" => (vec![done], 1),
            _ => (vec![document(OVER), done], 2),
        };
        let server = RawServer::start(replies).await;
        let stream = agent(&server, dialect, &quick())
            .subscribe_to_task("t")
            .await
            .unwrap();
        let (events, _, error) = all(stream).await;
        assert_eq!((events.len(), error, server.seen().len()), (1, None, count));

        let server = RawServer::start(vec![document(MISSING)]).await;
        let error = agent(&server, dialect, &quick())
            .subscribe_to_task("t")
            .await
            .err()
            .unwrap();
        assert!(
            matches!(error, CallError::Protocol { code: -32001, .. }),
            "{error:?}"
        );
    }
}
