//! Reasons why the guard rejects a target.

use std::net::IpAddr;

use super::special_addresses::SpecialAddressBlock;

/// Why a target is not fetched. [`code`](Self::code) is stable; the display form is one sentence that says what to do.
/// It names the block of a rejected address, not the address: owners read it, and only curators may see addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum GuardError {
    /// The text is not an absolute URL, or parsers read it differently.
    #[error(
        "the registry cannot fetch this URL: {reason}; give one like https://agents.example.com/card.json"
    )]
    NotAUrl { reason: String },
    /// The text is not a host or host with port.
    #[error(
        "this is not a domain: {reason}; give a host such as agents.example.com, with :port if it is not 443"
    )]
    NotADomain { reason: String },
    /// The URL is longer than [`MAX_URL_BYTES`](super::MAX_URL_BYTES).
    #[error(
        "the URL is {bytes} bytes long; at most {} are allowed",
        super::MAX_URL_BYTES
    )]
    UrlTooLong { bytes: usize },
    /// The scheme is neither https nor, if allowed, http.
    #[error("the registry does not fetch {found} URLs; serve the card over https{}", http_hint(.found))]
    Scheme { found: String },
    /// A port outside `allow_ports`.
    #[error(
        "the registry does not fetch from port {port}; use 443, or ask the operator to add it to allow_ports"
    )]
    Port { port: u16 },
    /// The URL has a user name or password.
    #[error(
        "the URL has a user name or password; remove the part before the @, because cards are fetched without credentials"
    )]
    UserInfo,
    /// The URL has a fragment.
    #[error("the URL has a #fragment, which is never sent to a server; remove it")]
    Fragment,
    /// An IP address, in any spelling, is given in place of a host name.
    #[error(
        "{address} is an IP address; use a host name, or ask the operator to add the address to allow_networks"
    )]
    IpLiteral { address: IpAddr },
    /// A host name that breaks the rules of DNS names.
    #[error("the host name is malformed: {reason}")]
    BadHost { reason: &'static str },
    /// The name never refers to a public host.
    #[error(
        "{host} is {meaning} and is not reachable from the public network; the operator can admit it with allow_names"
    )]
    SpecialName { host: String, meaning: &'static str },
    /// The name is a public suffix, such as `co.uk` or the name of a hosting platform: anyone may register below it.
    #[error("{host} is a public suffix, below which many parties have names; give a host below it")]
    PublicSuffix { host: String },
    /// The last label is not a known top-level domain.
    #[error(
        "{host} does not end in a known top-level domain; check the spelling, or ask the operator to admit it with allow_names"
    )]
    UnknownSuffix { host: String },
    /// A name with an override of its connections, in a URL to which the override does not apply.
    #[error(
        "the registry reaches {host} by its setting connect, which is for https URLs without a port; give such a URL"
    )]
    ConnectOverride { host: String },
    /// Several reasons at once, at least two.
    #[error("{}", join_reasons(.reasons))]
    Several { reasons: Vec<GuardError> },
    /// An address in a special-purpose block.
    #[error("the host's address lies in {} ({}), from which the registry does not fetch; publish a public address, or ask the operator to add the network to allow_networks", .block.net, .block.purpose)]
    Address {
        /// The address. Not part of the sentence.
        address: IpAddr,
        block: SpecialAddressBlock,
    },
    /// An address in a network that the operator denies.
    #[error("the host's address lies in a network that this registry's operator has denied")]
    DeniedNetwork {
        /// The address. Not part of the sentence.
        address: IpAddr,
    },
    /// An address of the registry's own machine.
    #[error(
        "the host's address is this registry's own; if the agent runs on the same machine, ask the operator to add it to allow_networks"
    )]
    OwnAddress {
        /// The address. Not part of the sentence.
        address: IpAddr,
    },
}

/// The setting that admits plain http, where that is what is missing.
fn http_hint(scheme: &str) -> &'static str {
    match scheme {
        "http" => ", or ask the operator to set allow_http",
        _ => "",
    }
}

fn join_reasons(reasons: &[GuardError]) -> String {
    let sentences: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    format!(
        "{} reasons speak against it: {}",
        reasons.len(),
        sentences.join("; and ")
    )
}

impl GuardError {
    /// The error for these reasons; `None` without any.
    pub(super) fn from_reasons(mut reasons: Vec<Self>) -> Option<Self> {
        match reasons.len() {
            0 | 1 => reasons.pop(),
            _ => Some(Self::Several { reasons }),
        }
    }

    /// Each reason on its own.
    pub fn reasons(&self) -> &[Self] {
        match self {
            Self::Several { reasons } => reasons,
            one => std::slice::from_ref(one),
        }
    }

    /// The stable code for programs: that of the first reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Several { reasons } => reasons.first().map_or("several", Self::code),
            Self::ConnectOverride { .. } => "connect_override",
            Self::NotAUrl { .. } => "not_a_url",
            Self::NotADomain { .. } => "not_a_domain",
            Self::UrlTooLong { .. } => "url_too_long",
            Self::Scheme { .. } => "scheme",
            Self::Port { .. } => "port",
            Self::UserInfo => "user_info",
            Self::Fragment => "fragment",
            Self::IpLiteral { .. } => "ip_literal",
            Self::BadHost { .. } => "bad_host",
            Self::SpecialName { .. } => "special_name",
            Self::PublicSuffix { .. } => "public_suffix",
            Self::UnknownSuffix { .. } => "unknown_suffix",
            Self::Address { .. } => "address",
            Self::DeniedNetwork { .. } => "denied_network",
            Self::OwnAddress { .. } => "own_address",
        }
    }
}
