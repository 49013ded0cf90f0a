//! `[mcp]`: the registry as a server of the Model Context Protocol.

use crate::config::section::section;

section! {
    pub struct McpConfig {
        /// Whether `POST /mcp` is served; it is not found otherwise.
        pub enabled: bool = true,
    }
}
