//! `[mcp]`: the registry as a server of the Model Context Protocol.

use crate::config::section::section;

section! {
    pub struct McpConfig {
        /// Whether `POST /mcp` is served; otherwise it returns 404.
        pub enabled: bool = true,
    }
}
