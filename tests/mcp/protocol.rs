//! The protocol itself: both newest revisions, hosts and origins, and malformed messages.

use a2a_registry_core::protocol_versions;
use reqwest::Method;
use serde_json::{Value, json};

use super::{McpClient, OLDER, REVISIONS, TOOLS};
use crate::support::api::ApiResponse;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// Both revisions list the same tools in the same order, closed and described, and say who may keep the list.
#[tokio::test]
async fn both_revisions_list_the_same_tools() {
    let registry = RegistrySetup::new().start().await;
    let token = registry.create_token("reader", "reader").await;
    let mut lists = Vec::new();
    for revision in REVISIONS {
        for (token, scope) in [(None, "public"), (Some(token.as_str()), "private")] {
            let client = McpClient::new(&registry.api, revision, token);
            let answer = client.ask("tools/list", json!({})).await;
            assert!(!answer.headers.contains_key("mcp-session-id"));
            assert_eq!(answer.headers["cache-control"], "no-store");
            let result = answer.expect_status(200)["result"].clone();
            assert_eq!(result["cacheScope"], scope, "{revision}");
            assert!(result["ttlMs"].as_u64().unwrap() > 0);
            lists.push(result["tools"].clone());
        }
    }
    let first = lists[0].as_array().unwrap();
    let names: Vec<_> = first
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, TOOLS);
    assert!(lists.iter().all(|list| *list == lists[0]));
    for tool in first {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 100, "{tool}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            closed(&tool[schema]);
        }
    }
}

/// Every object of a schema names all its members.
fn closed(schema: &Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                assert_eq!(schema["additionalProperties"], false, "{schema:#}");
            }
            members.values().for_each(closed);
        }
        Value::Array(items) => items.iter().for_each(closed),
        _ => {}
    }
}

/// The handshake of 2025-11-25 and the discovery of 2026-07-28.
#[tokio::test]
async fn each_revision_begins_in_its_way() {
    let registry = RegistrySetup::new().start().await;
    let old = McpClient::new(&registry.api, "2025-11-25", None);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let result = old.ask("initialize", params).await.expect_status(200)["result"].clone();
    assert_eq!(result["protocolVersion"], "2025-11-25");
    assert_eq!(result["serverInfo"]["name"], "a2a-registry");
    assert!(result["capabilities"]["tools"].is_object());
    assert!(
        result["instructions"]
            .as_str()
            .unwrap()
            .contains("search_agents")
    );
    let began = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = ApiResponse::send(old.request(began.to_string())).await;
    assert_eq!((accepted.status.as_u16(), accepted.body.len()), (202, 0));
    // A client of a revision that is not spoken is offered the newest with a handshake.
    let older = json!({
        "protocolVersion": "2024-10-07", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": older});
    let request = registry.request(Method::POST, "/mcp").json(&message);
    let request = request.header("accept", "application/json, text/event-stream");
    let offered = ApiResponse::send(request).await.expect_status(200);
    assert_eq!(offered["result"]["protocolVersion"], "2025-11-25");
    let spoken: Vec<&str> = REVISIONS.into_iter().chain(OLDER).collect();
    assert_eq!(protocol_versions::MCP_VERSIONS, *spoken);
    let new = McpClient::new(&registry.api, "2026-07-28", None);
    let result = new
        .ask("server/discover", json!({}))
        .await
        .expect_status(200)["result"]
        .clone();
    assert_eq!(
        result["supportedVersions"],
        json!(spoken.into_iter().rev().collect::<Vec<_>>())
    );
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["cacheScope"], "public");
    assert!(result["ttlMs"].as_u64().unwrap() > 0);
}

/// A request to `/mcp` with these headers; those of the same name are replaced.
async fn post_with_headers(registry: &ServingRegistry, headers: &[(&str, &str)]) -> ApiResponse {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let client = McpClient::new(&registry.api, "2025-11-25", None);
    let mut request = client.request(message.to_string()).build().unwrap();
    for (name, value) in headers {
        let name = reqwest::header::HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = crate::support::http_client()
        .execute(request)
        .await
        .unwrap();
    ApiResponse {
        status: answer.status(),
        headers: answer.headers().clone(),
        body: answer.bytes().await.unwrap().to_vec(),
    }
}

/// Only this registry's own names are answered to, and only its own pages may call: another name means that somebody's
/// page reaches through a name that leads here.
#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let setup =
        RegistrySetup::new().with_config_lines("[server]\npublic_url = \"https://agents.example\"");
    let registry = setup.start().await;
    let port = registry.url.rsplit(':').next().unwrap().to_owned();
    for host in [
        "agents.example",
        "AGENTS.example:443",
        "127.0.0.1",
        "localhost:1",
    ] {
        assert_eq!(
            post_with_headers(&registry, &[("host", host)]).await.status,
            200,
            "{host}"
        );
    }
    for host in [
        "evil.example",
        "agents.example.evil.example",
        "10.0.0.1",
        "127.0.0.1.evil.example",
    ] {
        let refused = post_with_headers(&registry, &[("host", host)]).await;
        let problem = refused.expect_problem(403, "forbidden");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("https://agents.example"), "{detail}");
        assert!(detail.contains("server.public_url"), "{detail}");
    }
    assert_eq!(
        post_with_headers(&registry, &[("origin", "https://agents.example")])
            .await
            .status,
        200
    );
    let foreign = [
        "https://evil.example",
        "http://agents.example",
        "https://agents.example:8443",
        "null",
        "http://localhost:1",
        "not an origin",
    ];
    for origin in foreign {
        post_with_headers(&registry, &[("origin", origin)])
            .await
            .expect_problem(403, "forbidden");
    }
    let own = RegistrySetup::new().start_without_proxy().await;
    let own_origin = own.url.replace("127.0.0.1", "localhost");
    assert_eq!(
        post_with_headers(&own, &[("origin", &own_origin)])
            .await
            .status,
        200,
        "{port}"
    );
}

