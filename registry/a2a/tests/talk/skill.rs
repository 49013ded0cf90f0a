//! Calls in the forms of the a2a-protocol skill, and when they are tried.

use a2a_client::{
    AgentClient, CallError, InterfacePreferences, Message, Part, ProtocolBinding, PushConfig,
    SendOptions, TaskQuery,
};
use serde_json::{Value, json};

use super::raw::{RawReply, RawServer};
use super::streams::{all, quick};
use super::{card, interface};

const UNKNOWN: &str =
    r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}"#;

fn unknown(binding: &str) -> RawReply {
    match binding {
        "JSONRPC" => RawReply::bytes("application/json", vec![UNKNOWN.into()]),
        _ => RawReply::status("404 Not Found"),
    }
}

fn wrapped(binding: &str, result: &Value) -> Value {
    match binding {
        "JSONRPC" => json!({"jsonrpc": "2.0", "id": 1, "result": result}),
        _ => result.clone(),
    }
}

fn whole(binding: &str, result: &Value) -> RawReply {
    RawReply::json(&wrapped(binding, result))
}

fn task(state: &str) -> Value {
    json!({"id": "t", "context_id": "c", "status": {"state": state},
        "artifacts": [{"artifact_id": "a", "parts": [{"text": "fine"}]}]})
}

