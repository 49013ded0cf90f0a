//! Configuration from file, environment and flags (later ones take precedence), with one struct per concern, validated
//! as a whole at startup.

pub mod a2a;
pub mod ard;
pub mod embedding;
pub mod federation;
pub mod identity;
pub mod load;
pub mod mail;
pub mod mcp;
pub mod network_rules;
pub mod postgres_environment;
pub mod print;
pub mod reload;
pub mod secret;
pub mod secret_file;
pub mod secrets;
pub mod section;
pub mod sections;
pub mod traces;
pub mod validate;
pub mod webhooks;

pub use a2a::A2aConfig;
pub use ard::ArdConfig;
pub use embedding::EmbeddingConfig;
pub use federation::{FederationConfig, PeerConfig};
pub use identity::{IdentityConfig, IdentityProviderConfig, RequiredClaimConfig};
pub use load::{ConfigError, ConfigOverrides, load_config};
pub use mail::{MailConfig, MailTls};
pub use mcp::McpConfig;
pub use network_rules::read_root_certificates;
pub use reload::ActiveConfig;
pub use secret::{DatabaseUrl, Secret};
pub use secret_file::read_secret_file;
pub use secrets::SecretsConfig;
pub use sections::{
    AllowPorts, CheckEndpoints, Config, CrawlerConfig, DecidersConfig, GovernanceConfig,
    LimitsConfig, LogConfig, LogFormat, MAX_DECIDERS, MAX_TERM_DAYS, MIN_TERM_DAYS,
    RegistrationAccess, SearchConfig, ServerConfig, SqliteSynchronousMode, StoreConfig,
};
pub use traces::TracingConfig;
pub use webhooks::WebhooksConfig;