/// Whatever is no message is refused in one sentence, and harms nothing.
#[tokio::test]
async fn what_is_no_message_is_refused() {
    let setup = RegistrySetup::new().with_config_lines("[limits]\njson_bytes = 4096");
    let registry = setup.start().await;
    let client = McpClient::new(&registry.api, "2025-11-25", None);
    let error = |answer: &ApiResponse, status: u16, code: i64| {
        let error = answer.expect_status(status);
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(error["jsonrpc"], "2.0");
        assert_eq!(error["error"]["code"], code, "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.ends_with('.'), "{message}");
    };
    for broken in ["", "{", "\u{feff}{}", "nonsense"] {
        let answer = ApiResponse::send(client.request(broken)).await;
        error(&answer, 400, -32700);
    }
    for other in [
        "{}",
        "[]",
        "1",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
    ] {
        let answer = ApiResponse::send(client.request(other)).await;
        error(&answer, 400, -32600);
    }
    let accepts = |kinds: &str| [("accept", kinds.to_owned())];
    for kinds in ["text/event-stream", "text/html"] {
        let [(name, kinds)] = accepts(kinds);
        error(
            &post_with_headers(&registry, &[(name, &kinds)]).await,
            406,
            -32600,
        );
    }
    // Every answer is JSON, so the protocol's other media type need not be taken.
    for kinds in ["*/*", "application/json", "text/html, Application/*;q=0.5"] {
        let [(name, kinds)] = accepts(kinds);
        let answer = post_with_headers(&registry, &[(name, &kinds)]).await;
        assert_eq!(answer.status, 200, "{kinds}");
    }
    post_with_headers(&registry, &[("content-type", "text/plain")])
        .await
        .expect_problem(415, "wrong-media-type");
    let long =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "x".repeat(4096)}});
    let refused = ApiResponse::send(client.request(long.to_string())).await;
    refused.expect_problem(413, "too-large");
    for revision in REVISIONS {
        let client = McpClient::new(&registry.api, revision, None);
        let unknown = client.ask("agents/steal", json!({})).await;
        let status = if revision == "2026-07-28" { 404 } else { 200 };
        let unknown = unknown.expect_status(status);
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
        let call = json!({"name": "steal_agents", "arguments": {}});
        let unknown = client.ask("tools/call", call).await.expect_status(200);
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        // A known method with other parameters than it takes is no unknown method.
        for wrong in [json!({}), json!({"name": "get_agent", "arguments": []})] {
            let wrong = client.ask("tools/call", wrong).await.expect_status(200);
            assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
            let message = wrong["error"]["message"].as_str().unwrap();
            assert!(message.contains("tools/call are invalid"), "{message}");
        }
    }
    let call = json!({"name": "steal\u{202e}", "arguments": {}});
    let unknown = client.ask("tools/call", call).await.expect_status(200);
    assert_eq!(
        unknown["error"]["message"],
        "The tool steal⟦U+202E⟧ does not exist. List all tools with tools/list."
    );
}

/// There are no streams and no sessions, so the other methods of the transport are refused; and where the operator has
/// turned the protocol off, there is nothing at all.
#[tokio::test]
async fn other_methods_are_refused_and_off_is_off() {
    let registry = RegistrySetup::new().start().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let request = registry.request(method.clone(), "/mcp");
        let refused = ApiResponse::send(request.header("accept", "text/event-stream")).await;
        refused.expect_problem(405, "wrong-method");
        assert_eq!(refused.headers["allow"], "OPTIONS, POST", "{method}");
    }
    let off = RegistrySetup::new()
        .with_config_lines("[mcp]\nenabled = false")
        .start()
        .await;
    let client = McpClient::new(&off.api, "2025-11-25", None);
    client
        .ask("tools/list", json!({}))
        .await
        .expect_problem(404, "not-found");
}

/// The page about the registry names the revisions.
#[tokio::test]
async fn the_revisions_are_shown_on_the_page_about_the_registry() {
    let registry = RegistrySetup::new().start().await;
    let page = registry.get("/about").await.text();
    assert!(
        page.contains(&format!(
            "<dt>Model Context Protocol</dt><dd>{} at <code>",
            protocol_versions::MCP_VERSIONS.join(", ")
        )),
        "{page}"
    );
}
