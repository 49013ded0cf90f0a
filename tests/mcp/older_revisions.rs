//! Clients of older revisions: responses use the revision of the client and only its members, and the SDKs stay
//! connected.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use super::third_party_clients::{client_report, script};
use super::{McpClient, OLDER, TOOLS, publish, result_text};
use crate::support::api::ApiResponse;
use crate::support::program::{Program, registry_command};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;
use crate::support::{registry_binary, required_variable};

/// A message to `/mcp`, with the header of that revision or without one, as clients before 2025-06-18 send it.
async fn post_message(
    registry: &ServingRegistry,
    revision: Option<&str>,
    message: &Value,
) -> ApiResponse {
    let request = registry.request(Method::POST, "/mcp");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = match revision {
        Some(revision) => request.header("mcp-protocol-version", revision),
        None => request,
    };
    ApiResponse::send(request.json(message)).await
}

fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn search(id: i64, arguments: Value) -> Value {
    let params = json!({"name": "search_agents", "arguments": arguments});
    request(id, "tools/call", params)
}

/// `initialize` is answered with the revision that the client names, and never with a newer one.
#[tokio::test]
async fn older_revisions_are_answered_as_they_are() {
    let registry = RegistrySetup::new().start().await;
    for revision in OLDER {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let begin = request(1, "initialize", params);
        let begun = post_message(&registry, None, &begin)
            .await
            .expect_status(200);
        assert_eq!(begun["result"]["protocolVersion"], revision, "{begun}");
        let mut session = super::stdio::StdioSession::speaking(&registry.api, revision).await;
        let listed = session.call_method("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), TOOLS.len() + 1, "{listed}");
        let is_structured = revision == "2025-06-18";
        let schemas = tools.iter().map(|tool| tool.get("outputSchema").is_some());
        assert!(
            schemas.eq(tools.iter().map(|_| is_structured)),
            "{revision}: {listed}"
        );
        let found = session.call("search_agents", json!({})).await;
        let structured = found.get("structuredContent").is_some();
        assert_eq!(structured, is_structured, "{revision}: {found}");
        session.close().await;
    }
}

/// Structured results and their schemas are of 2025-06-18. Before, the text alone says how to go on.
#[tokio::test]
async fn structured_results_are_not_sent_to_clients_from_before() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let published = publish(&registry, &["Rose", "Tulip", "Daisy"]).await;
    let first = search(1, json!({"text": "gardening", "page_size": 2}));
    let list = request(1, "tools/list", json!({}));
    for revision in [
        None,
        Some("2024-11-05"),
        Some("2025-03-26"),
        Some("2025-06-18"),
    ] {
        let is_structured = revision == Some("2025-06-18");
        let listed = post_message(&registry, revision, &list)
            .await
            .expect_status(200);
        for tool in listed["result"]["tools"].as_array().unwrap() {
            let has_schema = tool.get("outputSchema").is_some();
            assert_eq!(has_schema, is_structured, "{revision:?}: {tool}");
        }
        let found = post_message(&registry, revision, &first)
            .await
            .expect_status(200);
        let result = &found["result"];
        assert_eq!(result["isError"], false, "{found}");
        let has_content = result.get("structuredContent").is_some();
        assert_eq!(has_content, is_structured, "{revision:?}: {found}");
        let told = result_text(result);
        let (_, token) = told.split_once("page_token ").expect(&told);
        let token = token.lines().next().unwrap();
        let arguments = json!({"text": "gardening", "page_size": 2, "page_token": token});
        let next = post_message(&registry, revision, &search(2, arguments))
            .await
            .expect_status(200);
        let rest = result_text(&next["result"]);
        let shown = |id: &&String| told.contains(*id) != rest.contains(*id);
        assert_eq!(
            published.ids.iter().filter(shown).count(),
            3,
            "{told}\n{rest}"
        );
    }
}

