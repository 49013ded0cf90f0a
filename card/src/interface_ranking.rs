//! Ranking of a card's interfaces for a client, with reasons.

use url::Url;

use crate::{AgentCard, Interface, UNKNOWN_BINDING, hidden_characters};

/// Maximum number of characters of the card's own text in a reason.
const MAX_QUOTED_CHARS: usize = 80;

/// One binding that a client supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupportedBinding<'a> {
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or another binding's name; compared without case.
    pub binding: &'a str,
    /// Supported protocol versions of the binding: `Major.Minor`, or `Major` alone for all of its minor versions.
    pub versions: &'a [&'a str],
}

/// An interface with its rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedInterface<'a> {
    /// The interface as in the card.
    pub interface: &'a Interface,
    /// Its index in [`AgentCard::interfaces`].
    pub position: usize,
    /// Index of the client's binding to use, in the given list; `None` if the client cannot use the interface.
    pub client_binding: Option<usize>,
    /// The reason for the rank, or why the interface cannot be used, as a phrase for people. It quotes the card's own
    /// text, shortened and with invisible characters written as `\u{…}`.
    pub reason: String,
}

/// The card's interfaces in the order in which a client with these bindings should try them, then those that it cannot
/// use.
///
/// The card's own order is the order of preference (1.0 §8.3.2, 0.3 §5.6.3: first the flat address with its preferred
/// transport). Interfaces with a version come before those without, which may serve any version and are listed once
/// for each of the client's entries for the binding. A client copies [`Interface::tenant`] into every request.
///
/// The result has at most one element for each pair of an interface and an entry.
///
/// ```
/// use a2a_card::{SupportedBinding, parse_card, ranked_interfaces};
///
/// let card = parse_card(br#"{"name": "Desk", "supportedInterfaces": [
///     {"url": "desk.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
///     {"url": "https://desk.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
/// ]}"#)?.card;
/// let supported = [SupportedBinding { binding: "JSONRPC", versions: &["1"] }];
/// let ranked = ranked_interfaces(&card, &supported);
/// assert_eq!((ranked[0].position, ranked[0].client_binding), (1, Some(0)));
/// assert_eq!(ranked[1].reason, "the client does not support `GRPC`");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn ranked_interfaces<'a>(
    card: &'a AgentCard,
    client_bindings: &[SupportedBinding<'_>],
) -> Vec<RankedInterface<'a>> {
    let (mut with_version, mut undated, mut unused) = (Vec::new(), Vec::new(), Vec::new());
    for (position, interface) in card.interfaces.iter().enumerate() {
        let ranked = |client_binding, reason| RankedInterface {
            interface,
            position,
            client_binding,
            reason,
        };
        let version = interface.protocol_version.as_deref();
        match usable_bindings(interface, client_bindings) {
            Err(reason) => unused.push(ranked(None, reason)),
            Ok(binding_indices) => {
                for binding_index in binding_indices {
                    let list = if version.is_some() {
                        &mut with_version
                    } else {
                        &mut undated
                    };
                    let is_first = list.is_empty() && version.is_some();
                    list.push(ranked(
                        Some(binding_index),
                        interface_rank_reason(interface, is_first),
                    ));
                }
            }
        }
    }
    with_version.append(&mut undated);
    with_version.append(&mut unused);
    with_version
}

/// The client's entries for an interface, or why there are none.
fn usable_bindings(
    interface: &Interface,
    client_bindings: &[SupportedBinding<'_>],
) -> Result<Vec<usize>, String> {
    let has_same_name = |supported: &SupportedBinding<'_>| {
        supported
            .binding
            .eq_ignore_ascii_case(interface.binding.trim())
    };
    let mut same_binding = client_bindings
        .iter()
        .enumerate()
        .filter(|(_, supported)| has_same_name(supported))
        .peekable();
    let binding = quote_for_reason(&interface.binding);
    if same_binding.peek().is_none() && interface.binding == UNKNOWN_BINDING {
        let url = quote_for_reason(&interface.url);
        return Err(format!("the card does not name the binding of {url}"));
    }
    if same_binding.peek().is_none() {
        return Err(format!("the client does not support {binding}"));
    }
    let binding_indices: Vec<usize> = match interface.protocol_version.as_deref() {
        None => same_binding.map(|(index, _)| index).collect(),
        Some(version) => {
            let supports_version = |supported: &SupportedBinding<'_>| {
                supported
                    .versions
                    .iter()
                    .any(|v| is_version_covered(v, version))
            };
            let first = same_binding.find(|(_, supported)| supports_version(supported));
            let (index, _) = first.ok_or_else(|| {
                format!(
                    "the client does not support {} over {binding}",
                    quote_for_reason(version)
                )
            })?;
            vec![index]
        }
    };
    if is_callable_address(interface) {
        Ok(binding_indices)
    } else {
        Err(format!(
            "{} is not an address to call",
            quote_for_reason(&interface.url)
        ))
    }
}

fn is_version_covered(supported: &str, version: &str) -> bool {
    supported == version
        || version
            .split_once('.')
            .is_some_and(|(major, _)| major == supported)
}

/// Whether a client can connect to the address: a web address, or for gRPC also `host:port`.
fn is_callable_address(interface: &Interface) -> bool {
    let text = interface.url.as_str();
    let is_binding = |name| interface.binding.trim().eq_ignore_ascii_case(name);
    if is_binding("GRPC") && !text.contains("://") {
        let url = Url::parse(&format!("https://{text}")).ok();
        return url.is_some_and(|url| url.path() == "/" && url.query().is_none());
    }
    let is_http = is_binding("JSONRPC") || is_binding("HTTP+JSON");
    Url::parse(text)
        .is_ok_and(|url| url.has_host() && (!is_http || matches!(url.scheme(), "http" | "https")))
}

