//! Chooses the interface, protocol version and credentials of a snippet. The rules of the choice are
//! those of `send`: [`a2a_client::choice`].

use a2a_card::{AgentCard, AuthScheme};
use a2a_client::choice::{
    Credential, CredentialChoice, Dialect, Means, Obstacle, Route, choose_credentials, credential,
    routes,
};

use crate::text;

/// Characters of an example prompt that is short enough to be the message of a snippet.
const EXAMPLE: usize = 160;
/// Bytes of an address in a snippet.
const ADDRESS: usize = 1_000;
/// Bytes of a tenant in a snippet.
const TENANT: usize = 200;
/// Maximum number of required extensions that are named.
const EXTENSIONS: usize = 5;

/// A generation of the protocol: each has an SDK of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    V1,
    V03,
    /// 0.2; the shapes of 0.3.
    V02,
    /// 0.1, which no SDK speaks any more.
    V01,
}

pub const fn variable(credential: &Credential) -> (&'static str, &'static str) {
    match credential {
        Credential::Bearer => ("A2A_TOKEN", "your access token"),
        Credential::Authorization => (
            "A2A_AUTHORIZATION",
            "the whole value of your Authorization header",
        ),
        Credential::HeaderKey(_) | Credential::CookieKey(_) | Credential::QueryKey(_) => {
            ("A2A_API_KEY", "your API key")
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub route: Route,
    pub credentials: Vec<Credential>,
    /// A short example of the card, if it has one.
    pub message: String,
    /// What the snippet cannot do, as notes for a page.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    #[error("The card lists no interface, so the agent cannot be called.")]
    NoInterface,
    /// Snippets support none of the interfaces.
    #[error(
        "None of the interfaces is JSON-RPC (0.1, 0.2, 0.3, 1.0), HTTP+JSON or gRPC (0.3, 1.0) at an address that can be called; \
         use a client that speaks one of those listed below."
    )]
    NoneSpoken,
}

impl Plan {
    /// The generation of an interface. Only cards before 0.2.5 may leave the version out.
    pub fn generation(&self) -> Generation {
        let version = self.route.interface.protocol_version.as_deref();
        match self.route.dialect {
            Dialect::V1JsonRpc
            | Dialect::V1Rest
            | Dialect::V1Grpc
            | Dialect::SkillJsonRpc
            | Dialect::SkillRest => Generation::V1,
            Dialect::V0Rest | Dialect::V0Grpc => Generation::V03,
            Dialect::V01JsonRpc => Generation::V01,
            Dialect::V0JsonRpc if version == Some("0.3") => Generation::V03,
            Dialect::V0JsonRpc | Dialect::PromptKitJsonRpc => Generation::V02,
        }
    }

    pub fn label(&self) -> &'static str {
        match (self.route.dialect, self.generation()) {
            (Dialect::V1JsonRpc | Dialect::SkillJsonRpc, _) => "A2A 1.0 over JSON-RPC",
            (Dialect::V1Rest | Dialect::SkillRest, _) => "A2A 1.0 over HTTP+JSON",
            (Dialect::V0Rest, _) => "A2A 0.3 over HTTP+JSON",
            (Dialect::V1Grpc, _) => "A2A 1.0 over gRPC",
            (Dialect::V0Grpc, _) => "A2A 0.3 over gRPC",
            (Dialect::V01JsonRpc, _) => "A2A 0.1 over JSON-RPC",
            (Dialect::V0JsonRpc, Generation::V03) => "A2A 0.3 over JSON-RPC",
            (Dialect::V0JsonRpc | Dialect::PromptKitJsonRpc, _) => "A2A 0.2 over JSON-RPC",
        }
    }
}

/// The first interface that a snippet can use, in the order in which clients try them.
pub fn plan(card: &AgentCard) -> Result<Plan, NoPlan> {
    if card.interfaces.is_empty() {
        return Err(NoPlan::NoInterface);
    }
    let routes = routes(card).map_err(|_| NoPlan::NoneSpoken)?;
    // curl and most SDKs speak no gRPC, so it comes last.
    let on_the_web = routes
        .iter()
        .find(|route| !route.dialect.is_grpc() && fits(route));
    let route = on_the_web.or_else(|| routes.iter().find(|route| fits(route)));
    let route = route.cloned().ok_or(NoPlan::NoneSpoken)?;
    let mut notes = Vec::new();
    if route.dialect.is_grpc() {
        notes.push("The agent speaks gRPC only, which curl does not.".to_owned());
    }
    if route.dialect.is_v0_1() {
        notes.push("The agent speaks A2A 0.1, which the SDKs have left behind.".to_owned());
    }
    let credentials = credentials(card, &mut notes);
    required_extensions(card, &mut notes);
    Ok(Plan {
        route,
        credentials,
        message: message(card),
        notes,
    })
}

/// Whether a snippet can contain the address, which shows no password either, and the tenant.
pub fn fits(route: &Route) -> bool {
    text::web_address(route.url.as_str()).is_some()
        && route.url.as_str().len() <= ADDRESS
        && route.tenant().is_none_or(|tenant| tenant.len() <= TENANT)
}

/// Empty if the card requires none, or only ones that a snippet cannot name.
fn credentials(card: &AgentCard, notes: &mut Vec<String>) -> Vec<Credential> {
    match choose_credentials(card, &Means::Nameable) {
        CredentialChoice::With(credentials) => credentials,
        CredentialChoice::Free => Vec::new(),
        CredentialChoice::Closed(alternatives) => {
            notes.push(alternatives.first().map_or_else(
                || {
                    "The snippets leave out the credentials that the card asks for: it describes them in a form that \
                     is not understood."
                        .to_owned()
                },
                |alternative| left_out(alternative),
            ));
            Vec::new()
        }
    }
}

/// The requirements of an alternative that no snippet can meet.
fn left_out(alternative: &[AuthScheme<'_>]) -> String {
    let obstacle = alternative.iter().find_map(|asked| credential(asked).err());
    let what = match obstacle {
        Some(Obstacle::NoPlace) => "an API key without a place in the request".to_owned(),
        Some(Obstacle::Certificate) => "a client certificate (mutual TLS)".to_owned(),
        Some(Obstacle::Unknown(label)) => {
            format!("“{}”, a scheme of its own", text::line(label, text::LINE))
        }
        Some(Obstacle::Unexplained) | None => "a scheme that it does not explain".to_owned(),
    };
    format!("The snippets leave out what the card asks for: {what}.")
}

fn required_extensions(card: &AgentCard, notes: &mut Vec<String>) {
    let required: Vec<&str> = card
        .capabilities
        .extensions
        .iter()
        .filter(|extension| extension.required)
        .map(|extension| extension.uri.as_str())
        .collect();
    for uri in required.iter().take(EXTENSIONS) {
        notes.push(format!(
            "The agent requires the protocol extension {}, which the snippets do not speak.",
            text::line(uri, text::LINE)
        ));
    }
    if required.len() > EXTENSIONS {
        notes.push(format!(
            "It requires {} more extensions.",
            required.len() - EXTENSIONS
        ));
    }
}

/// The first example of the card that fits on a line.
pub fn message(card: &AgentCard) -> String {
    card.skills
        .iter()
        .flat_map(|skill| &skill.examples)
        .map(|example| example.trim())
        .find(|example| {
            !example.is_empty() && example.chars().count() <= EXAMPLE && !example.contains('\n')
        })
        .unwrap_or("Hello! What can you do?")
        .to_owned()
}
