//! Ranks a card's interfaces for a client, with reasons.

use url::Url;

use crate::{AgentCard, Interface, UNKNOWN_BINDING, text};

/// Most characters of a card's own text in a reason.
const MAX_QUOTED_CHARS: usize = 80;

/// One binding that a client supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken<'a> {
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or another binding's name; compared without case.
    pub binding: &'a str,
    /// The protocol versions supported with it: `Major.Minor`, or `Major` alone for all of its minor versions.
    pub versions: &'a [&'a str],
}

/// An interface with its rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedInterface<'a> {
    /// The interface as in the card.
    pub interface: &'a Interface,
    /// Its index in [`AgentCard::interfaces`].
    pub position: usize,
    /// Index of the client's binding to use, in the list given; `None` if the client cannot use the interface.
    pub spoken: Option<usize>,
    /// The reason for its rank, or why it cannot be used, as a phrase for people. It quotes the card's own text,
    /// shortened and with invisible characters written as `\u{…}`.
    pub reason: String,
}

/// The card's interfaces in the order in which a client with `spoken` should try them, then those that it cannot use.
///
/// The card's own order is the order of preference (1.0 §8.3.2, 0.3 §5.6.3: first the flat address with its preferred
/// transport). Interfaces with a version go before those without, which may speak any: these are listed once for each
/// of the client's entries for the binding. A client copies [`Interface::tenant`] into every request.
///
/// The result has at most one element for each pair of an interface and an entry.
///
/// ```
/// use a2a_card::{Spoken, parse, ranked_interfaces};
///
/// let card = parse(br#"{"name": "Desk", "supportedInterfaces": [
///     {"url": "desk.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
///     {"url": "https://desk.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
/// ]}"#)?.card;
/// let spoken = [Spoken { binding: "JSONRPC", versions: &["1"] }];
/// let ranked = ranked_interfaces(&card, &spoken);
/// assert_eq!((ranked[0].position, ranked[0].spoken), (1, Some(0)));
/// assert_eq!(ranked[1].reason, "the client does not speak `GRPC`");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn ranked_interfaces<'a>(
    card: &'a AgentCard,
    spoken: &[Spoken<'_>],
) -> Vec<RankedInterface<'a>> {
    let (mut dated, mut undated, mut unused) = (Vec::new(), Vec::new(), Vec::new());
    for (position, interface) in card.interfaces.iter().enumerate() {
        let ranked = |spoken, reason| RankedInterface {
            interface,
            position,
            spoken,
            reason,
        };
        let version = interface.protocol_version.as_deref();
        match ways(interface, spoken) {
            Err(reason) => unused.push(ranked(None, reason)),
            Ok(ways) => {
                for way in ways {
                    let list = if version.is_some() {
                        &mut dated
                    } else {
                        &mut undated
                    };
                    let first = list.is_empty() && version.is_some();
                    list.push(ranked(Some(way), reason_for(interface, first)));
                }
            }
        }
    }
    dated.append(&mut undated);
    dated.append(&mut unused);
    dated
}

/// The client's entries for an interface, or why there are none.
fn ways(interface: &Interface, spoken: &[Spoken<'_>]) -> Result<Vec<usize>, String> {
    let named = |way: &Spoken<'_>| way.binding.eq_ignore_ascii_case(interface.binding.trim());
    let mut of_binding = spoken
        .iter()
        .enumerate()
        .filter(|(_, way)| named(way))
        .peekable();
    let binding = quoted(&interface.binding);
    if of_binding.peek().is_none() && interface.binding == UNKNOWN_BINDING {
        let url = quoted(&interface.url);
        return Err(format!("the card does not name the binding of {url}"));
    }
    if of_binding.peek().is_none() {
        return Err(format!("the client does not speak {binding}"));
    }
    let ways: Vec<usize> = match interface.protocol_version.as_deref() {
        None => of_binding.map(|(place, _)| place).collect(),
        Some(version) => {
            let covers = |way: &Spoken<'_>| way.versions.iter().any(|v| covers(v, version));
            let first = of_binding.find(|(_, way)| covers(way));
            let (place, _) = first.ok_or_else(|| {
                format!(
                    "the client does not speak {} over {binding}",
                    quoted(version)
                )
            })?;
            vec![place]
        }
    };
    if is_address(interface) {
        Ok(ways)
    } else {
        Err(format!(
            "{} is not an address to call",
            quoted(&interface.url)
        ))
    }
}

fn covers(spoken: &str, version: &str) -> bool {
    spoken == version
        || version
            .split_once('.')
            .is_some_and(|(major, _)| major == spoken)
}

/// Whether one can connect to the address: a web address, or for gRPC `host:port` as well.
fn is_address(interface: &Interface) -> bool {
    let text = interface.url.as_str();
    let core = |name| interface.binding.trim().eq_ignore_ascii_case(name);
    if core("GRPC") && !text.contains("://") {
        let url = Url::parse(&format!("https://{text}")).ok();
        return url.is_some_and(|url| url.path() == "/" && url.query().is_none());
    }
    let web = core("JSONRPC") || core("HTTP+JSON");
    Url::parse(text)
        .is_ok_and(|url| url.has_host() && (!web || matches!(url.scheme(), "http" | "https")))
}

fn reason_for(interface: &Interface, first: bool) -> String {
    let place = match (interface.protocol_version.as_deref(), first) {
        (Some(_), true) => "the first in the card's order that the client speaks",
        (Some(_), false) => "the next in the card's order",
        (None, _) => "without a version, so it is tried after those with one",
    };
    match &interface.tenant {
        Some(tenant) => format!("{place}; every request names the tenant {}", quoted(tenant)),
        None => place.to_owned(),
    }
}

fn quoted(words: &str) -> String {
    format!("`{}`", text::visible(words, MAX_QUOTED_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of JSON-RPC in two generations and of HTTP+JSON in one.
    const SPOKEN: [Spoken<'_>; 3] = [
        Spoken {
            binding: "JSONRPC",
            versions: &["0.2", "0.3"],
        },
        Spoken {
            binding: "JSONRPC",
            versions: &["1"],
        },
        Spoken {
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
            .map(|one| (one.position, one.spoken))
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
            ("https://d.io", "GRPC", Some("1.0"), "does not speak `GRPC`"),
            (
                "https://d.io",
                "JSONRPC",
                Some("0.1"),
                "does not speak `0.1` over `JSONRPC`",
            ),
            (
                "https://d.io",
                "JSONRPC",
                Some("2.0"),
                "does not speak `2.0`",
            ),
            (
                "https://d.io",
                "JSONRPC",
                Some("10.0"),
                "does not speak `10.0`",
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
            assert_eq!((ranked.len(), ranked[0].spoken), (1, None));
            assert!(ranked[0].reason.contains(why), "{}", ranked[0].reason);
        }
        let long = "x".repeat(1_000);
        let card = card(&[("https://d.io", &long, None)]);
        assert!(ranked_interfaces(&card, &SPOKEN)[0].reason.len() < 150);
    }

    #[test]
    fn grpc_takes_a_bare_host_and_port() {
        let spoken = [Spoken {
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
            assert_eq!(ranked[0].spoken.is_some(), usable, "{url}");
        }
    }

    #[test]
    fn the_tenant_is_named() {
        let mut card = card(&[("https://desk.io", "JSONRPC", Some("1.0"))]);
        card.interfaces[0].tenant = Some("eu".to_owned());
        let ranked = ranked_interfaces(&card, &SPOKEN);
        assert_eq!(
            ranked[0].reason,
            "the first in the card's order that the client speaks; every request names the tenant `eu`"
        );
    }
}
