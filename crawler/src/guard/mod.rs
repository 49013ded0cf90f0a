//! SSRF guard: decides which targets may be fetched at all. Pure, so that a registration can be checked without
//! sending a packet; the fetcher applies it again to every redirect, resolved address and connected peer.

mod connect_override;
mod error;
mod host_name;
mod special_addresses;
#[cfg(test)]
mod tests;
mod url_normalization;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

pub use connect_override::ConnectOverride;
pub use error::GuardError;
pub use special_addresses::{SPECIAL_V4, SPECIAL_V6, SpecialAddressBlock};
pub use url_normalization::normalize_url;

use host_name::HostNamePattern;

/// Maximum length in bytes of a URL that is fetched.
pub const MAX_URL_BYTES: usize = 2048;

/// The operator's exceptions and prohibitions. By default only public https hosts on port 443 are fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardConfig {
    /// Special networks that may be fetched, and whose addresses may be given as IP literals. Only the named network
    /// is allowed: `127.0.0.0/8` does not allow `::ffff:127.0.0.0/104`.
    pub allow_networks: Vec<IpNet>,
    /// Special names that may be fetched, if their addresses may be: `intranet`, `*.corp.internal` or `*`.
    pub allow_names: Vec<String>,
    /// Whether plain http may be fetched.
    pub allow_http: bool,
    /// Ports that may be fetched.
    pub allow_ports: AllowedPorts,
    /// Networks that are never fetched, whatever else is allowed.
    pub deny_networks: Vec<IpNet>,
    /// Names that are reached at one address and port each. An override admits nothing else.
    pub connect: Vec<ConnectOverride>,
}

impl GuardConfig {
    /// Permits every network, name and port: for requests that a user makes from a machine of their own.
    pub fn unrestricted() -> Self {
        Self {
            allow_networks: vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())],
            allow_names: vec!["*".to_owned()],
            allow_http: true,
            allow_ports: AllowedPorts::Any,
            deny_networks: Vec::new(),
            connect: Vec::new(),
        }
    }
}

/// Ports that may be fetched. Port 0 never may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedPorts {
    /// Every port but 0.
    Any,
    /// These ports and no others.
    List(Vec<u16>),
}

impl Default for AllowedPorts {
    fn default() -> Self {
        Self::List(vec![443])
    }
}

/// A domain in normal form, as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Lower-case A-label host, with `:port` unless it is the scheme's default.
    pub name: String,
    /// Scheme, host and port, with the path `/`.
    pub origin: Url,
}

impl Domain {
    /// The domain of a URL that passed [`SsrfGuard::check_url`].
    pub fn from_url(url: &Url) -> Self {
        let mut origin = url.clone();
        origin.set_path("/");
        origin.set_query(None);
        origin.set_fragment(None);
        let host = url.host_str().unwrap_or_default();
        let name = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Self { name, origin }
    }
}

/// Checks targets against a [`GuardConfig`], which can be replaced while requests are under way: each check is by the
/// newest one.
#[derive(Debug)]
pub struct SsrfGuard(RwLock<Arc<GuardRules>>);

#[derive(Debug)]
struct GuardRules {
    config: GuardConfig,
    allow_names: Vec<HostNamePattern>,
}

impl GuardRules {
    fn new(config: GuardConfig) -> Self {
        let allow_names = config
            .allow_names
            .iter()
            .map(|p| HostNamePattern::parse(p))
            .collect();
        Self {
            config,
            allow_names,
        }
    }
}

impl SsrfGuard {
    /// A guard with the exceptions of `config`.
    pub fn new(config: GuardConfig) -> Self {
        Self(RwLock::new(Arc::new(GuardRules::new(config))))
    }

