//! The registry's own card in the 1.0 format, plus the 0.3 members if 0.3 clients are served.
//!
//! All clients get the same bytes from one path, because the signature covers these bytes; the card does not depend on
//! the protocol version that a client requests. The 0.3 members have one cost: the published 1.0 schema allows no
//! additional members, so validation against that schema fails. Without them, 0.3 clients cannot read the card.

use a2a_registry_core::config::Config;
use serde_json::{Value, json};
use url::Url;

use super::{REST_PATH, RPC_PATH};

pub(crate) const FIND_AGENTS: &str = "find-agents";
pub(crate) const DESCRIBE_AGENT: &str = "describe-agent";
pub(crate) const CHECK_AGENT: &str = "check-agent";

pub(crate) const OUTPUT_MODES: [&str; 2] = ["text/plain", "application/json"];

const DEFAULT_DESCRIPTION: &str = "Finds agents for a task, described in plain words, in a curated \
     registry of A2A agent cards. Describes an agent and checks whether the caller may use it.";

pub(crate) fn own_card_json(config: &Config) -> Value {
    let base = config.public_url();
    let a2a = &config.a2a;
    let text_or = |text: &str, other: String| match text {
        "" => other,
        text => text.to_owned(),
    };
    let mut interfaces = vec![
        json!({"url": format!("{base}{RPC_PATH}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}),
        json!({"url": format!("{base}{REST_PATH}"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}),
    ];
    if a2a.serve_0_3 {
        interfaces.push(json!({"url": format!("{base}{RPC_PATH}"), "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}));
    }
    let mut card = json!({
        "name": text_or(&a2a.name, format!("Agent registry at {}", base_url_authority(&base))),
        "description": text_or(&a2a.description, DEFAULT_DESCRIPTION.to_owned()),
        "version": env!("CARGO_PKG_VERSION"),
        "documentationUrl": format!("{base}/about"),
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
        "securitySchemes": {"bearer": bearer_scheme(a2a.serve_0_3)},
        "securityRequirements": [{"schemes": {}}, {"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": OUTPUT_MODES,
        "defaultOutputModes": OUTPUT_MODES,
        "skills": self_agent_skills(),
    });
    if !a2a.provider.is_empty() {
        card["provider"] = json!({
            "organization": a2a.provider,
            "url": text_or(&a2a.provider_url, base.clone()),
        });
    }
    if a2a.serve_0_3 {
        card["protocolVersion"] = json!("0.3.0");
        card["url"] = json!(format!("{base}{RPC_PATH}"));
        card["preferredTransport"] = json!("JSONRPC");
        card["security"] = json!([{}, {"bearer": []}]);
        card["supportsAuthenticatedExtendedCard"] = json!(false);
    }
    card
}

fn base_url_authority(base: &str) -> String {
    let url = Url::parse(base);
    url.map_or_else(|_| "this host".to_owned(), |url| url.authority().to_owned())
}

/// The bearer security scheme in the 1.0 format, plus the 0.3 members if 0.3 clients are served.
fn bearer_scheme(serve_0_3: bool) -> Value {
    const SCHEME_DESCRIPTION: &str = "Optional. Anonymous callers find public agents only.";
    let mut scheme =
        json!({"httpAuthSecurityScheme": {"description": SCHEME_DESCRIPTION, "scheme": "bearer"}});
    if serve_0_3 {
        scheme["type"] = json!("http");
        scheme["scheme"] = json!("bearer");
        scheme["description"] = json!(SCHEME_DESCRIPTION);
    }
    scheme
}

fn self_agent_skills() -> Value {
    json!([
        {
            "id": FIND_AGENTS,
            "name": "Find agents",
            "description": "Finds agents for a task. Accepts plain words, or a data part with an Agentic Resource \
            Discovery search request; returns a readable list and a data part with the search response. \
            Send \"more\" in the same context to get the next page.",
            "tags": ["search", "discovery", "agents", "registry"],
            "examples": [
                "Translate a contract into Japanese",
                "{\"skill\": \"find-agents\", \"query\": {\"text\": \"book a flight\"}, \"pageSize\": 5}",
            ],
        },
        {
            "id": DESCRIBE_AGENT,
            "name": "Describe an agent",
            "description": "Describes one agent, named by its identifier, URN or name.",
            "tags": ["agents", "registry", "description"],
            "examples": [
                "describe urn:air:example.com:agents:translator",
                "{\"skill\": \"describe-agent\", \"agent\": \"urn:air:example.com:agents:translator\"}",
            ],
        },
        {
            "id": CHECK_AGENT,
            "name": "Check an agent",
            "description": "Checks whether the policies of this registry allow the caller to find and call one agent.",
            "tags": ["agents", "registry", "policy"],
            "examples": [
                "is urn:air:example.com:agents:translator allowed?",
                "{\"skill\": \"check-agent\", \"agent\": \"urn:air:example.com:agents:translator\"}",
            ],
        },
    ])
}
