//! Which of a card's interfaces to speak to, and how.

use a2a_card::{AgentCard, Interface};
use url::Url;

use super::TalkError;
use super::error::shorten;

/// A way of speaking A2A: a binding and a generation of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// 1.0 over JSON-RPC (1.0 section 9).
    V1JsonRpc,
    /// 1.0 over HTTP+JSON (1.0 section 11).
    V1Rest,
    /// 0.2 and 0.3 over JSON-RPC, which share methods and shapes.
    V0JsonRpc,
}

impl Dialect {
    /// The dialect in words, such as `1.0 over JSON-RPC`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::V1JsonRpc => "1.0 over JSON-RPC",
            Self::V1Rest => "1.0 over HTTP+JSON",
            Self::V0JsonRpc => "0.2/0.3 over JSON-RPC",
        }
    }
}

/// An interface this client can speak to.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The interface as the card lists it.
    pub interface: Interface,
    /// Its address.
    pub url: Url,
    /// How to speak to it.
    pub dialect: Dialect,
}

/// The ways to reach the agent, in the order to try them: the card's own order (1.0 section 8.3.2,
/// 0.3 section 5.6.3), dated interfaces before undated ones.
///
/// An undated JSON-RPC interface is first spoken to in the older shapes, since only cards before 0.2.5
/// may leave the version out, then in the newer ones; an agent that does not know a method says so.
pub(super) fn routes(card: &AgentCard) -> Result<Vec<Route>, TalkError> {
    let mut dated = Vec::new();
    let mut undated = Vec::new();
    let mut bad_address = None;
    for interface in &card.interfaces {
        let dialects = dialects(interface);
        if dialects.is_empty() {
            continue;
        }
        let url = match address(&interface.url) {
            Ok(url) => url,
            Err(error) => {
                bad_address.get_or_insert(error);
                continue;
            }
        };
        let list = if interface.protocol_version.is_some() {
            &mut dated
        } else {
            &mut undated
        };
        list.extend(dialects.iter().map(|&dialect| Route {
            interface: interface.clone(),
            url: url.clone(),
            dialect,
        }));
    }
    dated.append(&mut undated);
    if !dated.is_empty() {
        return Ok(dated);
    }
    Err(match bad_address {
        Some(error) => error,
        None if card.interfaces.is_empty() => TalkError::NoInterface,
        None => TalkError::NoneSpoken {
            offered: offered(card),
        },
    })
}

fn dialects(interface: &Interface) -> &'static [Dialect] {
    let binding = interface.binding.trim();
    let json_rpc = binding.eq_ignore_ascii_case("JSONRPC");
    let rest = binding.eq_ignore_ascii_case("HTTP+JSON");
    let mut version = interface
        .protocol_version
        .as_deref()
        .map(|text| text.trim().split('.'));
    let major = version
        .as_mut()
        .map(|parts| parts.next().unwrap_or_default());
    let minor = version.as_mut().and_then(Iterator::next);
    match (major, minor) {
        (Some("1"), _) if json_rpc => &[Dialect::V1JsonRpc],
        (Some("1"), _) if rest => &[Dialect::V1Rest],
        (Some("0"), Some("2" | "3")) if json_rpc => &[Dialect::V0JsonRpc],
        (None, _) if json_rpc => &[Dialect::V0JsonRpc, Dialect::V1JsonRpc],
        (None, _) if rest => &[Dialect::V1Rest],
        _ => &[],
    }
}

fn address(text: &str) -> Result<Url, TalkError> {
    let bad = |reason: &str| TalkError::BadAddress {
        url: shorten(text),
        reason: reason.to_owned(),
    };
    let url = Url::parse(text.trim()).map_err(|error| bad(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(bad("it is no http or https address")),
    }
}

/// What the card offers, as far as it fits in a line.
fn offered(card: &AgentCard) -> String {
    let named: Vec<String> = card
        .interfaces
        .iter()
        .take(4)
        .map(super::describe)
        .collect();
    let more = card.interfaces.len().saturating_sub(named.len());
    let mut text = shorten(&named.join(", "));
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn card(interfaces: &[(&str, &str, Option<&str>)]) -> AgentCard {
        AgentCard {
            name: "Agent".to_owned(),
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

    fn chosen(interfaces: &[(&str, &str, Option<&str>)]) -> Vec<(String, Dialect)> {
        routes(&card(interfaces))
            .unwrap()
            .into_iter()
            .map(|route| (route.url.path().to_owned(), route.dialect))
            .collect()
    }

    #[test]
    fn the_cards_order_decides_and_unspoken_bindings_are_passed_over() {
        let routes = chosen(&[
            ("http://h/grpc", "GRPC", Some("1.0")),
            ("http://h/old", "JSONRPC", Some("0.3")),
            ("http://h/rest", "http+json", Some("1.0")),
            ("http://h/older-rest", "HTTP+JSON", Some("0.3")),
            ("http://h/new", "JSONRPC", Some("1.1")),
        ]);
        assert_eq!(
            routes,
            [
                ("/old".to_owned(), Dialect::V0JsonRpc),
                ("/rest".to_owned(), Dialect::V1Rest),
                ("/new".to_owned(), Dialect::V1JsonRpc),
            ]
        );
    }

    #[test]
    fn undated_interfaces_come_last_and_in_both_shapes() {
        let routes = chosen(&[
            ("http://h/undated", "JSONRPC", None),
            ("http://h/dated", "JSONRPC", Some("0.2")),
        ]);
        assert_eq!(
            routes,
            [
                ("/dated".to_owned(), Dialect::V0JsonRpc),
                ("/undated".to_owned(), Dialect::V0JsonRpc),
                ("/undated".to_owned(), Dialect::V1JsonRpc),
            ]
        );
    }

    #[test]
    fn a_card_that_cannot_be_spoken_to_says_why() {
        assert_eq!(routes(&card(&[])).unwrap_err(), TalkError::NoInterface);
        for (binding, version) in [
            ("GRPC", "1.0"),
            ("JSONRPC", "0.1"),
            ("JSONRPC", "2.0"),
            ("JSONRPC", "1x"),
        ] {
            let error = routes(&card(&[("http://h/", binding, Some(version))])).unwrap_err();
            let TalkError::NoneSpoken { offered } = &error else {
                panic!("{error:?}")
            };
            assert!(
                offered.contains(binding) && offered.contains(version),
                "{offered}"
            );
        }
        for url in ["", "/relative", "ftp://h/", "host:443", "http://"] {
            let error = routes(&card(&[(url, "JSONRPC", Some("1.0"))])).unwrap_err();
            assert!(
                matches!(error, TalkError::BadAddress { .. }),
                "{url}: {error:?}"
            );
        }
    }

    #[test]
    fn a_long_list_of_interfaces_stays_one_short_line() {
        let many = vec![("http://h/some/long/path/of/an/address", "GRPC", Some("1.0")); 5000];
        let message = routes(&card(&many)).unwrap_err().to_string();
        assert!(message.contains("4996 more"), "{message}");
        assert!(message.chars().count() < 400, "{message}");
    }
}