    /// Replaces the exceptions and prohibitions.
    pub fn replace_config(&self, config: GuardConfig) {
        let rules = Arc::new(GuardRules::new(config));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    fn rules(&self) -> Arc<GuardRules> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&rules)
    }

    /// Parses a URL once, by the WHATWG standard, and checks everything that needs no DNS: scheme, port, credentials,
    /// fragment, IP literals in every spelling, syntax and meaning of the name. The result is in normal form.
    ///
    /// Text that parsers are known to read differently (control characters, spaces, backslashes, percent escapes in
    /// the host, a missing `//`) is rejected rather than interpreted.
    pub fn check_url(&self, text: &str) -> Result<Url, GuardError> {
        reject_ambiguous_url(text)?;
        let url = Url::parse(text).map_err(|error| not_a_url_error(error.to_string()))?;
        self.check_parsed_url(url)
    }

    /// Checks an already parsed URL, such as the target of a redirect, by the same rules.
    pub fn check_parsed_url(&self, mut url: Url) -> Result<Url, GuardError> {
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(GuardError::UrlTooLong {
                bytes: url.as_str().len(),
            });
        }
        if !matches!(url.scheme(), "https" | "http") {
            return Err(GuardError::Scheme {
                found: url.scheme().chars().take(20).collect(),
            });
        }
        if let Some(without_dot) = url
            .host_str()
            .and_then(|host| host.strip_suffix('.'))
            .map(str::to_owned)
        {
            url.set_host(Some(&without_dot))
                .map_err(|error| not_a_url_error(error.to_string()))?;
        }
        GuardError::from_reasons(self.url_errors(&url)).map_or(Ok(url), Err)
    }

    /// Everything that speaks against a URL, so that an operator sees at once which settings it takes.
    fn url_errors(&self, url: &Url) -> Vec<GuardError> {
        let mut reasons = Vec::new();
        if url.scheme() == "http" && !self.rules().config.allow_http {
            reasons.push(GuardError::Scheme {
                found: "http".to_owned(),
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            reasons.push(GuardError::UserInfo);
        }
        if url.fragment().is_some() {
            reasons.push(GuardError::Fragment);
        }
        let host = match url.host() {
            Some(Host::Domain(host)) => self.check_host_name(host),
            Some(Host::Ipv4(address)) => self.check_ip_literal(address.into()),
            Some(Host::Ipv6(address)) => self.check_ip_literal(address.into()),
            None => Err(not_a_url_error("it has no host".to_owned())),
        };
        reasons.extend(host.err());
        match url.port_or_known_default() {
            Some(port) if self.is_port_allowed(port) => {}
            port => reasons.push(GuardError::Port {
                port: port.unwrap_or_default(),
            }),
        }
        if let Some(host) = url.domain()
            && self.connect_override(host).is_some()
            && (url.scheme() != "https" || url.port().is_some())
        {
            reasons.push(GuardError::ConnectOverride {
                host: host.to_owned(),
            });
        }
        reasons
    }

    /// Parses and checks a bare `host` or `host:port` from a registration. A bare domain means https.
    pub fn check_domain(&self, text: &str) -> Result<Domain, GuardError> {
        let not_a_domain = |reason: &str| GuardError::NotADomain {
            reason: reason.to_owned(),
        };
        if text.is_empty() {
            return Err(not_a_domain("it is empty"));
        }
        if text.contains(['/', '?', '#', '@', '\\']) {
            return Err(not_a_domain(
                "it has more than a host and a port (register a whole URL as card_url)",
            ));
        }
        let url = self
            .check_url(&format!("https://{text}/"))
            .map_err(|error| match error {
                GuardError::NotAUrl { reason } => GuardError::NotADomain { reason },
                other => other,
            })?;
        Ok(Domain::from_url(&url))
    }

    /// Where connections to this host go by an override.
    pub(crate) fn connect_override(&self, host: &str) -> Option<SocketAddr> {
        let rules = self.rules();
        let mut overrides = rules.config.connect.iter();
        let one = overrides.find(|one| one.host == host)?;
        Some(one.address)
    }

    /// Checks the peer of a connection that was made for a URL: the address of an override for that URL's name only,
    /// and any other by [`Self::check_address`].
    pub(crate) fn check_peer(&self, url: &Url, peer: SocketAddr) -> Result<(), GuardError> {
        let address = url.domain().and_then(|host| self.connect_override(host));
        match address {
            Some(address) if address == peer => self.check_not_denied(peer.ip()),
            _ => self.check_address(peer.ip()),
        }
    }

    pub(crate) fn check_not_denied(&self, address: IpAddr) -> Result<(), GuardError> {
        let rules = self.rules();
        let mut denied = rules.config.deny_networks.iter();
        match denied.any(|net| net.contains(&address)) {
            true => Err(GuardError::DeniedNetwork { address }),
            false => Ok(()),
        }
    }

    /// Checks an address to which a name resolved, or which a connection reached.
    pub fn check_address(&self, address: IpAddr) -> Result<(), GuardError> {
        self.check_not_denied(address)?;
        if self.is_network_allowed(address) {
            return Ok(());
        }
        match special_addresses::find_special_address_block(address) {
            Some(block) => Err(GuardError::Address { address, block }),
            None => Ok(()),
        }
    }

    /// Whether two URLs have the same registrable domain or IP literal. Redirects stay within such a site.
    pub fn is_same_site(one: &Url, other: &Url) -> bool {
        match (one.host(), other.host()) {
            (Some(Host::Domain(one)), Some(Host::Domain(other))) => {
                host_name::is_same_registrable_domain(one, other)
            }
            (Some(one), Some(other)) => one == other,
            _ => false,
        }
    }

    /// The registrable domain of a host, by the public suffix list; the host itself if it has none.
    pub fn registrable_domain(host: &str) -> &str {
        psl::domain_str(host).unwrap_or(host)
    }

    fn check_host_name(&self, host: &str) -> Result<(), GuardError> {
        host_name::check_host_syntax(host)?;
        let rules = self.rules();
        if rules
            .allow_names
            .iter()
            .any(|pattern| pattern.matches(host))
        {
            return Ok(());
        }
        host_name::check_public_host(host)
    }

    fn check_ip_literal(&self, address: IpAddr) -> Result<(), GuardError> {
        if self.is_network_allowed(address) {
            self.check_address(address)
        } else {
            Err(GuardError::IpLiteral { address })
        }
    }

    pub(crate) fn is_network_allowed(&self, address: IpAddr) -> bool {
        let rules = self.rules();
        let mut allowed = rules.config.allow_networks.iter();
        allowed.any(|net| net.contains(&address))
    }

    fn is_port_allowed(&self, port: u16) -> bool {
        port != 0
            && match &self.rules().config.allow_ports {
                AllowedPorts::Any => true,
                AllowedPorts::List(ports) => ports.contains(&port),
            }
    }
}

/// Rejects text that URL parsers read differently.
fn reject_ambiguous_url(text: &str) -> Result<(), GuardError> {
    if text.len() > MAX_URL_BYTES {
        return Err(GuardError::UrlTooLong { bytes: text.len() });
    }
    if text.chars().any(|c| c <= ' ' || c == '\u{7f}') {
        return Err(not_a_url_error(
            "it contains spaces or control characters".to_owned(),
        ));
    }
    if text.contains('\\') {
        return Err(not_a_url_error("it contains a backslash".to_owned()));
    }
    // A forbidden scheme is reported first, whatever else is wrong with the text.
    if let Ok(url) = Url::parse(text)
        && !matches!(url.scheme(), "https" | "http")
    {
        return Err(GuardError::Scheme {
            found: url.scheme().chars().take(20).collect(),
        });
    }
    let Some((_, rest)) = text.split_once("://") else {
        return Err(not_a_url_error(
            "it does not begin with https://".to_owned(),
        ));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(not_a_url_error("it has no host".to_owned()));
    }
    if authority.contains('@') {
        return Err(GuardError::UserInfo);
    }
    if authority.contains('%') {
        return Err(not_a_url_error(
            "its host contains percent escapes".to_owned(),
        ));
    }
    Ok(())
}

fn not_a_url_error(reason: String) -> GuardError {
    GuardError::NotAUrl { reason }
}
