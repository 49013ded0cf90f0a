//! The versions of the protocols that this registry speaks, each pinned in this one place.

/// The versions of A2A that are spoken, newest first.
pub const A2A: [&str; 2] = ["1.0.1", "0.3"];

/// The protocols that this registry speaks, with their versions, as the page about it shows them.
pub(crate) fn shown() -> Vec<(&'static str, String)> {
    vec![("A2A", A2A.join(", "))]
}
