//! Chooses the interfaces to call, and how.

use a2a_card::{AgentCard, Interface, RankedInterface, SupportedBinding, ranked_interfaces};
use url::Url;

use crate::foreign_text::shorten_to_line;

/// A transport together with a protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolBinding {
    /// 1.0 over JSON-RPC (1.0 section 9).
    V1JsonRpc,
    /// 1.0 over HTTP+JSON (1.0 section 11).
    V1Rest,
    /// 0.2 and 0.3 over JSON-RPC, which share methods and forms.
    V0JsonRpc,
    /// 0.1, which has JSON-RPC only.
    V01JsonRpc,
    /// 0.3 over HTTP+JSON, in the JSON form of its protobuf definition (0.3 section 11.1.3).
    V0Rest,
    /// 1.0 over gRPC (1.0 section 10).
    V1Grpc,
    /// 0.3 over gRPC, whose messages are those of 0.3 over HTTP+JSON.
    V0Grpc,
    /// 1.0 over JSON-RPC as the a2a-protocol skill describes it: methods begin with `a2a.`, members are in
    /// `snake_case`.
    SkillJsonRpc,
    /// 1.0 over HTTP+JSON as that skill describes it, at paths of its own.
    SkillRest,
    /// 0.2 over JSON-RPC as `PromptKit` has it: parts, messages and events have no `kind`.
    PromptKitJsonRpc,
}

impl ProtocolBinding {
    /// Whether the forms are those of 1.0.
    #[must_use]
    pub const fn is_v1(self) -> bool {
        matches!(
            self,
            Self::V1JsonRpc | Self::V1Rest | Self::V1Grpc | Self::SkillJsonRpc | Self::SkillRest
        )
    }

    /// Whether the forms are those of 0.1.
    #[must_use]
    pub const fn is_v0_1(self) -> bool {
        matches!(self, Self::V01JsonRpc)
    }

    /// Whether it is called over JSON-RPC.
    #[must_use]
    pub const fn is_json_rpc(self) -> bool {
        matches!(
            self,
            Self::V1JsonRpc
                | Self::V0JsonRpc
                | Self::V01JsonRpc
                | Self::SkillJsonRpc
                | Self::PromptKitJsonRpc
        )
    }

    /// Whether it is called over gRPC.
    #[must_use]
    pub const fn is_grpc(self) -> bool {
        matches!(self, Self::V1Grpc | Self::V0Grpc)
    }

    /// Whether the forms are those of the a2a-protocol skill.
    #[must_use]
    pub const fn is_protocol_skill(self) -> bool {
        matches!(self, Self::SkillJsonRpc | Self::SkillRest)
    }
}

/// An interface that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRoute {
    /// The interface as in the card.
    pub interface: Interface,
    /// Its address as a URL.
    pub url: Url,
    /// The protocol binding to call it with.
    pub protocol_binding: ProtocolBinding,
}

impl AgentRoute {
    /// The tenant in every request: in the path over HTTP+JSON, else among the parameters.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        let tenant = self.interface.tenant.as_deref();
        tenant.filter(|tenant| !tenant.is_empty())
    }

    /// The address of an operation over HTTP+JSON: below the interface's address and the tenant. Segments are
    /// escaped, so neither a tenant nor a task id can lead to another path; the address's query is kept.
    #[must_use]
    pub fn operation_url(&self, segments: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            if self.protocol_binding.is_protocol_skill() && self.tenant().is_some() {
                path.push("tenants");
            }
            path.extend(self.tenant());
            path.extend(segments);
        }
        url
    }
}

