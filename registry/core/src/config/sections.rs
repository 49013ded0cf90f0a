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
    A2aConfig, ArdConfig, DatabaseUrl, EmbeddingConfig, FederationConfig, IdentityConfig,
    MailConfig, McpConfig, SecretsConfig, TracingConfig, WebhooksConfig,
};

section! {
    /// The whole configuration. Each section is a TOML table of that name; each key can also be set as
    /// `A2A_REGISTRY__SECTION__KEY` in the environment.
    pub struct Config {
        /// Listening addresses, native TLS and the public URL.
        pub server: ServerConfig,
        /// The database and the data folder.
        pub store: StoreConfig,
        /// The key that encrypts credentials of sources, and URLs and keys of hooks.
        pub secrets: SecretsConfig,
        /// Network rules, identity and rate of the crawler.
        pub crawler: CrawlerConfig,
        /// Who may register, what is admitted, and how many accounts must approve.
        pub governance: GovernanceConfig,
        /// Identity providers (OpenID Connect), and the network rules for requests to them.
        pub identity: IdentityConfig,
        /// The full-text index, and semantic search.
        pub search: SearchConfig,
        /// Other registries that ARD searches query, and the network rules for these requests.
        pub federation: FederationConfig,
        /// Deliveries to hooks, and the network rules for them.
        pub webhooks: WebhooksConfig,
        /// The SMTP server for notices by mail.
        pub mail: MailConfig,
        /// A sentence encoder behind an HTTP endpoint, and the network rules for it.
        pub embedding: EmbeddingConfig,
        /// The registry as a server of the Model Context Protocol.
        pub mcp: McpConfig,
        /// Discovery by ARD.
        pub ard: ArdConfig,
        /// The registry as an A2A agent: its card, the key that signs it, and the tasks it keeps.
        pub a2a: A2aConfig,
        /// Maximum numbers, sizes and times. The limits of an account do not apply to admins.
        pub limits: LimitsConfig,
        /// Log lines on standard error.
        pub log: LogConfig,
        /// Traces over OTLP, off unless an endpoint is set.
        pub tracing: TracingConfig,
    }
}

