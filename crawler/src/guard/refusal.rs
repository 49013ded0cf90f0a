//! Why the guard refuses a target.

use std::net::IpAddr;

use super::address::Block;

/// Why a target is not fetched. [`code`](Self::code) is stable; the display form is one sentence that
/// says what to do. It names the block of a refused address and never the address itself, because
/// owners read the sentence and only curators may see addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardRefusal {
    /// The text is no absolute URL, or one that parsers read differently.
    #[error(
        "this is no URL the registry can ask: {reason}; give one like https://agents.example.com/card.json"
    )]
    NotAUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// The text is no host or host with port.
    #[error(
        "this is no domain: {reason}; give a host such as agents.example.com, with :port where it is not 443"
    )]
    NotADomain {
        /// What is wrong with it.
        reason: String,
    },
    /// Longer than [`MAX_URL_BYTES`](super::MAX_URL_BYTES).
    #[error(
        "the URL is {bytes} bytes long; at most {} are taken",
        super::MAX_URL_BYTES
    )]
    UrlTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Neither https nor, where allowed, http.
    #[error("the scheme {found} is not fetched here; serve the card over https")]
    Scheme {
        /// The scheme found, shortened.
        found: String,
    },
    /// A port outside `allow_ports`.
    #[error(
        "port {port} is not fetched from here; use 443, or have the operator add it to allow_ports"
    )]
    Port {
        /// The port.
        port: u16,
    },
    /// A user name or password in the URL.
    #[error(
        "the URL carries a user name or password; cards are fetched without credentials, remove the part before the @"
    )]
    UserInfo,
    /// A fragment in the URL.
    #[error("the URL carries a #fragment, which no server ever sees; remove it")]
    Fragment,
    /// An IP address, in any spelling, where a host name belongs.
    #[error(
        "the IP address {address} stands where a host name belongs; use a name, or have the operator add the address to allow_networks"
    )]
    IpLiteral {
        /// The address as read.
        address: IpAddr,
    },
    /// A host name that breaks the rules of DNS names.
    #[error("the host name is malformed: {reason}")]
    BadHost {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A name that means something else than a public host.
    #[error(
        "{host} is {meaning} and cannot be reached in public; the operator can admit it with allow_names"
    )]
    SpecialName {
        /// The host.
        host: String,
        /// What such names are for.
        meaning: &'static str,
    },
    /// A name under which anyone may register, such as `co.uk` or a hosting platform's own name.
    #[error("{host} is a public suffix that many parties share; name a host below it")]
    PublicSuffix {
        /// The host.
        host: String,
    },
    /// A top-level label that does not exist.
    #[error(
        "{host} ends in a label that is no known top-level domain; check the spelling, or have the operator admit it with allow_names"
    )]
    UnknownSuffix {
        /// The host.
        host: String,
    },
    /// An address in a special-purpose block.
    #[error("the host's address lies in {} ({}), which is not fetched from; publish a public address, or have the operator add the network to allow_networks", .block.net, .block.purpose)]
    Address {
        /// The address. Not part of the sentence.
        address: IpAddr,
        /// The block it lies in.
        block: Block,
    },
    /// An address in a network that the operator denies.
    #[error("the host's address lies in a network that this registry's operator has denied")]
    DeniedNetwork {
        /// The address. Not part of the sentence.
        address: IpAddr,
    },
    /// An address of the machine that asks.
    #[error(
        "the host's address is this registry's own; have the operator add it to allow_networks where the agent runs beside the registry"
    )]
    OwnAddress {
        /// The address. Not part of the sentence.
        address: IpAddr,
    },
}

impl GuardRefusal {
    /// A stable name for programs.
    pub const fn code(&self) -> &'static str {
        match self {
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
