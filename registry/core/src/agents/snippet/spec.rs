//! Chooses the interface, protocol version and credentials of a snippet, by the same rules as `send`:
//! [`a2a_client::route_selection`].

use a2a_card::{AgentCard, AuthScheme};
use a2a_client::route_selection::{
    AgentRoute, AvailableCredentials, CredentialChoice, CredentialPlacement, ProtocolBinding,
    UnmetSchemeReason, callable_routes, choose_credentials, scheme_placement,
};

use crate::text;

/// Maximum length of an example prompt that becomes the message of a snippet, in characters.
const MAX_EXAMPLE_CHARS: usize = 160;
/// Maximum length of an address in a snippet, in bytes.
const MAX_URL_BYTES: usize = 1_000;
/// Maximum length of a tenant in a snippet, in bytes.
const MAX_TENANT_BYTES: usize = 200;
/// Maximum number of required extensions that are named.
const MAX_EXTENSIONS: usize = 5;

/// A generation of the protocol, which has its own SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkGeneration {
    V1,
    V03,
    /// 0.2, with the message formats of 0.3.
    V02,
    /// 0.1, which no SDK supports any more.
    V01,
}

pub const fn credential_variable(credential: &CredentialPlacement) -> (&'static str, &'static str) {
    match credential {
        CredentialPlacement::Bearer => ("A2A_TOKEN", "your access token"),
        CredentialPlacement::Authorization => (
            "A2A_AUTHORIZATION",
            "the whole value of your Authorization header",
        ),
        CredentialPlacement::HeaderKey(_)
        | CredentialPlacement::CookieKey(_)
        | CredentialPlacement::QueryKey(_) => ("A2A_API_KEY", "your API key"),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SnippetSpec {
    pub route: AgentRoute,
    pub credentials: Vec<CredentialPlacement>,
    /// A short example from the card, if it has one.
    pub message: String,
    /// Limitations of the snippet, as notes for a page.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnippetUnavailable {
    #[error("The card lists no interface, so the agent cannot be called.")]
    NoInterface,
    /// Snippets support none of the interfaces.
    #[error(
        "None of the interfaces is JSON-RPC (0.1, 0.2, 0.3, 1.0), HTTP+JSON or gRPC (0.3, 1.0) at an address that can be called; \
         use a client that supports one of those listed below."
    )]
    NoSupportedInterface,
}

impl SnippetSpec {
    /// The generation of an interface. Only cards before 0.2.5 may leave the version out.
    pub fn sdk_generation(&self) -> SdkGeneration {
        let version = self.route.interface.protocol_version.as_deref();
        match self.route.protocol_binding {
            ProtocolBinding::V1JsonRpc
            | ProtocolBinding::V1Rest
            | ProtocolBinding::V1Grpc
            | ProtocolBinding::SkillJsonRpc
            | ProtocolBinding::SkillRest => SdkGeneration::V1,
            ProtocolBinding::V0Rest | ProtocolBinding::V0Grpc => SdkGeneration::V03,
            ProtocolBinding::V01JsonRpc => SdkGeneration::V01,
            ProtocolBinding::V0JsonRpc if version == Some("0.3") => SdkGeneration::V03,
            ProtocolBinding::V0JsonRpc | ProtocolBinding::PromptKitJsonRpc => SdkGeneration::V02,
        }
    }

    pub fn protocol_label(&self) -> &'static str {
        match (self.route.protocol_binding, self.sdk_generation()) {
            (ProtocolBinding::V1JsonRpc | ProtocolBinding::SkillJsonRpc, _) => {
                "A2A 1.0 over JSON-RPC"
            }
            (ProtocolBinding::V1Rest | ProtocolBinding::SkillRest, _) => "A2A 1.0 over HTTP+JSON",
            (ProtocolBinding::V0Rest, _) => "A2A 0.3 over HTTP+JSON",
            (ProtocolBinding::V1Grpc, _) => "A2A 1.0 over gRPC",
            (ProtocolBinding::V0Grpc, _) => "A2A 0.3 over gRPC",
            (ProtocolBinding::V01JsonRpc, _) => "A2A 0.1 over JSON-RPC",
            (ProtocolBinding::V0JsonRpc, SdkGeneration::V03) => "A2A 0.3 over JSON-RPC",
            (ProtocolBinding::V0JsonRpc | ProtocolBinding::PromptKitJsonRpc, _) => {
                "A2A 0.2 over JSON-RPC"
            }
        }
    }
}

