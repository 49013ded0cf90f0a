//! Configuration: file < environment < flags, one struct per concern, validated whole at start.

mod a2a;
mod ard;
mod embedding;
mod federation;
mod identity;
mod load;
mod mcp;
mod print;
mod reach;
mod secret;
mod section;
mod sections;
mod validate;

pub use a2a::A2aConfig;
pub use ard::ArdConfig;
pub use embedding::EmbeddingConfig;
pub use federation::{FederationConfig, PeerConfig};
pub use identity::{IdentityConfig, ProviderConfig, RequireConfig};
pub use load::{ConfigError, Overrides, load};
pub use mcp::McpConfig;
pub use reach::read_roots;
pub use secret::{DatabaseUrl, Secret, read_secret_file};
pub use sections::{
    AllowPorts, Config, CrawlerConfig, DecidersConfig, GovernanceConfig, LimitsConfig, LogConfig,
    LogFormat, MAX_DECIDERS, MAX_TERM_DAYS, MIN_TERM_DAYS, Registration, SearchConfig,
    ServerConfig, StoreConfig, SynchronousConfig,
};
