//! The supported versions of all protocols, each defined only here.

use crate::config::Config;

/// The supported revisions of the Model Context Protocol, newest first. All but the first begin with a handshake.
pub const MCP_VERSIONS: [&str; 5] = [
    "2026-07-28",
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];

pub const A2A_VERSIONS: [&str; 2] = ["1.0.1", "0.3"];

pub const ARD_VERSION: &str = "0.91";

pub const AI_CATALOG_VERSION: &str = "1.0";

/// A protocol as shown on the page about this registry.
pub struct ProtocolView {
    pub name: &'static str,
    pub versions: String,
    /// The URL where clients of the protocol start.
    pub address: String,
}

/// Lists the protocols that this registry supports, without disabled ones.
pub fn enabled_protocols(config: &Config) -> Vec<ProtocolView> {
    let url = config.public_url();
    let view = |name, versions: &[&str], path: &str| ProtocolView {
        name,
        versions: versions.join(", "),
        address: format!("{url}{path}"),
    };
    let a2a = match config.a2a.serve_0_3 {
        true => &A2A_VERSIONS[..],
        false => &A2A_VERSIONS[..1],
    };
    let a2a = view("A2A", a2a, "/.well-known/agent-card.json");
    let mcp = view("Model Context Protocol", &MCP_VERSIONS, "/mcp");
    let ard = [
        view("Agentic Resource Discovery", &[ARD_VERSION], "/ard"),
        view(
            "AI Catalog",
            &[AI_CATALOG_VERSION],
            "/.well-known/ai-catalog.json",
        ),
    ];
    let a2a = config.a2a.enabled.then_some(a2a);
    let mcp = config.mcp.enabled.then_some(mcp);
    let ard = ard.into_iter().filter(|_| config.ard.enabled);
    a2a.into_iter().chain(ard).chain(mcp).collect()
}