/// The agent behind a server whose card is in `snake_case`.
fn first(server: &RawServer, binding: &str) -> AgentClient {
    let mut card = card(&server.base, binding, Some("1.0"));
    card.capabilities.streaming = true;
    card.interfaces[0].tenant = Some("acme".to_owned());
    let options = SendOptions {
        interface_filter: InterfacePreferences {
            protocol_skill_first: true,
            ..InterfacePreferences::default()
        },
        extensions: vec!["urn:x:1".to_owned(), "urn:x:2".to_owned()],
        ..quick()
    };
    AgentClient::new(&card, &options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_the_members_that_the_skill_describes() {
    let message = Message {
        parts: vec![
            Part::Text("hi".to_owned()),
            Part::Data(json!({"maxDays": 1})),
            Part::File {
                name: "a.bin".to_owned(),
                media_type: "image/png".to_owned(),
                bytes: vec![0xfb, 0xff],
            },
        ],
        context_id: Some("c".to_owned()),
        task_id: Some("t".to_owned()),
        ..Message::from_text("m", "")
    };
    let sent = json!({"message_id": "m", "role": "user", "context_id": "c", "task_id": "t", "parts": [
        {"text": "hi"},
        {"data": {"maxDays": 1}, "media_type": "application/json"},
        {"raw": "+/8=", "filename": "a.bin", "media_type": "image/png"},
    ]});
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let server =
            RawServer::start(vec![whole(binding, &json!({"task": task("completed")}))]).await;
        let answer = first(&server, binding)
            .send_message(&message)
            .await
            .unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.context_id.as_deref()),
            ("fine", Some("c"))
        );
        assert_eq!(answer.artifacts[0].id.as_deref(), Some("a"));
        let seen = server.seen().remove(0);
        if binding == "JSONRPC" {
            assert_eq!(answer.protocol_binding, ProtocolBinding::SkillJsonRpc);
            assert_eq!(seen.body["method"], "a2a.sendMessage");
            let params = json!({"message": sent, "tenant": "acme", "a2a-version": "1.0",
                "a2a-extensions": "urn:x:1, urn:x:2"});
            assert_eq!(seen.body["params"], params);
        } else {
            assert_eq!(answer.protocol_binding, ProtocolBinding::SkillRest);
            assert_eq!(seen.line, "POST /tenants/acme/messages HTTP/1.1");
            assert_eq!(seen.body, json!({ "message": sent }));
            assert!(seen.head.contains("a2a-extensions: urn:x:1, urn:x:2"));
        }
        assert!(seen.head.contains("a2a-version: 1.0"), "{}", seen.head);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_has_the_name_or_the_path_of_the_skill() {
    let config = json!({"id": "p", "url": "https://h/"});
    let query = TaskQuery {
        context_id: Some("c".to_owned()),
        state: Some("input-required".to_owned()),
        page_size: Some(2),
        page_token: Some("n".to_owned()),
    };
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let replies = vec![
            whole(binding, &task("working")),
            whole(binding, &task("canceled")),
            whole(
                binding,
                &json!({"tasks": [task("working")], "next_page_token": "o"}),
            ),
            whole(
                binding,
                &json!({"task_id": "t", "push_notification_config": config}),
            ),
            whole(binding, &config),
            whole(binding, &json!([config])),
            whole(binding, &Value::Null),
            whole(binding, &json!({"name": "Agent, extended"})),
        ];
        let server = RawServer::start(replies).await;
        let agent = first(&server, binding);
        let push = PushConfig {
            id: None,
            url: "https://h/".to_owned(),
            token: Some("k".to_owned()),
        };
        assert_eq!(
            agent.get_task("t").await.unwrap().context_id.as_deref(),
            Some("c")
        );
        assert_eq!(
            agent.cancel_task("t").await.unwrap().state.as_deref(),
            Some("canceled")
        );
        let page = agent.list_tasks(&query).await.unwrap();
        assert_eq!(
            (page.tasks.len(), page.next_page_token.as_deref()),
            (1, Some("o"))
        );
        assert_eq!(
            agent
                .set_push_config("t", &push)
                .await
                .unwrap()
                .id
                .as_deref(),
            Some("p")
        );
        assert_eq!(
            agent.get_push_config("t", "p").await.unwrap().url,
            "https://h/"
        );
        assert_eq!(agent.list_push_configs("t").await.unwrap().len(), 1);
        agent.delete_push_config("t", "p").await.unwrap();
        assert_eq!(
            agent.fetch_extended_card().await.unwrap()["name"],
            "Agent, extended"
        );

        let expected = match binding {
            "JSONRPC" => [
                "a2a.getTask",
                "a2a.cancelTask",
                "a2a.listTasks",
                "a2a.createTaskPushNotificationConfig",
                "a2a.getTaskPushNotificationConfig",
                "a2a.listTaskPushNotificationConfigs",
                "a2a.deleteTaskPushNotificationConfig",
                "a2a.getExtendedAgentCard",
            ],
            _ => [
                "GET /tenants/acme/tasks/t",
                "POST /tenants/acme/tasks/t:cancel",
                "GET /tenants/acme/tasks?contextId=c&status=input-required&pageSize=2&pageToken=n",
                "POST /tenants/acme/tasks/t/pushNotificationConfigs",
                "GET /tenants/acme/tasks/t/pushNotificationConfigs/p",
                "GET /tenants/acme/tasks/t/pushNotificationConfigs",
                "DELETE /tenants/acme/tasks/t/pushNotificationConfigs/p",
                "GET /tenants/acme/agent-card",
            ],
        };
        assert_eq!(server.methods(), expected);
        let seen = server.seen();
        let params = |nth: usize| match binding {
            "JSONRPC" => {
                let mut params = seen[nth].body["params"].clone();
                let members = params.as_object_mut().unwrap();
                for common in ["a2a-version", "a2a-extensions", "tenant"] {
                    assert!(members.remove(common).is_some(), "{common}: {members:?}");
                }
                params
            }
            _ => seen[nth].body.clone(),
        };
        let set = json!({"task_id": "t", "push_notification_config": {"url": "https://h/", "token": "k"}});
        assert_eq!(params(3), set);
        if binding == "JSONRPC" {
            let listed = json!({"context_id": "c", "status": "input-required", "page_size": 2, "page_token": "n"});
            assert_eq!(params(2), listed);
            assert_eq!(params(4), json!({"task_id": "t", "id": "p"}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_put_together_from_members_in_snake_case_and_resumed() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let event = |event: Value| wrapped(binding, &event);
        let chunk = |text: &str, append: bool| {
            let artifact = json!({"artifact_id": "a", "parts": [{"text": text}]});
            event(
                json!({"artifactUpdate": {"task_id": "t", "context_id": "c", "artifact": artifact,
                "append": append, "last_chunk": append}}),
            )
        };
        let state = |state: &str| {
            event(
                json!({"statusUpdate": {"task_id": "t", "context_id": "c", "status": {"state": state}}}),
            )
        };
        let begun = json!({"id": "t", "context_id": "c", "status": {"state": "submitted"}});
        let replies = vec![
            RawReply::events(&[event(json!({ "task": begun })), chunk("one, ", false)]).then_dies(),
            RawReply::events(&[chunk("two", true), state("completed")]),
            whole(
                binding,
                &json!({"id": "t", "context_id": "c", "status": {"state": "completed"},
                    "artifacts": [{"artifact_id": "a", "parts": [{"text": "one, two"}]}]}),
            ),
        ];
        let server = RawServer::start(replies).await;
        let (agent, message) = (first(&server, binding), Message::from_text("m", "hi"));
        let (_, answer, error) = all(agent.stream_message(&message).await.unwrap()).await;
        assert_eq!(error, None);
        assert_eq!(
            (answer.text.as_str(), answer.context_id.as_deref()),
            ("one, two", Some("c"))
        );
        let expected = match binding {
            "JSONRPC" => ["a2a.sendStreamingMessage", "a2a.subscribeToTask"],
            _ => [
                "POST /tenants/acme/messages:stream",
                "POST /tenants/acme/tasks/t:subscribe",
            ],
        };
        assert_eq!(server.methods()[..2], expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_forms_are_tried_where_the_agent_does_not_know_the_first() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let done = whole(binding, &json!({"task": task("completed")}));
        let server = RawServer::start(vec![unknown(binding), unknown(binding), done.clone()]).await;
        let mut standard = card(&server.base, binding, Some("1.0"));
        standard.capabilities.streaming = true;
        let agent = AgentClient::new(&standard, &quick()).unwrap();
        let stream = agent
            .stream_message(&Message::from_text("m", "hi"))
            .await
            .unwrap();
        assert_eq!(all(stream).await.1.text, "fine");
        let expected = match binding {
            "JSONRPC" => [
                "SendStreamingMessage",
                "SendMessage",
                "a2a.sendStreamingMessage",
            ],
            _ => [
                "POST /message:stream",
                "POST /message:send",
                "POST /messages:stream",
            ],
        };
        assert_eq!(server.methods(), expected);

        // A card in snake_case, and an agent that follows the specification.
        let server = RawServer::start(vec![unknown(binding), done]).await;
        let answer = first(&server, binding)
            .send_message(&Message::from_text("m", "hi"))
            .await;
        assert_eq!(answer.unwrap().text, "fine");
        let expected = match binding {
            "JSONRPC" => ["a2a.sendMessage", "SendMessage"],
            _ => ["POST /tenants/acme/messages", "POST /acme/message:send"],
        };
        assert_eq!(server.methods(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_refusal_may_have_taken_the_message_up_and_ends_the_call() {
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "boom"}});
    for reply in [
        RawReply::json(&error),
        RawReply::status("500 Internal Server Error"),
        RawReply::json(&json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}})),
    ] {
        let server = RawServer::start(vec![reply]).await;
        let standard = card(&server.base, "JSONRPC", Some("1.0"));
        let agent = AgentClient::new(&standard, &quick()).unwrap();
        agent
            .send_message(&Message::from_text("m", "hi"))
            .await
            .unwrap_err();
        assert_eq!(server.methods(), ["SendMessage"]);
    }
    // Neither form is known, and the first refusal is told.
    let server = RawServer::start(vec![unknown("JSONRPC")]).await;
    let mut standard = card(&server.base, "JSONRPC", Some("1.0"));
    standard
        .interfaces
        .push(interface(&server.base, "JSONRPC", Some("0.3")));
    let agent = AgentClient::new(&standard, &quick()).unwrap();
    let error = agent
        .send_message(&Message::from_text("m", "hi"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, CallError::Protocol { code: -32601, message, .. } if message == "Method not found"),
        "{error:?}"
    );
    assert_eq!(
        server.methods(),
        ["SendMessage", "a2a.sendMessage", "message/send"]
    );
}