/// 2025-03-26 has batches, and a request that names no revision is of that one.
#[tokio::test]
async fn batches_are_received_in_the_revision_that_has_them() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([
        search(1, json!({"tag": "x"})),
        note,
        request(2, "agents/steal", json!({})),
        "no message",
        request(3, "ping", json!({})),
    ]);
    for revision in [None, Some("2025-03-26")] {
        let answered = post_message(&registry, revision, &batch).await;
        assert_eq!(answered.headers["content-type"], "application/json");
        let answered = answered.expect_status(200);
        let answers = answered.as_array().unwrap();
        assert_eq!(answers.len(), 4, "{answered}");
        assert_eq!(answers[0]["id"], 1);
        assert_eq!(answers[0]["result"]["isError"], false, "{answered}");
        assert_eq!(answers[1]["error"]["code"], -32601, "{answered}");
        assert_eq!(answers[2]["error"]["code"], -32600, "{answered}");
        assert_eq!(answers[3], json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
        let notes = post_message(&registry, revision, &json!([note, note])).await;
        assert_eq!((notes.status.as_u16(), notes.body.len()), (202, 0));
        for (count, status) in [(0, 400), (1, 200), (20, 200), (21, 400)] {
            let pings = vec![request(1, "ping", json!({})); count];
            let answered = post_message(&registry, revision, &json!(pings))
                .await
                .expect_status(status);
            match status {
                200 => assert_eq!(answered.as_array().unwrap().len(), count),
                _ => assert_eq!(answered["error"]["code"], -32600, "{answered}"),
            }
        }
    }
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let refused = post_message(&registry, Some(revision), &batch)
            .await
            .expect_status(400);
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
    }
    let mut session = super::stdio::StdioSession::speaking(&registry.api, "2025-03-26").await;
    session.write_message(&batch).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(session.read_message().await.unwrap()["id"].clone());
    }
    ids.sort_by_key(Value::as_i64);
    assert_eq!(ids, [Value::Null, json!(1), json!(2), json!(3)]);
    session.close().await;
}

/// The SDKs of Python and JavaScript from before 2025-11-25, which leave where they are answered with a newer revision.
#[tokio::test]
async fn sdks_from_before_stay_connected() {
    let served = RegistrySetup::new().approve_all().start().await;
    let _published = publish(&served, &["Rose"]).await;
    for transport in ["http", "stdio"] {
        let mut python = Command::new(required_variable("A2A_REGISTRY_TEST_MCP1"));
        python.args(["-B", "-u", "-W", "ignore"]);
        python.arg(script("mcp1_client.py"));
        let mut node = Command::new("node");
        node.env("NODE_PATH", required_variable("A2A_REGISTRY_TEST_NODE"));
        node.arg(script("mcp1_client.cjs"));
        for (mut client, revision) in [(python, "2025-03-26"), (node, "2025-06-18")] {
            // Without the settings of the user who runs the tests, which the program would read.
            for (name, value) in registry_command([""; 0]).as_std_mut().get_envs() {
                match value {
                    Some(value) => client.env(name, value),
                    None => client.env_remove(name),
                };
            }
            client.arg(transport);
            match transport {
                "http" => client.arg(format!("{}/mcp", served.url)),
                _ => client
                    .arg(registry_binary())
                    .env("A2A_REGISTRY_URL", &served.url),
            };
            let told = client_report(&Program::run(client).await);
            assert_eq!(told["revision"], revision, "{transport}: {told:#}");
            assert_eq!(told["structured"], revision == "2025-06-18", "{told:#}");
            let mut tools: Vec<_> = TOOLS.to_vec();
            tools.extend((transport == "stdio").then_some("talk_to_agent"));
            assert_eq!(told["tools"], json!(tools));
            assert_eq!(told["found"][0], false, "{told:#}");
            assert!(
                told["found"][1].as_str().unwrap().contains("\"Rose\""),
                "{told:#}"
            );
            assert_eq!(told["missing"][0], true, "{told:#}");
        }
    }
}

/// The arguments are read as models write them, over HTTP and on standard input.
#[tokio::test]
async fn one_value_is_a_list_and_a_text_is_a_number() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let _published = publish(&registry, &["Rose", "Tulip"]).await;
    let client = McpClient::new(&registry.api, "2025-11-25", None);
    let exact = json!({"text": "gardening", "protocol_version": ["0.3"], "page_size": 1});
    let exact = client.structured("search_agents", exact).await;
    assert_eq!(exact["agents"].as_array().unwrap().len(), 1);
    let loose =
        json!({"text": "gardening", "protocol_version": 0.3, "page_size": "1", "tag": null});
    let found = client.structured("search_agents", loose.clone()).await;
    assert_eq!(found["agents"], exact["agents"]);
    let mut session = super::stdio::StdioSession::start(&registry.api, None).await;
    let found = session.call("search_agents", loose).await;
    assert_eq!(found["structuredContent"]["agents"], exact["agents"]);
    session.close().await;
}
