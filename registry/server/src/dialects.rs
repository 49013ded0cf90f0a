//! The versions of the protocols that this registry speaks, each pinned in this one place.

/// The revisions of the Model Context Protocol that are spoken, newest first.
pub const MCP: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// The versions of A2A that are spoken, newest first.
pub const A2A: [&str; 2] = ["1.0.1", "0.3"];

/// The version of Agentic Resource Discovery that is spoken.
pub const ARD: &str = "0.91";

/// The version of AI Catalog in which the registry's catalog is published.
pub const AI_CATALOG: &str = "1.0";

/// The protocols that this registry speaks, with their versions, as the page about it shows them.
pub(crate) fn shown() -> Vec<(&'static str, String)> {
    vec![
        ("A2A", A2A.join(", ")),
        ("Agentic Resource Discovery", ARD.to_owned()),
        ("AI Catalog", AI_CATALOG.to_owned()),
        ("Model Context Protocol", MCP.join(", ")),
    ]
}
