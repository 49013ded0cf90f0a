//! All configuration sections and their defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_domain::timestamp::DAY;
use ipnet::{IpNet, Ipv4Net};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::config::section::section;
use crate::config::{
    A2aConfig, ArdConfig, DatabaseUrl, EmbeddingConfig, FederationConfig, IdentityConfig, McpConfig,
};

/// The whole configuration. Each section is a TOML table of that name; each key can also be set as
/// `A2A_REGISTRY__SECTION__KEY` in the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub server: ServerConfig,
    pub store: StoreConfig,
    pub crawler: CrawlerConfig,
    pub governance: GovernanceConfig,
    pub identity: IdentityConfig,
    pub search: SearchConfig,
    pub federation: FederationConfig,
    pub embedding: EmbeddingConfig,
    pub mcp: McpConfig,
    pub ard: ArdConfig,
    pub a2a: A2aConfig,
    pub limits: LimitsConfig,
    pub log: LogConfig,
}

section! {
    /// `[server]`: listening addresses and the public URL.
    pub struct ServerConfig {
        /// Address and port to listen on.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Address and port on which only `/metrics` is served, in plain HTTP. If absent, `listen` serves it to every
        /// client.
        pub metrics_listen: Option<SocketAddr>,
        /// The URL under which clients reach the registry. Empty: `http://<listen>`.
        pub public_url: String,
        /// PEM certificate chain. HTTPS is served if this and `tls_key` are set.
        pub tls_cert: Option<PathBuf>,
        pub tls_key: Option<PathBuf>,
        /// Addresses and networks of proxies whose `X-Forwarded-For` is trusted, and which are exempt from
        /// `limits.connections_per_address`.
        #[serde(deserialize_with = "parse_networks")]
        pub trusted_proxies: Vec<IpNet>,
        /// Seconds that requests in progress have to finish at shutdown.
        pub drain_seconds: u64 = 5,
    }
}

/// Parses networks; single addresses become networks of one address, and IPv4 within IPv6 becomes IPv4, as for
/// clients' addresses.
fn parse_networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let networks = texts.iter().map(|text| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        let network = address.or_else(|_| text.parse());
        network.map(canonical_network).map_err(|_| {
            Error::custom(format!(
                "`{text}` is neither an address nor a network such as 10.0.0.0/8"
            ))
        })
    });
    networks.collect()
}

fn canonical_network(network: IpNet) -> IpNet {
    let IpNet::V6(mapped) = network else {
        return network;
    };
    let address = mapped.addr().to_ipv4_mapped();
    let parts = address.zip(mapped.prefix_len().checked_sub(96));
    let inner = parts.and_then(|(address, length)| Ipv4Net::new(address, length).ok());
    inner.map_or(network, IpNet::V4)
}

