//! Console on an agent's page: the visitor's browser communicates with the agent directly, not through the registry.
//!
//! Interfaces of the card are selected by the same rules as in `send`: [`a2a_client::route_selection`]. The page passes the
//! selected interfaces to the script `web/static/console.js` as data, and allows the browser to connect only to their
//! origins.

use std::fmt::Write as _;

use a2a_card::{AgentCard, AuthScheme, Interface, SchemeKind, UNKNOWN_BINDING, auth_requirements};
use a2a_client::route_selection::{
    AgentRoute, CredentialPlacement, ProtocolBinding, callable_routes, scheme_placement,
};
use a2a_registry_api::Agent;
use a2a_registry_core::agents::snippet::{
    AgentUrls, build_send_command, route_protocol_label, snippet_supports_route,
};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::policies::access_decision;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::signature::SignatureState;
use serde_json::{Value, json};

use crate::answers::content_security_policy::CspConnectSource;
use crate::pages::agent::is_listed;

/// Maximum number of interfaces that a visitor can choose from.
const MAX_INTERFACES: usize = 8;
const MAX_FIELDS: usize = 8;
/// Maximum number of notes about interfaces that are left out.
const MAX_LEFT_OUT_NOTES: usize = 4;

/// Protocol bindings that the script supports, with their names in the script.
const SCRIPT_BINDINGS: [(ProtocolBinding, &str); 4] = [
    (ProtocolBinding::V1JsonRpc, "1.0-jsonrpc"),
    (ProtocolBinding::V1Rest, "1.0-rest"),
    (ProtocolBinding::V0JsonRpc, "0.3-jsonrpc"),
    (ProtocolBinding::V0Rest, "0.3-rest"),
];

#[derive(Debug)]
pub(crate) enum ConsoleView {
    Open(ConsoleData),
    Closed {
        reason: String,
        /// Command to call the agent instead; `None` if the agent must not be called.
        command: Option<String>,
    },
}

#[derive(Debug)]
pub(crate) struct ConsoleData {
    /// Warnings shown before the first message.
    pub warnings: Vec<String>,
    pub interfaces: Vec<String>,
    pub left_out: Vec<String>,
    pub fields: Vec<CredentialField>,
    /// Whether the card requires credentials from every caller.
    pub asks: bool,
    /// Data for the script, as ASCII JSON.
    pub data: String,
    /// Origins that the page may call.
    pub origins: Vec<CspConnectSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CredentialField {
    /// How the credential is sent: `bearer`, `basic`, `authorization`, `header` or `query`.
    pub kind: &'static str,
    /// Name of the header or query parameter; empty for other kinds.
    pub name: String,
    pub label: String,
}

/// Reason why the caller may not call an agent that it sees; `None` if it may.
pub(crate) async fn call_denial_reason(
    context: &AppContext,
    caller: &Caller,
    agent: &Agent,
) -> Option<String> {
    if !is_listed(agent) {
        let lifecycle = text::single_line(agent.hit.summary.lifecycle.as_str(), LINE);
        return Some(format!(
            "The agent is {lifecycle}; only listed agents can be called from this page."
        ));
    }
    let id = agent.hit.summary.id.to_string();
    let Ok(reason) = access_decision::call_denial_reason(context, caller, &id).await else {
        return Some(
            "The policies cannot be evaluated now, so the agent cannot be called.".to_owned(),
        );
    };
    let reason = text::single_line(&reason?, BLOCK);
    Some(format!(
        "The policies of this registry do not allow you to call this agent. {reason}"
    ))
}

impl ConsoleView {
    /// Console for an agent, disabled if there is a reason why the caller may not call it. For a card in `snake_case`,
    /// the formats of the a2a-protocol skill come first.
    pub(crate) fn new(
        agent: &Agent,
        denial_reason: Option<String>,
        location: AgentUrls<'_>,
        is_snake_case: bool,
    ) -> Self {
        if let Some(reason) = denial_reason {
            return Self::Closed {
                reason,
                command: None,
            };
        }
        let card = &agent.card;
        let (callable, left_out) = callable_interfaces(card);
        let reason = match (unsendable_credentials_reason(card), callable.first()) {
            (Some(reason), _) => Some(reason),
            (None, None) => Some(no_interface_reason(agent, &left_out)),
            (None, Some(_)) => None,
        };
        if let Some(reason) = reason {
            let has_address = !card.interfaces.is_empty() || agent.assumed_url.is_some();
            let command = has_address.then(|| build_send_command(card, location));
            return Self::Closed { reason, command };
        }
        let mut origins: Vec<_> = callable.iter().map(|one| one.origin.clone()).collect();
        origins.sort();
        origins.dedup();
        let fields = credential_fields(card);
        let data = json!({
            "names": fields.iter().map(|field| &field.name).collect::<Vec<_>>(),
            "interfaces": callable.iter().map(CallableInterface::script_data).collect::<Vec<_>>(),
            "streams": card.capabilities.streaming,
            "skillFirst": is_snake_case,
            "command": build_send_command(card, location),
        });
        Self::Open(ConsoleData {
            warnings: agent_warnings(agent),
            interfaces: callable
                .iter()
                .map(CallableInterface::description)
                .collect(),
            left_out,
            fields,
            asks: auth_requirements(card).required,
            data: ascii_json(&data),
            origins,
        })
    }

