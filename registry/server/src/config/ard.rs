//! `[ard]`: discovery by ARD.

use crate::config::section::section;

section! {
    /// `[ard]`: discovery by ARD.
    #[derive(PartialEq, Eq)]
    pub struct ArdConfig {
        /// Whether the catalog and the API of ARD are served; they are not found otherwise, and no page leads there.
        pub enabled: bool = true,
        /// Whether agents whose cards have fewer than two examples get representative queries that are derived from their
        /// skills. A curator may accept that for one agent where it is off.
        pub derive_queries: bool,
    }
}