/// The routes, and each one of 1.0 also in the forms of the a2a-protocol skill: after the standard ones, or before
/// them.
pub(crate) fn add_protocol_skill_routes(
    routes: Vec<AgentRoute>,
    skill_first: bool,
) -> Vec<AgentRoute> {
    let with_variant = |route: AgentRoute| {
        let dialect = match route.protocol_binding {
            ProtocolBinding::V1JsonRpc => Some(ProtocolBinding::SkillJsonRpc),
            ProtocolBinding::V1Rest => Some(ProtocolBinding::SkillRest),
            _ => None,
        };
        let skill_route = dialect.map(|dialect| AgentRoute {
            protocol_binding: dialect,
            ..route.clone()
        });
        match skill_first {
            true => [skill_route, Some(route)],
            false => [Some(route), skill_route],
        }
    };
    routes
        .into_iter()
        .flat_map(with_variant)
        .flatten()
        .collect()
}

/// Why no interface of a card can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// The card lists none.
    NoInterface,
    /// The card lists some, and none can be used.
    NoneUsable {
        /// The reason for each interface, shortened.
        reasons: String,
    },
}

/// The supported bindings, each with its protocol bindings by version. A JSON-RPC interface without a version is
/// called first in the older forms, since only cards before 0.2.5 may omit the version, then in the newer ones, and
/// last in those of 0.1; an agent reports a method that it does not know.
const SUPPORTED_BINDINGS: [(SupportedBinding<'_>, ProtocolBinding); 7] = [
    (
        SupportedBinding {
            binding: "JSONRPC",
            versions: &["0.2", "0.3"],
        },
        ProtocolBinding::V0JsonRpc,
    ),
    (
        SupportedBinding {
            binding: "JSONRPC",
            versions: &["1"],
        },
        ProtocolBinding::V1JsonRpc,
    ),
    (
        SupportedBinding {
            binding: "JSONRPC",
            versions: &["0.1"],
        },
        ProtocolBinding::V01JsonRpc,
    ),
    (
        SupportedBinding {
            binding: "HTTP+JSON",
            versions: &["1"],
        },
        ProtocolBinding::V1Rest,
    ),
    (
        SupportedBinding {
            binding: "HTTP+JSON",
            versions: &["0.3"],
        },
        ProtocolBinding::V0Rest,
    ),
    (
        SupportedBinding {
            binding: "GRPC",
            versions: &["1"],
        },
        ProtocolBinding::V1Grpc,
    ),
    (
        SupportedBinding {
            binding: "GRPC",
            versions: &["0.3"],
        },
        ProtocolBinding::V0Grpc,
    ),
];

const MAX_REASONS: usize = 4;

/// The routes to call the agent, in the order to try them; never empty.
pub fn callable_routes(card: &AgentCard) -> Result<Vec<AgentRoute>, RouteError> {
    if card.interfaces.is_empty() {
        return Err(RouteError::NoInterface);
    }
    let ranked = ranked_interfaces(card, &SUPPORTED_BINDINGS.map(|(spoken, _)| spoken));
    let routes: Vec<AgentRoute> = ranked.iter().filter_map(interface_to_route).collect();
    if routes.is_empty() {
        return Err(RouteError::NoneUsable {
            reasons: summarize_unusable_interfaces(&ranked),
        });
    }
    Ok(routes)
}

fn interface_to_route(ranked: &RankedInterface<'_>) -> Option<AgentRoute> {
    let (_, dialect) = SUPPORTED_BINDINGS.get(ranked.client_binding?)?;
    let text = ranked.interface.url.as_str();
    Some(AgentRoute {
        interface: ranked.interface.clone(),
        url: match dialect.is_grpc() {
            true => grpc_url(text, false)?,
            false => Url::parse(text).ok()?,
        },
        protocol_binding: *dialect,
    })
}

/// The address of a gRPC server. A bare `host:port` means TLS, unless the user says otherwise.
pub(crate) fn grpc_url(text: &str, plaintext: bool) -> Option<Url> {
    let (scheme, rest) = match text.split_once("://") {
        Some(("http", rest)) => ("http", rest),
        Some(("https" | "grpcs", rest)) => ("https", rest),
        Some(("grpc", rest)) => (default_url_scheme(plaintext), rest),
        Some(_) => return None,
        None => (default_url_scheme(plaintext), text),
    };
    Url::parse(&format!("{scheme}://{rest}")).ok()
}

const fn default_url_scheme(plaintext: bool) -> &'static str {
    if plaintext { "http" } else { "https" }
}