fn interface_rank_reason(interface: &Interface, is_first: bool) -> String {
    let order_phrase = match (interface.protocol_version.as_deref(), is_first) {
        (Some(_), true) => "the first in the card's order that the client supports",
        (Some(_), false) => "the next in the card's order",
        (None, _) => "without a version, so it is tried after those with one",
    };
    match &interface.tenant {
        Some(tenant) => format!(
            "{order_phrase}; every request names the tenant {}",
            quote_for_reason(tenant)
        ),
        None => order_phrase.to_owned(),
    }
}

fn quote_for_reason(text: &str) -> String {
    format!(
        "`{}`",
        hidden_characters::escape_and_truncate(text, MAX_QUOTED_CHARS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that supports JSON-RPC in two generations and HTTP+JSON in one.
    const SPOKEN: [SupportedBinding<'_>; 3] = [
        SupportedBinding {
            binding: "JSONRPC",
            versions: &["0.2", "0.3"],
        },
        SupportedBinding {
            binding: "JSONRPC",
            versions: &["1"],
        },
        SupportedBinding {
            binding: "HTTP+JSON",
            versions: &["1"],
        },
    ];

    fn card(interfaces: &[(&str, &str, Option<&str>)]) -> AgentCard {
        AgentCard {
            interfaces: interfaces
                .iter()
                .map(|&(url, binding, version)| Interface {
                    url: url.to_owned(),
                    binding: binding.to_owned(),
                    protocol_version: version.map(str::to_owned),
                    tenant: None,
                })
                .collect(),
            ..AgentCard::default()
        }
    }

    fn order(interfaces: &[(&str, &str, Option<&str>)]) -> Vec<(usize, Option<usize>)> {
        let card = card(interfaces);
        let ranked = ranked_interfaces(&card, &SPOKEN);
        ranked
            .iter()
            .map(|one| (one.position, one.client_binding))
            .collect()
    }

    #[test]
    fn the_cards_order_decides_among_what_is_spoken() {
        let told = order(&[
            ("desk.io:443", "GRPC", Some("1.0")),
            ("https://desk.io/old", "JSONRPC", Some("0.3")),
            ("https://desk.io/rest", "http+json", Some("1.0")),
            ("https://desk.io/older-rest", "HTTP+JSON", Some("0.3")),
            ("https://desk.io/new", "JSONRPC", Some("1.1")),
        ]);
        let unused = [(0, None), (3, None)];
        assert_eq!(told[..3], [(1, Some(0)), (2, Some(2)), (4, Some(1))]);
        assert_eq!(told[3..], unused);
    }

    #[test]
    fn undated_interfaces_come_after_dated_ones_and_in_every_way() {
        let told = order(&[
            ("https://desk.io/undated", "JSONRPC", None),
            ("https://desk.io/dated", "JSONRPC", Some("0.2")),
        ]);
        assert_eq!(told, [(1, Some(0)), (0, Some(0)), (0, Some(1))]);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (url, binding, version, why) in [
            (
                "https://d.io",
                "GRPC",
                Some("1.0"),
                "does not support `GRPC`",
            ),
            (
                "https://d.io",
                "JSONRPC",
                Some("0.1"),
                "does not support `0.1` over `JSONRPC`",
            ),
            (
                "https://d.io",
                "JSONRPC",
                Some("2.0"),
                "does not support `2.0`",
            ),
            (
                "https://d.io",
                "JSONRPC",
                Some("10.0"),
                "does not support `10.0`",
            ),
            (
                "/relative",
                "JSONRPC",
                Some("1.0"),
                "`/relative` is not an address",
            ),
            ("ftp://d.io", "JSONRPC", Some("1.0"), "is not an address"),
            ("", "JSONRPC", None, "is not an address"),
            ("https://d.io", "x\u{202e}", Some("1.0"), "`x\\u{202e}`"),
        ] {
            let card = card(&[(url, binding, version)]);
            let ranked = ranked_interfaces(&card, &SPOKEN);
            assert_eq!((ranked.len(), ranked[0].client_binding), (1, None));
            assert!(ranked[0].reason.contains(why), "{}", ranked[0].reason);
        }
        let long = "x".repeat(1_000);
        let card = card(&[("https://d.io", &long, None)]);
        assert!(ranked_interfaces(&card, &SPOKEN)[0].reason.len() < 150);
    }

    #[test]
    fn grpc_takes_a_bare_host_and_port() {
        let spoken = [SupportedBinding {
            binding: "GRPC",
            versions: &["1.0"],
        }];
        for (url, usable) in [
            ("desk.io:443", true),
            ("https://desk.io/a2a", true),
            ("127.0.0.1:18740", true),
            ("desk.io:443/path", false),
            ("desk io", false),
        ] {
            let card = card(&[(url, "GRPC", Some("1.0"))]);
            let ranked = ranked_interfaces(&card, &spoken);
            assert_eq!(ranked[0].client_binding.is_some(), usable, "{url}");
        }
    }

    #[test]
    fn the_tenant_is_named() {
        let mut card = card(&[("https://desk.io", "JSONRPC", Some("1.0"))]);
        card.interfaces[0].tenant = Some("eu".to_owned());
        let ranked = ranked_interfaces(&card, &SPOKEN);
        assert_eq!(
            ranked[0].reason,
            "the first in the card's order that the client supports; every request names the tenant `eu`"
        );
    }
}
