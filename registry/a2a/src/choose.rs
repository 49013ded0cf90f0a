//! Which of a card's interfaces to speak to, and how.

use a2a_card::{AgentCard, Interface, RankedInterface, Spoken, ranked_interfaces};
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

/// What this client speaks, each way with its dialect. An undated JSON-RPC interface is first spoken to in
/// the older shapes, since only cards before 0.2.5 may leave the version out, then in the newer ones; an
/// agent that does not know a method says so.
const SPOKEN: [(Spoken<'_>, Dialect); 3] = [
    (
        Spoken {
            binding: "JSONRPC",
            versions: &["0.2", "0.3"],
        },
        Dialect::V0JsonRpc,
    ),
    (
        Spoken {
            binding: "JSONRPC",
            versions: &["1"],
        },
        Dialect::V1JsonRpc,
    ),
    (
        Spoken {
            binding: "HTTP+JSON",
            versions: &["1"],
        },
        Dialect::V1Rest,
    ),
];

/// At most this many reasons are told where no interface can be used.
const MAX_REASONS: usize = 4;

/// The ways to reach the agent, in the order to try them.
pub(super) fn routes(card: &AgentCard) -> Result<Vec<Route>, TalkError> {
    if card.interfaces.is_empty() {
        return Err(TalkError::NoInterface);
    }
    let ranked = ranked_interfaces(card, &SPOKEN.map(|(spoken, _)| spoken));
    let routes: Vec<Route> = ranked.iter().filter_map(route).collect();
    if routes.is_empty() {
        return Err(TalkError::NoneUsable {
            reasons: reasons(&ranked),
        });
    }
    Ok(routes)
}

fn route(ranked: &RankedInterface<'_>) -> Option<Route> {
    let (_, dialect) = SPOKEN.get(ranked.spoken?)?;
    Some(Route {
        interface: ranked.interface.clone(),
        url: Url::parse(&ranked.interface.url).ok()?,
        dialect: *dialect,
    })
}

/// Why none of the interfaces can be used, as far as it fits in a line.
fn reasons(ranked: &[RankedInterface<'_>]) -> String {
    let named: Vec<&str> = ranked
        .iter()
        .take(MAX_REASONS)
        .map(|one| one.reason.as_str())
        .collect();
    let more = ranked.len().saturating_sub(named.len());
    let mut text = shorten(&named.join("; "));
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
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
            let TalkError::NoneUsable { reasons } = &error else {
                panic!("{error:?}")
            };
            assert!(
                reasons.contains(if binding == "GRPC" { binding } else { version }),
                "{reasons}"
            );
        }
        for url in ["", "/relative", "ftp://h/", "host:443", "http://"] {
            let error = routes(&card(&[(url, "JSONRPC", Some("1.0"))])).unwrap_err();
            assert!(
                error.to_string().contains("is no address to call"),
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