section! {
    /// `[store]`: the database and the data folder.
    pub struct StoreConfig {
        /// Folder for the lock, the index and, with SQLite, the database.
        pub data_dir: PathBuf = PathBuf::from("./a2a-registry-data"),
        /// `sqlite:…` or `postgres://…`. Empty: SQLite in the data folder. A password in the URL is never shown.
        pub database: DatabaseUrl,
        /// A file with the URL, instead of `database`.
        pub database_file: Option<PathBuf>,
        /// The content of `database_file` when the configuration was read.
        #[serde(skip)]
        pub database_read: DatabaseUrl,
        /// SQLite's `synchronous`: `normal` is safe against a crash, `full` also against a power failure.
        pub synchronous: SqliteSynchronousMode = SqliteSynchronousMode::Normal,
        /// Page cache of SQLite in megabytes, for all connections together.
        pub sqlite_cache_megabytes: u64 = 36,
        /// Seconds without a response from the database after which search and cards answer 503.
        pub stale_limit: u64 = 60,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqliteSynchronousMode {
    Normal,
    Full,
}

section! {
    /// `[crawler]`: network rules, identity and rate of the crawler.
    pub struct CrawlerConfig {
        /// Networks that may be reached although they are private or loopback.
        pub allow_networks: Vec<IpNet>,
        /// Names that are allowed although the guard would reject them, such as `*.corp.internal`.
        pub allow_names: Vec<String>,
        /// Networks that are never reached, even if another setting allows them.
        pub deny_networks: Vec<IpNet>,
        /// Whether plain `http:` is allowed.
        pub allow_http: bool,
        /// Ports that are allowed.
        pub allow_ports: AllowPorts,
        /// PEM files with additional root certificates.
        pub extra_ca: Vec<PathBuf>,
        /// Hosts that may serve the key sets of any domain's signatures, such as `keys.example.com`; lower-case.
        pub key_hosts: Vec<String>,
        /// A URL (`https:` or `mailto:`) by which owners of crawled domains can contact the operator; sent with every
        /// request.
        pub contact: String,
        /// Maximum number of concurrent visits, each of which opens up to four files.
        pub concurrency: usize = 64,
        /// Minimum rate of visits per second after a restart or an outage, used if twice the steady rate is lower.
        pub least_rate: f64 = 1.0,
        /// Seconds for which unused permission to start visits accumulates.
        pub burst_seconds: u64 = 30,
    }
}

/// `443`, a list such as `[443, 8443]`, or `"any"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowPorts {
    List(Vec<u16>),
    One(u16),
    /// `"any"`; validation rejects any other word.
    Word(String),
}

impl Default for AllowPorts {
    fn default() -> Self {
        Self::List(vec![443])
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegistrationAccess {
    /// Callers with a token.
    #[default]
    Token,
    /// Anyone, as a nomination that a curator must approve.
    Open,
}

/// `[governance]`: admission rules (docs/model.md#admission).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GovernanceConfig {
    /// Who may register domains and cards.
    pub registration: RegistrationAccess,
    /// Domains whose cards are approved without proof.
    pub allow_domains: Vec<DomainPattern>,
    /// Domains that cannot be registered and whose agents are on hold.
    pub deny_domains: Vec<DomainPattern>,
    /// Approves everything that is not denied. For demonstrations and closed networks.
    pub approve_all: bool,
    /// Whether the accounts that registered an agent and its owner are excluded from deciding its reviews.
    pub four_eyes: bool,
    /// Days after which an approval ends unless the content is approved again. Unset: never.
    pub recertify_after: Option<u16>,
    /// How many accounts must approve.
    pub deciders: DecidersConfig,
}

section! {
    /// `[governance.deciders]`: how many accounts must approve, by the class of the change.
    pub struct DecidersConfig {
        /// For a first card.
        pub first: u8 = 1,
        /// For a change of class low, or none.
        pub low: u8 = 1,
        /// For a change of class high.
        pub high: u8 = 1,
        /// For a critical change.
        pub critical: u8 = 1,
    }
}

impl GovernanceConfig {
    /// The number of accounts that must approve a change of this class, or a first card. A report needs one: its
    /// subject was approved before.
    pub fn approvals_needed(&self, kind: ReviewKind, class: Option<ChangeClass>) -> u32 {
        let needed = match (kind, class) {
            (ReviewKind::Report, _) => 1,
            // A recertification approves all of the served content again, like a first card.
            (_, None) => self.deciders.first,
            (_, Some(ChangeClass::None | ChangeClass::Low)) => self.deciders.low,
            (_, Some(ChangeClass::High)) => self.deciders.high,
            (_, Some(ChangeClass::Critical)) => self.deciders.critical,
        };
        u32::from(needed.max(1))
    }

    /// The term of an approval in microseconds; `None` if approvals do not end.
    pub fn approval_term(&self) -> Option<i64> {
        self.recertify_after.map(|days| i64::from(days) * DAY)
    }

    /// Whether an account may approve a change of this class, or a first card, that it has registered itself.
    pub fn registrant_may_approve(&self, class: Option<ChangeClass>) -> bool {
        !self.four_eyes && self.approvals_needed(ReviewKind::Admission, class) == 1
    }
}

/// Minimum term of an approval in days: one more than the advance notice of its end.
pub const MIN_TERM_DAYS: u16 = 15;
pub const MAX_TERM_DAYS: u16 = 3650;

pub const MAX_DECIDERS: u8 = 9;

section! {
    /// `[search]`: the full-text index, and semantic search.
    pub struct SearchConfig {
        /// Megabytes the index writer may hold before it flushes.
        pub writer_megabytes: usize = 64,
        /// Megabytes of the cache of search results.
        pub cache_megabytes: u64 = 64,
        /// The installed sentence encoder to use, by its folder or identifier. Empty: the current one; `off`: none.
        pub model: String,
        /// Milliseconds that a search waits for the vector of its query, before it falls back to full text only.
        pub embed_timeout: u64 = 50,
        /// Maximum number of agents embedded per second, to leave processor time for other work; 0 for no limit.
        pub embed_rate: u32 = 100,
    }
}

section! {
    /// `[limits]`: maximum numbers, sizes and times (docs/model.md#limits). The limits of an account do not apply to
    /// admins.
    pub struct LimitsConfig {
        /// Agents of one domain.
        pub agents_per_domain: usize = 50,
        /// Agents of one domain that are reserved for agents covered by a proof of the domain; at most half of
        /// `agents_per_domain`.
        pub agents_reserved: usize = 25,
        /// Sources registered by one account, without catalogs.
        pub sources_per_account: u64 = 1000,
        /// Networks recorded per source from which anonymous clients have nominated it.
        pub networks_per_source: usize = 50,
        /// Domains registered by one account.
        pub domains_per_account: u64 = 100,
        /// Card sources nominated from one network without a token that await their first approval.
        pub pending_nominations: u64 = 20,
        /// Anonymous writes per minute and address.
        pub anonymous_writes_per_minute: u32 = 30,
        /// Concurrent connections; fewer if the process may not open enough files.
        pub connections: usize = 10_000,
        /// Concurrent connections from one address, except `trusted_proxies`.
        pub connections_per_address: usize = 256,
        /// Seconds from the first byte of a request to the first byte of its response.
        pub request_seconds: u64 = 120,
        /// Seconds that the body of a request may take to arrive.
        pub body_seconds: u64 = 30,
        /// Seconds without progress after which a client that does not read its response is disconnected.
        pub write_seconds: u64 = 30,
        /// Megabytes of responses that one address has not read yet. Responses of up to 64 KiB do not count, and an
        /// address without unread responses may read a response of any size.
        pub unread_megabytes_per_address: u64 = 32,
        /// Maximum size of a JSON request in bytes.
        pub json_bytes: usize = 64 * 1024,
        /// Maximum length of `q`, in characters.
        pub query_chars: usize = 512,
        /// Filter values per search.
        pub filters: usize = 20,
        /// Facets per search.
        pub facets: usize = 12,
        /// Concurrent event streams and task streams of callers with an account, at most a tenth of them for one
        /// account; callers without an account have separate slots, half as many.
        pub streams: usize = 100,
        /// Megabytes of the cache of card bytes; the cache of rendered agents has half as many in addition.
        pub card_cache_megabytes: u64 = 128,
    }
}

section! {
    pub struct LogConfig {
        /// Log filter, such as `info,access=debug` or `a2a_registry=debug,audit=info,warn`.
        pub filter: String = "info,actix_server=warn,rmcp=error,tantivy=warn,sqlx=warn,sea_orm_migration=warn".into(),
        /// `text` for people, `json` for machines.
        pub format: LogFormat = LogFormat::Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    /// One JSON object per line.
    Json,
}
