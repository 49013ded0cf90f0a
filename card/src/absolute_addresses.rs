//! Absolute forms of addresses that a card gives relative to its own URL, or without a scheme.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use url::Url;

use crate::{AgentCard, Interface};

const MAX_PORT_DIGITS: usize = 5;

enum PartialAddressKind {
    /// A path, possibly after `//` and a host.
    Relative,
    /// A host, possibly with a port and a path.
    WithoutScheme,
}

/// The card with absolute addresses: its own URL completes addresses that clearly lack a scheme or a host.
///
/// ```
/// let card = br#"{"name": "Desk", "url": "/a2a/rpc"}"#;
/// let card = a2a_card::parse_card(card)?.card;
/// let card_url = "https://desk.example/.well-known/agent-card.json".parse()?;
/// let card = a2a_card::with_absolute_addresses(&card, &card_url);
/// assert_eq!(card.interfaces[0].url, "https://desk.example/a2a/rpc");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_absolute_addresses<'c>(card: &'c AgentCard, card_url: &Url) -> Cow<'c, AgentCard> {
    if !has_partial_address(card) {
        return Cow::Borrowed(card);
    }
    let mut card = card.clone();
    for interface in &mut card.interfaces {
        if let Some(url) = complete_partial_address(interface, card_url) {
            interface.url = url.into();
        }
    }
    Cow::Owned(card)
}

/// Whether the card has an address that its own URL completes.
pub fn has_partial_address(card: &AgentCard) -> bool {
    card.interfaces
        .iter()
        .any(|one| partial_address_kind(one).is_some())
}

/// The absolute form of a partial address; `None` for any other address.
pub(crate) fn complete_partial_address(interface: &Interface, card_url: &Url) -> Option<Url> {
    let text = interface.url.as_str();
    let url = match partial_address_kind(interface)? {
        PartialAddressKind::Relative => card_url.join(text).ok()?,
        PartialAddressKind::WithoutScheme => {
            Url::parse(&format!("{}://{text}", card_url.scheme())).ok()?
        }
    };
    url.has_host().then_some(url)
}

/// The kind of a partial address; `None` if it is absolute, contains anything but visible ASCII, or is a placeholder
/// such as `{HOST}/a2a`.
fn partial_address_kind(interface: &Interface) -> Option<PartialAddressKind> {
    let text = interface.url.as_str();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}@".contains(&byte);
    if !text.bytes().all(is_plain) || text.contains("://") {
        return None;
    }
    if ["/", "./", "../"]
        .iter()
        .any(|start| text.starts_with(start))
    {
        return Some(PartialAddressKind::Relative);
    }
    let (authority, path) = match text.split_once('/') {
        Some((first, path)) => (first, Some(path)),
        None => (text, None),
    };
    // A gRPC address is a host and a port.
    let is_grpc = interface.binding == "GRPC" && path.is_none();
    if is_host(authority, path.is_some()) {
        (!is_grpc).then_some(PartialAddressKind::WithoutScheme)
    } else if path.is_some() && !authority.is_empty() && !authority.contains(':') {
        Some(PartialAddressKind::Relative)
    } else {
        None
    }
}

/// Whether the part before the first slash is a host, rather than a folder or a scheme.
fn is_host(authority: &str, has_path: bool) -> bool {
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_port = |port: &str| {
        (2..=MAX_PORT_DIGITS).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
    };
    let has_port = port.is_some_and(is_port);
    if port.is_some() && !has_port {
        return false;
    }
    let suffix = psl::suffix(host.as_bytes());
    let is_public = host.contains('.') && suffix.is_some_and(|suffix| suffix.is_known());
    let is_label = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_public
        || host == "localhost"
        || host.parse::<Ipv4Addr>().is_ok()
        || (is_label && has_port && has_path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn completed_address(url: &str, binding: &str) -> Option<String> {
        let interface = Interface {
            url: url.to_owned(),
            binding: binding.to_owned(),
            ..Interface::default()
        };
        let card_url = "https://desk.io/agents/card.json".parse().unwrap();
        complete_partial_address(&interface, &card_url).map(String::from)
    }

    #[test]
    fn partial_addresses_are_completed_by_the_card_url() {
        for (url, expected) in [
            ("/a2a", "https://desk.io/a2a"),
            ("//api.desk.io/a2a", "https://api.desk.io/a2a"),
            ("./rpc?x=1", "https://desk.io/agents/rpc?x=1"),
            ("../rpc", "https://desk.io/rpc"),
            ("a2a/rpc", "https://desk.io/agents/a2a/rpc"),
            ("rpc.php/a2a", "https://desk.io/agents/rpc.php/a2a"),
            ("api.desk.io", "https://api.desk.io/"),
            ("api.desk.io:8443/a2a", "https://api.desk.io:8443/a2a"),
            ("localhost:9999", "https://localhost:9999/"),
            ("10.0.0.1:80/x", "https://10.0.0.1:80/x"),
            ("agent:8080/a2a", "https://agent:8080/a2a"),
        ] {
            assert_eq!(
                completed_address(url, "JSONRPC").as_deref(),
                Some(expected),
                "{url}"
            );
        }
    }

    #[test]
    fn other_addresses_stay_unchanged() {
        for url in [
            "",
            "https://desk.io/a2a",
            "wss://desk.io/a2a",
            "mailto:desk@desk.io",
            "javascript:0",
            "tel:911",
            "not-a-url",
            "__ADVERTISED_URL__",
            "{BASE_URL}/api/messages",
            "local-harness with A2A via https://desk.io/a2a",
            "user@desk.io/a2a",
            "urn:air:desk.io/x",
            "/with space",
        ] {
            assert_eq!(completed_address(url, "JSONRPC"), None, "{url}");
        }
        assert_eq!(completed_address("desk.io:443", "GRPC"), None);
        assert_eq!(completed_address("//", "JSONRPC"), None);
    }
}
