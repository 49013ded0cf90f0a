//! What can be configured, with the defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use a2a_registry_domain::admission::DomainPattern;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::config::EmbeddingConfig;

/// Everything. Each section is a TOML table of that name; each key is also
/// `A2A_REGISTRY__SECTION__KEY` in the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[server]`
    pub server: ServerConfig,
    /// `[store]`
    pub store: StoreConfig,
    /// `[crawler]`
    pub crawler: CrawlerConfig,
    /// `[governance]`
    pub governance: GovernanceConfig,
    /// `[search]`
    pub search: SearchConfig,
    /// `[embedding]`
    pub embedding: EmbeddingConfig,
    /// `[limits]`
    pub limits: LimitsConfig,
    /// `[log]`
    pub log: LogConfig,
}

/// `[server]`: where the registry listens and what it is called.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Address and port on which `/metrics` is served alone, in plain HTTP; where absent, `listen` serves it to anybody.
    pub metrics_listen: Option<SocketAddr>,
    /// The URL under which others reach the registry; `http://<listen>` where empty.
    pub public_url: String,
    /// PEM certificate chain; HTTPS is spoken where this and `tls_key` are set.
    pub tls_cert: Option<PathBuf>,
    /// PEM private key.
    pub tls_key: Option<PathBuf>,
    /// Addresses whose `X-Forwarded-For` counts, and which `limits.connections_per_address` does not bind.
    pub trusted_proxies: Vec<IpAddr>,
    /// Seconds that requests under way may take to end at shutdown.
    pub drain_seconds: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            metrics_listen: None,
            public_url: String::new(),
            tls_cert: None,
            tls_key: None,
            trusted_proxies: Vec::new(),
            drain_seconds: 5,
        }
    }
}

/// `[store]`: where everything is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// Folder for the lock, the index and, with SQLite, the database.
    pub data_dir: PathBuf,
    /// `sqlite:…` or `postgres://…`; SQLite in the data folder where empty.
    pub database: String,
    /// SQLite's `synchronous`: `normal` survives a crash, `full` a power failure too.
    pub synchronous: SynchronousConfig,
    /// Megabytes of its database that SQLite keeps in memory, all connections together.
    pub sqlite_cache_megabytes: u64,
    /// Seconds without a sign of life from the database after which search and cards answer 503.
    pub stale_limit: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("./a2a-registry-data"),
            database: String::new(),
            synchronous: SynchronousConfig::Normal,
            sqlite_cache_megabytes: 36,
            stale_limit: 60,
        }
    }
}

/// `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SynchronousConfig {
    /// `NORMAL`
    Normal,
    /// `FULL`
    Full,
}

/// `[crawler]`: what may be fetched, and how hard.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlerConfig {
    /// Networks that are reachable although they are private or loopback.
    pub allow_networks: Vec<IpNet>,
    /// Names that are admitted although the rules refuse them, such as `*.corp.internal`.
    pub allow_names: Vec<String>,
    /// Networks that are never reached, whatever else is allowed.
    pub deny_networks: Vec<IpNet>,
    /// Whether plain `http:` is admitted.
    pub allow_http: bool,
    /// Ports that are admitted.
    pub allow_ports: AllowPorts,
    /// PEM files with further roots.
    pub extra_ca: Vec<PathBuf>,
    /// Hosts that may hold the keys which any card is signed with, as in `keys.example.com`; lower-case.
    pub key_hosts: Vec<String>,
    /// A URL or address for those whose domains are crawled; sent with every request.
    pub contact: String,
    /// Visits under way at once.
    pub concurrency: usize,
    /// Visits a second that may begin after a restart or an outage, even where twice the steady rate is
    /// less.
    pub least_rate: f64,
    /// Seconds for which unused permission to begin visits is kept.
    pub burst_seconds: u64,
}

impl Default for CrawlerConfig {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            allow_names: Vec::new(),
            deny_networks: Vec::new(),
            allow_http: false,
            allow_ports: AllowPorts::default(),
            extra_ca: Vec::new(),
            key_hosts: Vec::new(),
            contact: String::new(),
            concurrency: 64,
            least_rate: 1.0,
            burst_seconds: 30,
        }
    }
}

