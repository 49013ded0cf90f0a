//! Configuration: file < environment < flags, one struct per concern, validated whole at start.

mod load;
mod sections;
mod validate;

pub use load::{ConfigError, Overrides, load};
pub use sections::{
    AllowPorts, Config, CrawlerConfig, GovernanceConfig, LimitsConfig, LogConfig, LogFormat,
    Registration, SearchConfig, ServerConfig, StoreConfig, SynchronousConfig,
};
