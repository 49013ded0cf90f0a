//! Bad input and failures: each is reported in plain words, and no data is lost.

mod faults;
mod hostile;
mod requests;
mod targets;

use serde_json::json;

use crate::support::api::RegistryClient;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

const CARD: &str = "/.well-known/agent-card.json";

/// A card with this name and one skill.
fn card(name: &str) -> String {
    json!({
        "name": name, "description": "Books flights", "version": "1.0", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [
            {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "skills": [{"id": "book", "name": "Book", "description": "books", "tags": ["travel"]}],
    })
    .to_string()
}

/// A registry with one approved agent, which must still exist unchanged after every test.
struct ApprovedAgent {
    origin: Origin,
    registry: ServingRegistry,
    agent: String,
    domain: String,
    bytes: String,
}

impl ApprovedAgent {
    async fn new() -> Self {
        Self::with(|setup| setup).await
    }

    async fn with(change: impl FnOnce(RegistrySetup) -> RegistrySetup) -> Self {
        let setup = change(RegistrySetup::new().approve_all());
        let registry = setup.start().await;
        Self::register(registry).await
    }

    /// Registers the agent at a serving registry.
    async fn register(registry: ServingRegistry) -> Self {
        let origin = Origin::start();
        let bytes = card("Fernweh");
        origin.set_reply(CARD, OriginReply::json(bytes.clone()));
        let agent = registry.publish(&origin.url(CARD)).await;
        let domain = origin.address().to_string();
        Self {
            origin,
            registry,
            agent,
            domain,
            bytes,
        }
    }

    fn api(&self) -> &RegistryClient {
        &self.registry.api
    }

    /// Checks that the registry still serves, with its data unchanged.
    async fn is_intact(&self) {
        let api = self.api();
        assert_eq!(api.get("/livez").await.status, 200);
        let found = api.search("q=fernweh").await;
        assert_eq!(found["total"], 1, "{found}");
        assert_eq!(found["agents"][0]["id"], self.agent.as_str());
        let card = api.get(&format!("/v1/agents/{}/card", self.agent)).await;
        assert_eq!(card.text(), self.bytes);
        let domain = api
            .get_as_admin(&format!("/v1/domains/{}", self.domain))
            .await;
        assert_eq!(domain.expect_status(200)["agents"], json!([self.agent]));
    }

    /// Number of registered domains.
    async fn domains(&self) -> usize {
        let domains = self
            .api()
            .get_as_admin("/v1/domains")
            .await
            .expect_status(200);
        domains["domains"].as_array().unwrap().len()
    }
}
