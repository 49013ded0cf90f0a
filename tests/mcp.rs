//! The registry as a server of the Model Context Protocol: over HTTP in all revisions, on standard input, with
//! third-party clients, and with malicious callers.

mod callers;
mod older_revisions;
mod protocol;
mod results;
pub(crate) mod stdio;
mod surfaces;
mod third_party_clients;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving_registry::ServingRegistry;

/// The newest revisions that are spoken: without a handshake, and with one.
pub(crate) const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];
/// Those that are spoken with clients from before.
const OLDER: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// The tools over HTTP, in their order.
const TOOLS: [&str; 5] = [
    "search_agents",
    "get_agent",
    "get_card",
    "check_agent",
    "list_facets",
];

/// A client of one revision, with or without a token.
#[derive(Clone)]
pub(crate) struct McpClient {
    api: RegistryClient,
    revision: &'static str,
    token: Option<String>,
}

impl McpClient {
    pub(crate) fn new(api: &RegistryClient, revision: &'static str, token: Option<&str>) -> Self {
        Self {
            api: api.clone(),
            revision,
            token: token.map(str::to_owned),
        }
    }

    /// A request with these bytes as its message, and the headers that every client sends.
    fn request(&self, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        let request = self.api.request(Method::POST, "/mcp");
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", self.revision)
            .body(body);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The response to a method, with what the revision asks for beside it.
    async fn ask(&self, method: &str, params: Value) -> ApiResponse {
        let mut params = params;
        let mut request = self.api.request(Method::POST, "/mcp");
        if self.revision == "2026-07-28" {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            request = request.header("mcp-method", method);
            if let Some(name) = params["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", self.revision)
            .json(&message);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        ApiResponse::send(request).await
    }

    /// The result of a tool, which may be an error of the tool.
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", params).await.expect_status(200);
        assert_eq!(answer["id"], 7, "{answer}");
        answer["result"].clone()
    }

    /// The structured result of a tool that succeeds.
    pub(crate) async fn structured(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{result:#}");
        result["structuredContent"].clone()
    }

    /// The sentence of a tool that fails.
    async fn failure(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result:#}");
        assert!(result.get("structuredContent").is_none(), "{result:#}");
        result_text(&result)
    }
}

/// The text of a result.
fn result_text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    let texts = blocks.iter().map(|block| {
        assert_eq!(block["type"], "text", "{result}");
        block["text"].as_str().unwrap()
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Agents with their ids, and the origins that publish them.
struct PublishedAgents {
    ids: Vec<String>,
    _origins: Vec<Origin>,
}

/// Publishes cards of agents with these names, which all do the same, each from an origin of its own.
async fn publish(registry: &ServingRegistry, names: &[&str]) -> PublishedAgents {
    let cards = names.iter().map(|name| card_json(name, "gardening"));
    publish_cards(registry, cards).await
}

/// Publishes these cards, each from an origin of its own.
async fn publish_cards(
    registry: &ServingRegistry,
    cards: impl Iterator<Item = String>,
) -> PublishedAgents {
    let mut published = PublishedAgents {
        ids: Vec::new(),
        _origins: Vec::new(),
    };
    for card in cards {
        let origin = Origin::start();
        origin.set_reply("/card.json", OriginReply::json(card));
        published
            .ids
            .push(registry.publish(&origin.url("/card.json")).await);
        published._origins.push(origin);
    }
    published
}

/// Sets who may find an agent.
async fn show_to(registry: &ServingRegistry, agent: &str, body: Value) {
    let path = format!("/v1/agents/{agent}");
    let request = registry.admin_request(Method::PATCH, &path).json(&body);
    ApiResponse::send(request).await.expect_status(200);
}

/// Puts policies in force by which this account calls no agent, and everybody may do everything else.
async fn forbid_calls_of(registry: &ServingRegistry, account: &str) {
    let no_calls = format!(
        "forbid (principal == Account::\"{account}\", action == Action::\"invoke\", resource);"
    );
    let set = json!({"reason": "a test", "policies": [
        {"id": "open", "text": "permit (principal, action, resource);"},
        {"id": "no-calls", "text": no_calls},
    ]});
    let put = registry
        .admin_request(Method::PUT, "/v1/policies")
        .json(&set);
    ApiResponse::send(put).await.expect_status(202);
}