/// Chooses the first interface that a snippet can use, in the order in which clients try them.
pub fn choose_snippet_spec(card: &AgentCard) -> Result<SnippetSpec, SnippetUnavailable> {
    if card.interfaces.is_empty() {
        return Err(SnippetUnavailable::NoInterface);
    }
    let routes = callable_routes(card).map_err(|_| SnippetUnavailable::NoSupportedInterface)?;
    // curl and most SDKs do not support gRPC, so it comes last.
    let http_route = routes
        .iter()
        .find(|route| !route.protocol_binding.is_grpc() && snippet_supports_route(route));
    let route = http_route.or_else(|| routes.iter().find(|route| snippet_supports_route(route)));
    let route = route
        .cloned()
        .ok_or(SnippetUnavailable::NoSupportedInterface)?;
    let mut notes = Vec::new();
    if route.protocol_binding.is_grpc() {
        notes.push("The agent supports only gRPC, which curl does not support.".to_owned());
    }
    if route.protocol_binding.is_v0_1() {
        notes.push("The agent uses A2A 0.1, which the SDKs no longer support.".to_owned());
    }
    let credentials = choose_snippet_credentials(card, &mut notes);
    note_required_extensions(card, &mut notes);
    Ok(SnippetSpec {
        route,
        credentials,
        message: example_message(card),
        notes,
    })
}

/// Whether a snippet can contain the address, which must not show a password, and the tenant.
pub fn snippet_supports_route(route: &AgentRoute) -> bool {
    text::safe_web_url(route.url.as_str()).is_some()
        && route.url.as_str().len() <= MAX_URL_BYTES
        && route
            .tenant()
            .is_none_or(|tenant| tenant.len() <= MAX_TENANT_BYTES)
}

/// Chooses the credentials; empty if the card requires none, or only ones that a snippet cannot express.
fn choose_snippet_credentials(
    card: &AgentCard,
    notes: &mut Vec<String>,
) -> Vec<CredentialPlacement> {
    match choose_credentials(card, &AvailableCredentials::AnyDescribable) {
        CredentialChoice::Placements(credentials) => credentials,
        CredentialChoice::NotRequired => Vec::new(),
        CredentialChoice::Unsatisfiable(alternatives) => {
            notes.push(alternatives.first().map_or_else(
                || {
                    "The snippets omit the credentials that the card requires: it describes them in a form that is \
                     not understood."
                        .to_owned()
                },
                |alternative| unmet_auth_note(alternative),
            ));
            Vec::new()
        }
    }
}

/// A note about the requirements of an alternative that no snippet can meet.
fn unmet_auth_note(alternative: &[AuthScheme<'_>]) -> String {
    let obstacle = alternative
        .iter()
        .find_map(|scheme| scheme_placement(scheme).err());
    let requirement = match obstacle {
        Some(UnmetSchemeReason::UnknownLocation) => {
            "an API key without a position in the request".to_owned()
        }
        Some(UnmetSchemeReason::ClientCertificate) => {
            "a client certificate (mutual TLS)".to_owned()
        }
        Some(UnmetSchemeReason::UnknownKind(label)) => {
            format!(
                "“{}”, a custom scheme",
                text::single_line(label, text::LINE)
            )
        }
        Some(UnmetSchemeReason::Undeclared) | None => {
            "a scheme that it does not declare".to_owned()
        }
    };
    format!("The snippets omit what the card requires: {requirement}.")
}

fn note_required_extensions(card: &AgentCard, notes: &mut Vec<String>) {
    let required: Vec<&str> = card
        .capabilities
        .extensions
        .iter()
        .filter(|extension| extension.required)
        .map(|extension| extension.uri.as_str())
        .collect();
    for uri in required.iter().take(MAX_EXTENSIONS) {
        notes.push(format!(
            "The agent requires the protocol extension {}, which the snippets do not support.",
            text::single_line(uri, text::LINE)
        ));
    }
    if required.len() > MAX_EXTENSIONS {
        notes.push(format!(
            "It requires {} more extensions.",
            required.len() - MAX_EXTENSIONS
        ));
    }
}

/// The first example of the card that fits on a line.
pub fn example_message(card: &AgentCard) -> String {
    card.skills
        .iter()
        .flat_map(|skill| &skill.examples)
        .map(|example| example.trim())
        .find(|example| {
            !example.is_empty()
                && example.chars().count() <= MAX_EXAMPLE_CHARS
                && !example.contains('\n')
        })
        .unwrap_or("Hello! What can you do?")
        .to_owned()
}