section! {
    /// `[server]`: listening addresses and the public URL.
    pub struct ServerConfig {
        /// Address and port to listen on; port 0 takes a free one.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Address and port on which only `/metrics` is served, in plain HTTP. If absent, `listen` serves it to every
        /// client.
        pub metrics_listen: Option<SocketAddr>,
        /// The URL under which clients reach the registry. Empty: `http://<listen>`.
        pub public_url: String,
        /// Whom to ask for an account, as a URL (`mailto:` or `https:`). The sign-in page shows it.
        pub contact: String,
        /// A file with the certificate chain as PEM, the server's own certificate first. HTTPS (HTTP/1.1 with TLS 1.2
        /// or 1.3) is served on `listen` if this and `tls_key` are set. SIGHUP reads both files again.
        pub tls_cert: Option<PathBuf>,
        /// A file with the private key of the certificate as PEM.
        pub tls_key: Option<PathBuf>,
        /// Addresses and networks of proxies whose `X-Forwarded-For` is trusted, and which are exempt from
        /// `limits.connections_per_address`.
        #[serde(deserialize_with = "parse_networks")]
        pub trusted_proxies: Vec<IpNet>,
        /// Seconds that requests in progress have to finish at shutdown. From 0 to 3600.
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
        /// SQLite's `synchronous`: "normal" is safe against a crash, "full" also against a power failure.
        pub synchronous: SqliteSynchronousMode = SqliteSynchronousMode::Normal,
        /// Page cache of SQLite in megabytes, for all connections together. From 9 to 65536.
        pub sqlite_cache_megabytes: u64 = 36,
        /// Seconds without a response from the database after which search and cards answer 503. From 1 to 86400.
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
        /// Networks that may be reached although they are private or loopback, such as `10.0.0.0/8`.
        pub allow_networks: Vec<IpNet>,
        /// Host names that may be reached although they are local, reserved or without a known top-level domain, such
        /// as `*.corp.internal`.
        pub allow_names: Vec<String>,
        /// Networks that are never reached, even if another setting allows them.
        pub deny_networks: Vec<IpNet>,
        /// Whether plain `http:` is allowed.
        pub allow_http: bool,
        /// Ports that are allowed: one such as `443`, a list such as `[443, 8443]`, or `"any"`.
        pub allow_ports: AllowPorts,
        /// Host names with a fixed address and port, as `agents.example.com=10.0.0.7:8443`. Requests for `https:` URLs
        /// of exactly this name without a port go there; the certificate must be for the name. At most 100.
        pub connect: Vec<String>,
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
        /// Hosts that may serve the key sets of any domain's signatures, such as `keys.example.com`; lower-case.
        pub key_hosts: Vec<String>,
        /// Hosts to whose token endpoints the client secret of any source may be sent, such as `login.example.com`;
        /// lower-case. The endpoints on a source's own registrable domain need no entry.
        pub token_hosts: Vec<String>,
        /// A URL (`https:` or `mailto:`) by which owners of crawled domains can contact the operator; sent with every
        /// request.
        pub contact: String,
        /// Maximum number of concurrent visits, each of which opens up to four files. From 1 to 1024.
        pub concurrency: usize = 64,
        /// Minimum rate of visits per second after a restart or an outage, used if twice the steady rate is lower.
        /// From 0.001 to 1000000.
        pub least_rate: f64 = 1.0,
        /// Seconds of unused crawl rate that a later burst of visits may use. From 1 to 3600.
        pub burst_seconds: u64 = 30,
        /// Whether the registry checks once a day that agents answer: "off", or "vouched" for agents whose endpoint is
        /// on a host that a proof of their own domain covers, or that an admin has vouched for with `domain vouch
        /// --endpoints`. The check asks for a task that does not exist.
        pub check_endpoints: CheckEndpoints,
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckEndpoints {
    #[default]
    Off,
    Vouched,
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

section! {
    /// `[governance]`: admission rules (docs/govern/policies.md#admit-cards-without-a-review).
    pub struct GovernanceConfig {
        /// Who may register domains and cards: "token" for callers with a token, "open" for anyone, as a nomination
        /// that a curator must approve.
        pub registration: RegistrationAccess,
        /// Domains whose cards are approved without proof, such as `example.com` or `*.example.com`.
        pub allow_domains: Vec<DomainPattern>,
        /// Domains that cannot be registered and whose agents are on hold.
        pub deny_domains: Vec<DomainPattern>,
        /// Approves everything that is not denied. For demonstrations and closed networks.
        pub approve_all: bool,
        /// Whether the accounts that registered an agent and its owner are excluded from deciding its reviews.
        pub four_eyes: bool,
        /// Days after which an approval ends unless the content is approved again. Unset: never. From 15 to 3650.
        pub recertify_after: Option<u16>,
        /// Whether a policy set is accepted only with the token of its preview.
        pub preview_policies: bool,
        /// How many accounts must approve, by the class of the change.
        pub deciders: DecidersConfig,
    }
}

section! {
    /// `[governance.deciders]`: how many accounts must approve, by the class of the change.
    pub struct DecidersConfig {
        /// Accounts that must approve a first card. From 1 to 9.
        pub first: u8 = 1,
        /// Accounts that must approve a change of class low or none. From 1 to 9.
        pub low: u8 = 1,
        /// Accounts that must approve a change of class high. From 1 to 9.
        pub high: u8 = 1,
        /// Accounts that must approve a critical change. From 1 to 9.
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
        /// Megabytes the index writer may hold before it flushes. From 16 to 4096.
        pub writer_megabytes: usize = 64,
        /// Megabytes of the cache of search results. From 0 to 65536.
        pub cache_megabytes: u64 = 64,
        /// The sentence encoder to use: "off" for none, "built-in" for the one in the program, or the folder or
        /// identifier of an installed one. Empty: the endpoint of `[embedding]` if there is one, else the current
        /// installed one, else the built-in one.
        pub model: String,
        /// Languages that the model knows, as codes such as `en`, or `*` for all; queries in others are full text only.
        /// Empty: what the vocabulary of an installed model shows, and all for an endpoint. At most 100.
        pub model_languages: Vec<String>,
        /// Milliseconds that a search waits for the vector of its query, before it falls back to full text only.
        /// From 1 to 10000.
        pub embed_timeout: u64 = 50,
        /// Maximum number of agents embedded per second, to leave processor time for other work; 0 for no limit.
        /// From 0 to 1000000.
        pub embed_rate: u32 = 100,
    }
}

section! {
    /// `[limits]`: maximum numbers, sizes and times (docs/reference/configuration.md#limits). The limits of an account
    /// do not apply to admins.
    pub struct LimitsConfig {
        /// Agents of one domain. From 0 to 1000000.
        pub agents_per_domain: usize = 50,
        /// Agents of one domain that are reserved for agents covered by a proof of the domain; at most half of
        /// `agents_per_domain`. From 0 to 1000000.
        pub agents_reserved: usize = 25,
        /// Sources registered by one account, without catalogs. From 0 to 1000000000.
        pub sources_per_account: u64 = 1000,
        /// Networks recorded per source from which anonymous clients have nominated it. From 0 to 1000000.
        pub networks_per_source: usize = 50,
        /// Domains registered by one account. From 0 to 1000000000.
        pub domains_per_account: u64 = 100,
        /// Card sources nominated from one network without a token that await their first approval. From 0 to 1000000.
        pub pending_nominations: u64 = 20,
        /// Anonymous writes per minute and address. From 1 to 1000000.
        pub anonymous_writes_per_minute: u32 = 30,
        /// Concurrent connections; fewer if the process may not open enough files. From 1 to 1000000.
        pub connections: usize = 10_000,
        /// Concurrent connections from one address, except `server.trusted_proxies`. From 1 to 1000000.
        pub connections_per_address: usize = 256,
        /// Seconds from the first byte of a request to the first byte of its response; more than `body_seconds`.
        /// From 1 to 3600.
        pub request_seconds: u64 = 120,
        /// Seconds that the body of a request may take to arrive. From 1 to 3600.
        pub body_seconds: u64 = 30,
        /// Seconds without progress after which a client that does not read its response is disconnected.
        /// From 1 to 3600.
        pub write_seconds: u64 = 30,
        /// Megabytes of responses that one address has not read yet. Responses of up to 64 KiB do not count, and an
        /// address without unread responses may read a response of any size. From 0 to 65536.
        pub unread_megabytes_per_address: u64 = 32,
        /// Maximum size of a JSON request in bytes. From 1024 to 1048576.
        pub json_bytes: usize = 64 * 1024,
        /// Maximum length of `q`, in characters. From 1 to 65536.
        pub query_chars: usize = 512,
        /// Filter values per search. From 0 to 10000.
        pub filters: usize = 20,
        /// Facets per search. From 0 to 10000.
        pub facets: usize = 12,
        /// Concurrent event streams and task streams of callers with an account, at most a tenth of them for one
        /// account; callers without an account have separate slots, half as many. From 0 to 1000000.
        pub streams: usize = 100,
        /// Megabytes of the cache of card bytes; the cache of rendered agents has half as many in addition.
        /// From 0 to 65536.
        pub card_cache_megabytes: u64 = 128,
    }
}

section! {
    pub struct LogConfig {
        /// Log filter, such as `info,access=debug` or `a2a_registry=debug,audit=info,warn`. The variable `RUST_LOG`
        /// overrides it.
        pub filter: String = "info,actix_server=warn,rmcp=error,tantivy=warn,sqlx=warn,sea_orm_migration=warn".into(),
        /// "text" for people, "json" for machines: one JSON object per line.
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
