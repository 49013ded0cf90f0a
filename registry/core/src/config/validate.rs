//! Validates values that have the right type but are not allowed, and derives settings from them.

use std::collections::BTreeSet;
use std::path::Path;

use a2a_crawler::guard::ConnectOverride;
use a2a_registry_embed::ModelLanguages;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use url::{Host, Url};

use crate::config::{
    AllowPorts, Config, CrawlerConfig, DatabaseUrl, DecidersConfig, LimitsConfig, MAX_DECIDERS,
    MAX_TERM_DAYS, MIN_TERM_DAYS, SearchConfig, ServerConfig, StoreConfig,
};

/// Maximum number of languages of a model.
const MAX_MODEL_LANGUAGES: usize = 100;
/// Maximum number of names whose connections the crawler overrides.
const MAX_CONNECT_OVERRIDES: usize = 100;

/// All errors in a configuration, one sentence each.
pub fn validate_config(config: &Config) -> Vec<String> {
    let mut errors = Vec::new();
    let mut push_error = |text: String| errors.push(text);
    check_server_config(&config.server, &mut push_error);
    check_crawler_config(&config.crawler, &mut push_error);
    check_deciders_config(&config.governance.deciders, &mut push_error);
    if let Some(days) = config.governance.recertify_after
        && !(MIN_TERM_DAYS..=MAX_TERM_DAYS).contains(&days)
    {
        push_error(format!(
            "governance.recertify_after must be between {MIN_TERM_DAYS} and {MAX_TERM_DAYS} days"
        ));
    }
    check_search_config(&config.search, &mut push_error);
    config
        .embedding
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    config
        .identity
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    config
        .federation
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    config
        .webhooks
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    config
        .mail
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    config
        .ard
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    config
        .a2a
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    check_limits_config(&config.limits, &mut push_error);
    validate_log_filter(&config.log.filter)
        .into_iter()
        .for_each(&mut push_error);
    check_store_config(&config.store, &mut push_error);
    config
        .tracing
        .validation_errors()
        .into_iter()
        .for_each(&mut push_error);
    errors
}

fn check_store_config(store: &StoreConfig, mut push_error: impl FnMut(String)) {
    if !(9..=65_536).contains(&store.sqlite_cache_megabytes) {
        push_error("store.sqlite_cache_megabytes must be between 9 and 65536".into());
    }
    if !(1..=86_400).contains(&store.stale_limit) {
        push_error("store.stale_limit must be between 1 and 86400 seconds".into());
    }
    if !store.database.is_empty() && store.database_file.is_some() {
        push_error(
            "store.database and store.database_file are alternatives: set only one of them".into(),
        );
    }
    if store.database.has_placeholder() {
        push_error(
            "store.database contains the placeholder of a printed configuration; set the URL itself, or \
             store.database_file"
                .into(),
        );
    }
    let has_valid_scheme = |url: &DatabaseUrl| {
        let mut schemes = ["sqlite:", "postgres://", "postgresql://"].iter();
        url.is_empty() || schemes.any(|scheme| url.reveal().starts_with(scheme))
    };
    for (key, url) in [
        ("database", &store.database),
        ("database_file", &store.database_read),
    ] {
        if !has_valid_scheme(url) && !url.has_placeholder() {
            push_error(format!(
                "store.{key} must begin with sqlite: or postgres://"
            ));
        }
    }
}

fn check_server_config(server: &ServerConfig, mut push_error: impl FnMut(String)) {
    if !server.public_url.is_empty() {
        let url = Url::parse(&server.public_url).ok();
        match url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            None => push_error("server.public_url must be an http or https URL, such as https://registry.example.com".into()),
            Some(url) if url[url::Position::BeforePath..] != *"/" || has_url_credentials(&url) => push_error(
                "server.public_url must be only a scheme and a host, such as https://registry.example.com: the \
                 registry is served at the root of its host, not under a path"
                    .into(),
            ),
            Some(url) if has_unspecified_host(&url) => push_error(
                "server.public_url must name the host that clients use: 0.0.0.0 and [::] mean every address of this \
                 machine and cannot be used in links"
                    .into(),
            ),
            Some(_) => {}
        }
    } else if server.listen.ip().to_canonical().is_unspecified() {
        push_error(format!(
            "server.public_url must be set to the URL that clients use, because server.listen ({}) means every \
             address of this machine and cannot be used in links",
            server.listen
        ));
    }
    if !server.contact.is_empty() && !is_contact_url(&server.contact) {
        push_error(
            "server.contact must be a mailto: or https: URL, such as mailto:agents@example.com"
                .into(),
        );
    }
    if server.drain_seconds > 3600 {
        push_error("server.drain_seconds must be between 0 and 3600".into());
    }
    if server.tls_cert.is_some() != server.tls_key.is_some() {
        push_error(
            "server.tls_cert and server.tls_key belong together: set both or neither".into(),
        );
    }
}

