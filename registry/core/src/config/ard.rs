//! `[ard]`: discovery by ARD.

use crate::config::section::section;

section! {
    #[derive(PartialEq, Eq)]
    pub struct ArdConfig {
        /// Whether the catalog and the API of ARD are served; otherwise they return 404, and no page links to them.
        pub enabled: bool = true,
        /// Whether representative queries are derived from an agent's skills if its card has fewer than two examples.
        /// If not, a curator may still allow that for single agents.
        pub derive_queries: bool,
    }
}
