//! Protocol 0.3 over JSON-RPC, with the checks of its conformance kit and its inspector.

use a2a_registry_core::config::Config;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::conversation::with_agents;
use super::listening_registry::{ListeningRegistry, admin, events};
use crate::support::database::Database;

/// Headers that mean 0.3.
const SPELLINGS: [Option<&str>; 4] = [None, Some(""), Some("0.3"), Some("0.3.0")];

pub(super) fn message(text: &str) -> Value {
    json!({"message": {
        "kind": "message", "messageId": Uuid::new_v4().to_string(), "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }})
}

/// The rules of the inspector on what it is sent.
fn inspect(event: &Value) {
    let parts = |of: &Value| {
        of["parts"]
            .as_array()
            .is_some_and(|parts| !parts.is_empty())
    };
    match event["kind"].as_str().unwrap() {
        "task" => assert!(
            event["id"].is_string() && event["status"]["state"].is_string(),
            "{event}"
        ),
        "status-update" => {
            assert!(
                event["status"]["state"].is_string() && event["final"].is_boolean(),
                "{event}"
            );
        }
        "artifact-update" => assert!(parts(&event["artifact"]), "{event}"),
        other => panic!("{other}"),
    }
    for list in [
        &event["history"],
        &event["artifacts"],
        &json!([event["status"]["message"]]),
    ] {
        for one in list
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| !one.is_null())
        {
            assert!(parts(one), "{one}");
            for part in one["parts"].as_array().unwrap() {
                let kind = part["kind"].as_str().unwrap();
                assert!(part.get(kind).is_some(), "{part}");
            }
            if let Some(role) = one.get("role") {
                assert!(role == "user" || role == "agent");
                assert_eq!(one["kind"], "message");
            }
        }
    }
}

#[tokio::test]
async fn clients_of_0_3_are_served_at_the_same_address() {
    let database = Database::sqlite();
    let registry = with_agents(database.url()).await;
    let expected = registry.v1_pages(None, "flights", 10).await.concat();
    for spelling in SPELLINGS {
        let task = registry
            .call(spelling, None, "message/send", &message("flights"))
            .await
            .unwrap();
        inspect(&task);
        assert_eq!(
            (&task["kind"], &task["status"]["state"]),
            (&json!("task"), &json!("completed"))
        );
        let parts = task["artifacts"][0]["parts"].as_array().unwrap();
        assert_eq!(
            (&parts[0]["kind"], &parts[1]["kind"]),
            (&json!("text"), &json!("data"))
        );
        let found: Vec<&str> = parts[1]["data"]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["identifier"].as_str().unwrap())
            .collect();
        assert_eq!(found, expected);
        let got = registry
            .call(spelling, None, "tasks/get", &json!({"id": task["id"]}))
            .await
            .unwrap();
        assert_eq!(got, task);
        assert_eq!(got["history"][0]["parts"][0]["text"], "flights");
        let none = json!({"id": task["id"], "historyLength": 0});
        assert!(
            registry
                .call(spelling, None, "tasks/get", &none)
                .await
                .unwrap()
                .get("history")
                .is_none()
        );
        // A task of one version is a task of the other.
        let new = registry
            .call(Some("1.0"), None, "GetTask", &json!({"id": task["id"]}))
            .await
            .unwrap();
        assert_eq!(new["status"]["state"], "TASK_STATE_COMPLETED");
    }
    // "more" goes on in the conversation.
    let mut first = message("flights");
    first["message"]["parts"] =
        json!([{"kind": "data", "data": {"query": {"text": "flights"}, "pageSize": 2}}]);
    let task = registry
        .call(None, None, "message/send", &first)
        .await
        .unwrap();
    let mut more = message("more");
    more["message"]["contextId"] = task["contextId"].clone();
    let next = registry
        .call(None, None, "message/send", &more)
        .await
        .unwrap();
    assert_eq!(
        next["artifacts"][0]["parts"][1]["data"]["results"][0]["identifier"],
        expected[2]
    );
}

#[tokio::test]
async fn streams_of_0_3_say_which_event_is_the_last() {
    let database = Database::sqlite();
    let registry = with_agents(database.url()).await;
    let streamed = events(
        registry
            .post(None, None, "message/stream", &message("flights"))
            .await,
    )
    .await;
    let kinds: Vec<&str> = streamed
        .iter()
        .map(|one| one["result"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["task", "artifact-update", "status-update"]);
    streamed.iter().for_each(|one| inspect(&one["result"]));
    assert!(
        streamed
            .iter()
            .all(|one| one["jsonrpc"] == "2.0" && one["id"] == "call")
    );
    assert_eq!(streamed[2]["result"]["final"], true);
    assert_eq!(streamed[2]["result"]["status"]["state"], "completed");
    let id = registry.foreign_task(None).await;
    let answer = registry
        .post(None, None, "tasks/resubscribe", &json!({"id": id}))
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    let cancelled = registry
        .call(None, None, "tasks/cancel", &json!({"id": id}))
        .await
        .unwrap();
    assert_eq!(cancelled["status"]["state"], "canceled");
    let streamed = events(answer).await;
    let kinds: Vec<&str> = streamed
        .iter()
        .map(|one| one["result"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["task", "status-update"]);
    assert_eq!(streamed[1]["result"]["status"]["state"], "canceled");
    assert_eq!(streamed[1]["result"]["final"], true);
    // Without waiting: the task as it is meanwhile.
    let mut begun = message("flights");
    begun["configuration"] = json!({"blocking": false});
    let task = registry
        .call(None, None, "message/send", &begun)
        .await
        .unwrap();
    assert_eq!(task["status"]["state"], "working");
}

#[tokio::test]
async fn errors_of_0_3_have_its_codes() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::new(database.url()).await;
    let unknown = json!({"id": "no-such-task"});
    let file = json!({"message": {
        "kind": "message", "messageId": "m", "role": "user",
        "parts": [{"kind": "file", "file": {"uri": "https://example.com/x"}}],
    }});
    let mut push = message("x");
    push["configuration"] = json!({"pushNotificationConfig": {"url": "https://example.com/"}});
    for (method, params, code) in [
        ("tasks/get", &unknown, -32001),
        ("tasks/cancel", &unknown, -32001),
        ("tasks/resubscribe", &unknown, -32001),
        ("tasks/get", &json!({}), -32602),
        ("message/send", &json!({}), -32602),
        ("message/send", &json!({"message": {"parts": []}}), -32602),
        ("message/stream", &json!({"message": {"parts": []}}), -32602),
        ("message/send", &file, -32005),
        ("message/send", &push, -32003),
        ("tasks/pushNotificationConfig/set", &unknown, -32003),
        ("tasks/pushNotificationConfig/get", &unknown, -32003),
        ("tasks/pushNotificationConfig/list", &unknown, -32003),
        ("tasks/pushNotificationConfig/delete", &unknown, -32003),
        ("agent/getAuthenticatedExtendedCard", &json!({}), -32007),
        ("tasks/list", &json!({}), -32601),
        // A method of the other version, without the header that says so.
        ("SendMessage", &message("x"), -32601),
    ] {
        let error = registry.call(None, None, method, params).await.unwrap_err();
        assert_eq!(error["code"], code, "{method} {params}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    // Only what streams answers with events, for clients that take both.
    for (method, params, is_stream) in [
        ("message/send", json!({}), false),
        ("tasks/get", unknown.clone(), false),
        ("tasks/list", json!({}), false),
        ("message/stream", json!({}), true),
        ("tasks/resubscribe", unknown.clone(), true),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = registry.request(Method::POST, "/a2a", None, None);
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = request.json(&call).send().await.unwrap();
        let expected = if is_stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        assert_eq!(answer.headers()["content-type"], expected, "{method}");
    }
    // A method of the other version names it.
    for (stated, method, header) in [
        (Some("1.0"), "message/send", "`A2A-Version: 0.3`"),
        (None, "SendMessage", "`A2A-Version: 1.0`"),
        (Some("0.3"), "ListTasks", "`A2A-Version: 1.0`"),
    ] {
        let error = registry.call(stated, None, method, &message("x")).await;
        let error = error.unwrap_err();
        assert_eq!(error["code"], -32601);
        assert!(
            error["message"].as_str().unwrap().contains(header),
            "{error}"
        );
    }
    let done = registry
        .call(None, admin(), "message/send", &message("x"))
        .await
        .unwrap();
    let refused = registry
        .call(None, admin(), "tasks/cancel", &json!({"id": done["id"]}))
        .await;
    assert_eq!(refused.unwrap_err()["code"], -32002);
    let refused = registry
        .call(
            None,
            admin(),
            "tasks/resubscribe",
            &json!({"id": done["id"]}),
        )
        .await;
    assert_eq!(refused.unwrap_err()["code"], -32004);
}

/// A registry may speak 1.0 alone.
#[tokio::test]
async fn the_older_version_can_be_left_out() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.a2a.serve_0_3 = false
    })
    .await;
    for spelling in SPELLINGS {
        let error = registry
            .call(spelling, None, "message/send", &message("x"))
            .await
            .unwrap_err();
        assert_eq!(error["code"], -32009, "{spelling:?}");
    }
    assert_eq!(
        registry.send_text("x").await["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}
