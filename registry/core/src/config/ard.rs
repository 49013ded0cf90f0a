//! `[ard]`: discovery by ARD.

use crate::config::section::section;

section! {
    #[derive(PartialEq, Eq)]
    pub struct ArdConfig {
        /// Whether the catalog and the API of ARD are served; otherwise they are not found, and no page links to them.
        pub enabled: bool = true,
        /// Whether agents whose cards have fewer than two examples get representative queries derived from their
        /// skills. If not, a curator may accept that for one agent.
        pub derive_queries: bool,
    }
}