    pub(crate) fn connect_origins(&self) -> &[CspConnectSource] {
        match self {
            Self::Open(console) => &console.origins,
            Self::Closed { .. } => &[],
        }
    }
}

struct CallableInterface {
    route: AgentRoute,
    script_binding: &'static str,
    origin: CspConnectSource,
}

impl CallableInterface {
    fn description(&self) -> String {
        let mut words = format!(
            "{} at {}",
            route_protocol_label(&self.route),
            self.route.url
        );
        if let Some(tenant) = self.route.tenant() {
            let _ = write!(words, ", tenant {tenant}");
        }
        text::single_line(&words, text::ADDRESS)
    }

    fn script_data(&self) -> Value {
        json!({
            "dialect": self.script_binding,
            "url": self.route.url.as_str(),
            "origin": self.origin.as_str(),
            "tenant": self.route.tenant(),
        })
    }
}

/// Interfaces that the script can call, in order of preference, and notes about the others.
fn callable_interfaces(card: &AgentCard) -> (Vec<CallableInterface>, Vec<String>) {
    let (mut callable, mut left_out) = (Vec::new(), Vec::new());
    for route in callable_routes(card).unwrap_or_default() {
        let Some(&(_, dialect)) = SCRIPT_BINDINGS
            .iter()
            .find(|(known, _)| *known == route.protocol_binding)
        else {
            continue;
        };
        match CspConnectSource::from_url(&route.url).filter(|_| snippet_supports_route(&route)) {
            Some(origin) if callable.len() < MAX_INTERFACES => callable.push(CallableInterface {
                route,
                script_binding: dialect,
                origin,
            }),
            None if left_out.len() < MAX_LEFT_OUT_NOTES => left_out.push(format!(
                "{} is left out because the page's content security policy cannot express its URL.",
                route_protocol_label(&route)
            )),
            _ => {}
        }
    }
    (callable, left_out)
}

fn no_interface_reason(agent: &Agent, left_out: &[String]) -> String {
    let card = &agent.card;
    let is_grpc = |binding: &str| binding.eq_ignore_ascii_case("GRPC");
    let is_unknown = |one: &Interface| one.binding == UNKNOWN_BINDING;
    let mut bindings = card.interfaces.iter().map(|one| one.binding.as_str());
    if agent.assumed_url.is_some() {
        "The card names no URL, and this page does not call an assumed one.".to_owned()
    } else if card.interfaces.is_empty() {
        "The card has no interface, so the agent cannot be called.".to_owned()
    } else if !left_out.is_empty() {
        "The page's content security policy cannot express the URL of this agent, so the page cannot call \
         it.".to_owned()
    } else if card.interfaces.iter().all(is_unknown) {
        "The card names a URL but not its protocol binding.".to_owned()
    } else if bindings.all(is_grpc) {
        "The agent supports only gRPC, which browsers cannot use.".to_owned()
    } else {
        "Browsers cannot call any of the agent's interfaces.".to_owned()
    }
}

/// Reason why a page cannot send the required credentials; `None` if it can.
fn unsendable_credentials_reason(card: &AgentCard) -> Option<String> {
    let requirements = auth_requirements(card);
    let mut obstacles = Vec::new();
    for alternative in &requirements.alternatives {
        obstacles.push(alternative.iter().find_map(unmet_scheme_reason)?);
    }
    let first = obstacles.first().filter(|_| requirements.required)?;
    Some((*first).to_owned())
}

/// Reason why a page cannot use a security scheme.
fn unmet_scheme_reason(auth_scheme: &AuthScheme<'_>) -> Option<&'static str> {
    if matches!(auth_scheme.kind.as_deref(), Some(SchemeKind::MutualTls)) {
        return Some(
            "The agent requires a client certificate (mutual TLS), which a web page cannot present.",
        );
    }
    match scheme_placement(auth_scheme) {
        Ok(Some(CredentialPlacement::CookieKey(_))) => Some(
            "The agent requires an API key in a cookie, which a web page cannot send to another site.",
        ),
        _ => None,
    }
}

fn credential_fields(card: &AgentCard) -> Vec<CredentialField> {
    let mut fields = Vec::new();
    let requirements = auth_requirements(card);
    for asked in requirements.alternatives.iter().flatten() {
        let Some(field) = credential_field(asked) else {
            continue;
        };
        if fields.len() < MAX_FIELDS && !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

fn credential_field(auth_scheme: &AuthScheme<'_>) -> Option<CredentialField> {
    let is_basic = |kind: &SchemeKind| matches!(kind, SchemeKind::Http { scheme, .. } if scheme.eq_ignore_ascii_case("basic"));
    let (kind, name, label) = match scheme_placement(auth_scheme) {
        Ok(Some(CredentialPlacement::Bearer)) => {
            ("bearer", String::new(), "Access token".to_owned())
        }
        Ok(Some(CredentialPlacement::Authorization))
            if auth_scheme.kind.as_deref().is_some_and(is_basic) =>
        {
            ("basic", String::new(), "Password".to_owned())
        }
        Ok(Some(CredentialPlacement::Authorization)) => (
            "authorization",
            String::new(),
            "Complete Authorization header".to_owned(),
        ),
        Ok(Some(CredentialPlacement::HeaderKey(name))) => {
            let label = format!(
                "API key, sent in the header {}",
                text::single_line(&name, LINE)
            );
            ("header", name, label)
        }
        Ok(Some(CredentialPlacement::QueryKey(name))) => {
            let label = format!(
                "API key, sent in the query as {}",
                text::single_line(&name, LINE)
            );
            ("query", name, label)
        }
        _ => return None,
    };
    Some(CredentialField { kind, name, label })
}

/// Warnings shown before the first message.
fn agent_warnings(agent: &Agent) -> Vec<String> {
    let mut warnings = Vec::new();
    if agent.hit.summary.lifecycle.as_str() == "deprecated" {
        warnings.push("The agent is deprecated.".to_owned());
    }
    if agent.signature_verdict.state.known_value() == Some(SignatureState::Invalid) {
        warnings.push(
            "A signature on the card is invalid, so the URL may have been tampered with."
                .to_owned(),
        );
    }
    warnings
}

/// ASCII JSON, so that no character of a card is invisible in the page source.
fn ascii_json(data: &Value) -> String {
    let mut out = String::new();
    for character in data.to_string().chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn card(members: &str) -> AgentCard {
        let card = format!(r#"{{"name": "A", {members}}}"#);
        a2a_card::parse_card(card.as_bytes()).unwrap().card
    }

    fn secured(schemes: &str, required: &str) -> AgentCard {
        card(&format!(
            r#""url": "https://a.example/", "securitySchemes": {{{schemes}}}, "security": [{required}]"#
        ))
    }

    const BEARER: &str = r#""b": {"type": "http", "scheme": "bearer"}"#;
    const TLS: &str = r#""t": {"type": "mutualTLS"}"#;
    const COOKIE: &str = r#""c": {"type": "apiKey", "in": "cookie", "name": "k"}"#;

    #[test]
    fn interfaces_are_those_of_the_choice_as_far_as_a_page_can_call_them() {
        let card = card(
            r#""supportedInterfaces": [
                {"url": "https://a.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": "https://[::1]/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": "https://b.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "t"},
                {"url": "https://c.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]"#,
        );
        let (found, left_out) = callable_interfaces(&card);
        let data: Vec<Value> = found.iter().map(CallableInterface::script_data).collect();
        assert_eq!(
            data,
            [
                json!({"dialect": "1.0-rest", "url": "https://b.example/rest", "origin": "https://b.example", "tenant": "t"}),
                json!({"dialect": "0.3-jsonrpc", "url": "https://c.example/rpc", "origin": "https://c.example", "tenant": null}),
            ]
        );
        let words = "A2A 1.0 over HTTP+JSON at https://b.example/rest, tenant t";
        assert_eq!(found[0].description(), words);
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        assert!(left_out[0].starts_with("A2A 1.0 over JSON-RPC"));
    }

    #[test]
    fn an_alternative_that_a_page_can_meet_is_enough() {
        let all = format!("{BEARER}, {TLS}, {COOKIE}");
        for (required, reached) in [
            (r#"{"b": []}"#, true),
            (r#"{"t": []}"#, false),
            (r#"{"c": []}"#, false),
            (r#"{"b": [], "t": []}"#, false),
            (r#"{"t": []}, {"c": []}"#, false),
            (r#"{"t": []}, {"b": []}"#, true),
            (r#"{"t": []}, {}"#, true),
        ] {
            let reason = unsendable_credentials_reason(&secured(&all, required));
            assert_eq!(reason.is_none(), reached, "{required}: {reason:?}");
        }
        // Schemes that a card only declares are not required.
        assert_eq!(unsendable_credentials_reason(&secured(TLS, "")), None);
    }

    #[test]
    fn each_credential_has_one_field() {
        let schemes = format!(
            r#"{BEARER}, {TLS}, "o": {{"type": "openIdConnect", "openIdConnectUrl": "https://i.example"}},
            "p": {{"type": "http", "scheme": "Basic"}}, "d": {{"type": "http", "scheme": "digest"}},
            "h": {{"type": "apiKey", "in": "header", "name": "X-Key"}},
            "q": {{"type": "apiKey", "in": "query", "name": "key"}},
            "bad": {{"type": "apiKey", "in": "header", "name": "X: y"}}"#
        );
        let required = r#"{"b": []}, {"o": []}, {"p": []}, {"d": []}, {"h": [], "q": []}, {"t": []}, {"bad": []}"#;
        let found = credential_fields(&secured(&schemes, required));
        let kinds: Vec<_> = found
            .iter()
            .map(|field| (field.kind, field.name.as_str()))
            .collect();
        let wanted = [
            ("bearer", ""),
            ("basic", ""),
            ("authorization", ""),
            ("header", "X-Key"),
            ("query", "key"),
        ];
        assert_eq!(kinds, wanted);
    }

    #[test]
    fn data_for_the_script_is_plain_ascii_and_means_the_same() {
        let data = json!({"tenant": "\u{202e}x\u{2028}</script>\u{1f680}\"\\"});
        let text = ascii_json(&data);
        assert!(text.is_ascii(), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), data);
    }
}