fn has_unspecified_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_unspecified(),
        Some(Host::Domain(_)) | None => false,
    }
}

fn has_url_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Whether a page may link to this text as a contact.
fn is_contact_url(text: &str) -> bool {
    text.len() <= 500
        && Url::parse(text).is_ok_and(|url| match url.scheme() {
            "mailto" => !url.path().is_empty(),
            scheme => scheme == "https",
        })
}

fn check_connect_overrides(texts: &[String], mut push_error: impl FnMut(String)) {
    if texts.len() > MAX_CONNECT_OVERRIDES {
        push_error(format!(
            "crawler.connect must have at most {MAX_CONNECT_OVERRIDES} entries"
        ));
    }
    let mut hosts = BTreeSet::new();
    for text in texts {
        match text.parse::<ConnectOverride>() {
            Err(reason) => push_error(format!(
                "crawler.connect must have entries such as agents.example.com=10.0.0.7:8443, not {text}: {reason}"
            )),
            Ok(one) if !hosts.insert(one.host.clone()) => {
                push_error(format!("crawler.connect must have {} only once", one.host))
            }
            Ok(_) => {}
        }
    }
}

fn check_deciders_config(deciders: &DecidersConfig, mut push_error: impl FnMut(String)) {
    for (class, needed) in [
        ("first", deciders.first),
        ("low", deciders.low),
        ("high", deciders.high),
        ("critical", deciders.critical),
    ] {
        if !(1..=MAX_DECIDERS).contains(&needed) {
            push_error(format!(
                "governance.deciders.{class} must be between 1 and {MAX_DECIDERS}"
            ));
        }
    }
}

fn check_crawler_config(crawler: &CrawlerConfig, mut push_error: impl FnMut(String)) {
    allow_ports_error("crawler", &crawler.allow_ports)
        .into_iter()
        .for_each(&mut push_error);
    check_connect_overrides(&crawler.connect, &mut push_error);
    if !(1..=1024).contains(&crawler.concurrency) {
        push_error("crawler.concurrency must be between 1 and 1024".into());
    }
    for (key, example, hosts) in [
        ("key_hosts", "keys.example.com", &crawler.key_hosts),
        ("token_hosts", "login.example.com", &crawler.token_hosts),
    ] {
        for host in hosts {
            let named = url::Host::parse(host).is_ok_and(|read| read.to_string() == *host);
            if !named || !host.contains('.') {
                push_error(format!(
                    "crawler.{key} must be lower-case host names such as \"{example}\", not \"{host}\""
                ));
            }
        }
    }
    if !(0.001..=1_000_000.0).contains(&crawler.least_rate) {
        push_error("crawler.least_rate must be between 0.001 and 1000000".into());
    }
    if !(1..=3600).contains(&crawler.burst_seconds) {
        push_error("crawler.burst_seconds must be between 1 and 3600".into());
    }
}

fn check_search_config(search: &SearchConfig, mut push_error: impl FnMut(String)) {
    if !(16..=4096).contains(&search.writer_megabytes) {
        push_error("search.writer_megabytes must be between 16 and 4096".into());
    }
    if search.cache_megabytes > 65_536 {
        push_error("search.cache_megabytes must be between 0 and 65536".into());
    }
    if search.embed_rate > 1_000_000 {
        push_error("search.embed_rate must be between 0 and 1000000".into());
    }
    if search.model.contains(['/', '\\']) || search.model.starts_with('.') {
        push_error(
            "search.model must be \"off\", \"built-in\", the name of one folder, or an identifier"
                .into(),
        );
    }
    let languages = &search.model_languages;
    if languages.len() > MAX_MODEL_LANGUAGES
        || !languages.iter().all(|code| ModelLanguages::is_code(code))
    {
        push_error(format!(
            "search.model_languages must be at most {MAX_MODEL_LANGUAGES} codes of two or three lower-case letters, or \"*\""
        ));
    }
    if !(1..=10_000).contains(&search.embed_timeout) {
        push_error("search.embed_timeout must be between 1 and 10000 milliseconds".into());
    }
}

fn check_limits_config(limits: &LimitsConfig, mut push_error: impl FnMut(String)) {
    let ranges = registration_limit_ranges(limits)
        .into_iter()
        .chain(request_limit_ranges(limits));
    for (key, value, (least, most)) in ranges {
        if !(least..=most).contains(&value) {
            push_error(format!("limits.{key} must be between {least} and {most}"));
        }
    }
    if limits.request_seconds <= limits.body_seconds {
        push_error(
            "limits.request_seconds must be more than limits.body_seconds, which it includes"
                .into(),
        );
    }
}