/// `443`, a list such as `[443, 8443]`, or `"any"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowPorts {
    /// Only these.
    List(Vec<u16>),
    /// One.
    One(u16),
    /// `"any"`; any other word is refused when the configuration is validated.
    Word(String),
}

impl Default for AllowPorts {
    fn default() -> Self {
        Self::List(vec![443])
    }
}

/// Who may register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registration {
    /// Whoever holds a token.
    #[default]
    Token,
    /// Anyone, as a nomination that waits for a curator.
    Open,
}

/// `[governance]`: what is admitted (docs/model.md#admission).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GovernanceConfig {
    /// Who may register.
    pub registration: Registration,
    /// Domains whose cards are approved without proof.
    pub allow_domains: Vec<DomainPattern>,
    /// Domains that are never registered and whose agents are held.
    pub deny_domains: Vec<DomainPattern>,
    /// Approve everything that is not forbidden. For demonstrations and closed networks.
    pub approve_all: bool,
}

/// `[search]`: the index, and what finds by meaning.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// Megabytes the index writer may hold before it flushes.
    pub writer_megabytes: usize,
    /// Megabytes of answers kept ready.
    pub cache_megabytes: u64,
    /// The installed sentence encoder to use, by its folder or identifier: the one that is current where empty, none
    /// where `off`.
    pub model: String,
    /// Milliseconds that a search waits for what its words mean, before it goes by the words alone.
    pub embed_timeout: u64,
    /// Agents whose vectors are made in a second at most, so that other work goes on; 0 for no limit.
    pub embed_rate: u32,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            writer_megabytes: 64,
            cache_megabytes: 64,
            model: String::new(),
            embed_timeout: 50,
            embed_rate: 100,
        }
    }
}

/// `[limits]`: how much of everything (docs/model.md#limits). Admins are exempt from the first three.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Agents of one domain.
    pub agents_per_domain: usize,
    /// How many of those, at most half, are kept for what a proof of the domain covers.
    pub agents_reserved: usize,
    /// Sources that one account has registered, catalogs not counted.
    pub sources_per_account: u64,
    /// Networks from which somebody without an account has named a source, as far as they are noted for it.
    pub networks_per_source: usize,
    /// Domains of one account.
    pub domains_per_account: u64,
    /// Card sources that were named from one network without a token and wait for a first approval.
    pub pending_nominations: u64,
    /// Anonymous writes a minute and address.
    pub anonymous_writes_per_minute: u32,
    /// Connections open at once.
    pub connections: usize,
    /// Connections open at once from one address, `trusted_proxies` excepted.
    pub connections_per_address: usize,
    /// Seconds from the first byte of a request to the first of its answer.
    pub request_seconds: u64,
    /// Seconds that the body of a request may take to arrive.
    pub body_seconds: u64,
    /// Seconds without progress after which a client that does not read its answer is cut off.
    pub write_seconds: u64,
    /// Bytes of a JSON request.
    pub json_bytes: usize,
    /// Characters of `q`.
    pub query_chars: usize,
    /// Filter values of one search.
    pub filters: usize,
    /// Facets of one search.
    pub facets: usize,
    /// Event streams open at once.
    pub streams: usize,
    /// Megabytes of card bytes kept ready.
    pub card_cache_megabytes: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            agents_per_domain: 50,
            agents_reserved: 25,
            sources_per_account: 1000,
            networks_per_source: 50,
            domains_per_account: 100,
            pending_nominations: 20,
            anonymous_writes_per_minute: 30,
            connections: 10_000,
            connections_per_address: 256,
            request_seconds: 120,
            body_seconds: 30,
            write_seconds: 30,
            json_bytes: 64 * 1024,
            query_chars: 512,
            filters: 20,
            facets: 12,
            streams: 100,
            card_cache_megabytes: 128,
        }
    }
}

/// `[log]`: what is written to standard error.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Which messages, such as `info` or `a2a_registry=debug,warn`.
    pub filter: String,
    /// `text` for people, `json` for machines.
    pub format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            filter: "info,actix_server=warn,tantivy=warn,sqlx=warn,sea_orm_migration=warn".into(),
            format: LogFormat::Text,
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
