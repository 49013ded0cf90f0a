//! A caller's choice among the interfaces of a card.

use std::borrow::Cow;

use a2a_card::{AgentCard, Interface};

use super::{AgentRoute, ProtocolBinding, grpc_url};

/// Which interfaces a caller wants, beside what the card prefers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfacePreferences {
    /// Only those with this binding, ignoring case.
    pub binding: Option<String>,
    /// Only those with this protocol version, such as `0.3`; one without a version counts as every version.
    pub version: Option<String>,
    /// The tenant in every request, instead of the card's.
    pub tenant: Option<String>,
    /// Whether a gRPC interface that the card names as a bare `host:port` is called without TLS.
    pub plaintext: bool,
    /// The address to call instead of those of the card, or where the card names none.
    pub url: Option<String>,
    /// Whether interfaces of 1.0 are called in the forms of the a2a-protocol skill before the standard ones, which
    /// suits a card in `snake_case`. The other forms are tried if the agent does not know the first.
    pub protocol_skill_first: bool,
}

impl InterfacePreferences {
    /// The card with the caller's address, and, if it has no interface, with the caller's binding or JSON-RPC.
    pub(crate) fn override_urls<'a>(&self, card: &'a AgentCard) -> Cow<'a, AgentCard> {
        let Some(url) = &self.url else {
            return Cow::Borrowed(card);
        };
        let mut card = card.clone();
        if card.interfaces.is_empty() {
            let binding = self.binding.as_deref().unwrap_or("JSONRPC");
            card.interfaces.push(Interface {
                binding: binding.to_owned(),
                ..Interface::default()
            });
        }
        for interface in &mut card.interfaces {
            interface.url.clone_from(url);
        }
        Cow::Owned(card)
    }

    /// The routes that match, with the caller's tenant, and without TLS if the caller wants none.
    #[must_use]
    pub fn apply_to_routes(&self, mut routes: Vec<AgentRoute>) -> Vec<AgentRoute> {
        routes.retain(|route| self.matches_binding(route) && self.matches_version(route));
        for route in &mut routes {
            if let Some(tenant) = &self.tenant {
                route.interface.tenant = Some(tenant.clone());
            }
            if self.plaintext
                && route.protocol_binding.is_grpc()
                && let Some(url) = grpc_url(&route.interface.url, true)
            {
                route.url = url;
            }
        }
        routes
    }

    /// The filter in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let binding = self.binding.as_deref().unwrap_or("any binding");
        let version = self.version.as_deref().unwrap_or("any version");
        format!("{binding} and {version}")
    }

    fn matches_binding(&self, route: &AgentRoute) -> bool {
        let wanted = self.binding.as_deref();
        wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(&route.interface.binding))
    }

    fn matches_version(&self, route: &AgentRoute) -> bool {
        let Some(wanted) = &self.version else {
            return true;
        };
        match route.interface.protocol_version.as_deref() {
            Some(version) => major_minor(version) == major_minor(wanted),
            None => match route.protocol_binding {
                ProtocolBinding::V01JsonRpc => major_minor(wanted) == ("0", "1"),
                dialect => {
                    major_minor(wanted).0 == if dialect.is_v1() { "1" } else { "0" }
                        && major_minor(wanted) != ("0", "1")
                }
            },
        }
    }
}

fn major_minor(version: &str) -> (&str, &str) {
    let mut numbers = version.splitn(3, '.');
    let major = numbers.next().unwrap_or_default();
    (major, numbers.next().unwrap_or("0"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::route_selection::callable_routes;

    fn chosen(binding: Option<&str>, version: Option<&str>) -> Vec<String> {
        let interface = |url: &str, binding: &str, version: Option<&str>| Interface {
            url: format!("http://h/{url}"),
            binding: binding.to_owned(),
            protocol_version: version.map(str::to_owned),
            tenant: None,
        };
        let card = AgentCard {
            interfaces: vec![
                interface("rpc", "JSONRPC", Some("1.0")),
                interface("rest", "HTTP+JSON", Some("1.0")),
                interface("old", "JSONRPC", Some("0.3")),
                interface("undated", "JSONRPC", None),
            ],
            ..AgentCard::default()
        };
        let filter = InterfacePreferences {
            binding: binding.map(str::to_owned),
            version: version.map(str::to_owned),
            tenant: Some("acme".to_owned()),
            ..InterfacePreferences::default()
        };
        let routes = filter.apply_to_routes(callable_routes(&card).unwrap());
        assert!(routes.iter().all(|route| route.tenant() == Some("acme")));
        let paths = routes.iter().map(|route| route.url.path()[1..].to_owned());
        paths.collect()
    }

    #[test]
    fn a_choice_leaves_the_cards_order() {
        assert_eq!(
            chosen(None, None),
            ["rpc", "rest", "old", "undated", "undated", "undated"]
        );
        assert_eq!(chosen(Some("http+json"), None), ["rest"]);
        assert_eq!(chosen(None, Some("0.3")), ["old", "undated"]);
        assert_eq!(chosen(None, Some("0.1")), ["undated"]);
        assert_eq!(chosen(Some("JSONRPC"), Some("1")), ["rpc", "undated"]);
        assert_eq!(chosen(None, Some("1.0.1")), ["rpc", "rest", "undated"]);
        assert!(chosen(Some("GRPC"), None).is_empty());
        assert!(chosen(Some("HTTP+JSON"), Some("0.3")).is_empty());
    }
}
