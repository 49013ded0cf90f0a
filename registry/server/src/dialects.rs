//! The versions of the protocols that this registry speaks, each pinned in this one place.

/// The revisions of the Model Context Protocol that are spoken, newest first.
pub const MCP: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// The protocols that this registry speaks, with their versions, as the page about it shows them.
pub(crate) fn shown() -> Vec<(&'static str, String)> {
    vec![("Model Context Protocol", MCP.join(", "))]
}
