//! `[ard]`: discovery by ARD.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArdConfig {
    /// Whether the catalog and the API of ARD are served; otherwise they are not found, and no page links to them.
    pub enabled: bool,
    /// Whether agents whose cards have fewer than two examples get representative queries derived from their skills. If
    /// not, a curator may accept that for one agent.
    pub derive_queries: bool,
}

impl Default for ArdConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            derive_queries: false,
        }
    }
}
