//! `[ard]`: discovery by ARD.

use serde::{Deserialize, Serialize};

/// `[ard]`: discovery by ARD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArdConfig {
    /// Whether the catalog and the API of ARD are served; they are not found otherwise, and no page leads there.
    pub enabled: bool,
    /// Whether agents whose cards have fewer than two examples get representative queries that are derived from their
    /// skills. A curator may accept that for one agent where it is off.
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