fn summarize_unusable_interfaces(ranked: &[RankedInterface<'_>]) -> String {
    let reason_texts: Vec<&str> = ranked
        .iter()
        .take(MAX_REASONS)
        .map(|one| one.reason.as_str())
        .collect();
    let more = ranked.len().saturating_sub(reason_texts.len());
    let mut text = shorten_to_line(&reason_texts.join("; "));
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::CallError;

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

    fn chosen(interfaces: &[(&str, &str, Option<&str>)]) -> Vec<(String, ProtocolBinding)> {
        callable_routes(&card(interfaces))
            .unwrap()
            .into_iter()
            .map(|route| (route.url.path().to_owned(), route.protocol_binding))
            .collect()
    }

    #[test]
    fn the_cards_order_decides_and_unspoken_bindings_are_passed_over() {
        let routes = chosen(&[
            ("http://h/pigeon", "PIGEON", Some("1.0")),
            ("http://h/old", "JSONRPC", Some("0.3")),
            ("http://h/rest", "http+json", Some("1.0")),
            ("http://h/older-rest", "HTTP+JSON", Some("0.3")),
            ("http://h/new", "JSONRPC", Some("1.1")),
        ]);
        assert_eq!(
            routes,
            [
                ("/old".to_owned(), ProtocolBinding::V0JsonRpc),
                ("/rest".to_owned(), ProtocolBinding::V1Rest),
                ("/older-rest".to_owned(), ProtocolBinding::V0Rest),
                ("/new".to_owned(), ProtocolBinding::V1JsonRpc),
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
                ("/dated".to_owned(), ProtocolBinding::V0JsonRpc),
                ("/undated".to_owned(), ProtocolBinding::V0JsonRpc),
                ("/undated".to_owned(), ProtocolBinding::V1JsonRpc),
                ("/undated".to_owned(), ProtocolBinding::V01JsonRpc),
            ]
        );
    }

    #[test]
    fn a_card_that_cannot_be_spoken_to_says_why() {
        assert_eq!(
            callable_routes(&card(&[])).unwrap_err(),
            RouteError::NoInterface
        );
        for (binding, version) in [
            ("PIGEON", "1.0"),
            ("JSONRPC", "0.0"),
            ("JSONRPC", "2.0"),
            ("JSONRPC", "1x"),
        ] {
            let error =
                callable_routes(&card(&[("http://h/", binding, Some(version))])).unwrap_err();
            let RouteError::NoneUsable { reasons } = &error else {
                panic!("{error:?}")
            };
            assert!(
                reasons.contains(if binding == "PIGEON" {
                    binding
                } else {
                    version
                }),
                "{reasons}"
            );
        }
        for url in ["", "/relative", "ftp://h/", "host:443", "http://"] {
            let error = callable_routes(&card(&[(url, "JSONRPC", Some("1.0"))])).unwrap_err();
            let RouteError::NoneUsable { reasons } = &error else {
                panic!("{error:?}")
            };
            assert!(
                reasons.contains("is not an address to call"),
                "{url}: {reasons}"
            );
        }
    }

    #[test]
    fn a_long_list_of_interfaces_stays_one_short_line() {
        let many = vec![
            (
                "http://h/some/long/path/of/an/address",
                "PIGEON",
                Some("1.0")
            );
            5000
        ];
        let error = CallError::from(callable_routes(&card(&many)).unwrap_err());
        let message = error.to_string();
        assert!(message.contains("4996 more"), "{message}");
        assert!(message.chars().count() < 400, "{message}");
    }
}