/// A key of `[limits]` with its value, and the least and the greatest permitted one.
type LimitRange = (&'static str, u64, (u64, u64));

fn registration_limit_ranges(limits: &LimitsConfig) -> [LimitRange; 7] {
    const MILLION: (u64, u64) = (0, 1_000_000);
    const BILLION: (u64, u64) = (0, 1_000_000_000);
    let (agents, reserved) = (limits.agents_per_domain, limits.agents_reserved);
    let networks = limits.networks_per_source as u64;
    let writes = u64::from(limits.anonymous_writes_per_minute);
    [
        ("agents_per_domain", agents as u64, MILLION),
        ("agents_reserved", reserved as u64, MILLION),
        ("sources_per_account", limits.sources_per_account, BILLION),
        ("networks_per_source", networks, MILLION),
        ("domains_per_account", limits.domains_per_account, BILLION),
        ("pending_nominations", limits.pending_nominations, MILLION),
        ("anonymous_writes_per_minute", writes, (1, 1_000_000)),
    ]
}

fn request_limit_ranges(limits: &LimitsConfig) -> [LimitRange; 12] {
    const HOUR: (u64, u64) = (1, 3600);
    const MEGABYTES: (u64, u64) = (0, 65_536);
    let each = limits.connections_per_address as u64;
    let unread = limits.unread_megabytes_per_address;
    [
        ("connections", limits.connections as u64, (1, 1_000_000)),
        ("connections_per_address", each, (1, 1_000_000)),
        ("request_seconds", limits.request_seconds, HOUR),
        ("body_seconds", limits.body_seconds, HOUR),
        ("write_seconds", limits.write_seconds, HOUR),
        ("unread_megabytes_per_address", unread, MEGABYTES),
        ("json_bytes", limits.json_bytes as u64, (1024, 1024 * 1024)),
        ("query_chars", limits.query_chars as u64, (1, 65_536)),
        ("filters", limits.filters as u64, (0, 10_000)),
        ("facets", limits.facets as u64, (0, 10_000)),
        ("streams", limits.streams as u64, (0, 1_000_000)),
        (
            "card_cache_megabytes",
            limits.card_cache_megabytes,
            MEGABYTES,
        ),
    ]
}

/// The error in a log filter, if any. The library accepts any word as a module name: a misspelled level would log that
/// module in full and nothing else.
fn validate_log_filter(filter: &str) -> Option<String> {
    let word = filter
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.is_empty() && !directive.contains(['=', '[', ']', '{', '}']))
        .find(|directive| directive.parse::<LevelFilter>().is_err());
    if let Some(word) = word {
        return Some(format!(
            "log.filter: `{word}` is not a level (off, error, warn, info, debug, trace); for a part of the program \
             write `{word}=debug`"
        ));
    }
    let error = EnvFilter::try_new(filter).err()?;
    Some(format!(
        "log.filter must be a filter such as `info`: {error}"
    ))
}

pub fn allow_ports_error(section: &str, ports: &AllowPorts) -> Option<String> {
    match ports {
        AllowPorts::Word(word) if word != "any" => Some(format!(
            "{section}.allow_ports must be a list of ports or \"any\", not \"{word}\""
        )),
        _ => None,
    }
}

impl Config {
    /// The URL under which clients reach the registry, without a trailing slash.
    pub fn public_url(&self) -> String {
        if self.server.public_url.is_empty() {
            let scheme = if self.server.tls_cert.is_some() {
                "https"
            } else {
                "http"
            };
            return format!("{scheme}://{}", self.server.listen);
        }
        self.server.public_url.trim_end_matches('/').to_owned()
    }

    /// The database to open: the configured one, or SQLite in the data folder.
    pub fn database_url(&self) -> String {
        let candidates = [&self.store.database_read, &self.store.database];
        match candidates.into_iter().find(|url| !url.is_empty()) {
            Some(url) => url.reveal().to_owned(),
            None => sqlite_url(&self.store.data_dir.join("registry.sqlite")),
        }
    }

    pub fn index_dir(&self) -> std::path::PathBuf {
        self.store.data_dir.join("index")
    }

    /// A file that exists while the index has to be rebuilt because its files may contain erased cards.
    pub fn erased_cards_marker(&self) -> std::path::PathBuf {
        self.store.data_dir.join("index-has-erased-cards")
    }
}

/// The URL of a SQLite file, which is created if it does not exist. The few characters that would end a path in a URL
/// are escaped.
pub fn sqlite_url(path: &Path) -> String {
    let escaped = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    format!("sqlite:{escaped}?mode=rwc")
}
