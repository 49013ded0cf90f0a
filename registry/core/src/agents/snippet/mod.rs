//! Ready-made snippets that call an agent directly, in the protocol version of its card.
//!
//! `spec` chooses interface, message and credentials; one file for each language renders them. Card text reaches a
//! snippet only through `text::quote`.

pub mod cli;
pub mod curl;
pub mod javascript;
pub mod python;
pub mod spec;
#[cfg(test)]
mod tests;

use a2a_card::AgentCard;
use a2a_client::route_selection::{AgentRoute, CredentialPlacement, ProtocolBinding};

pub use spec::SnippetUnavailable;
pub use spec::snippet_supports_route;
use spec::{SdkGeneration, SnippetSpec};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// A short name for use in markup: `curl`, `python`, `javascript`, `send`.
    pub id: &'static str,
    pub title: &'static str,
    /// What to install first; empty if nothing.
    pub install: String,
    pub code: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippets {
    pub dialect: &'static str,
    pub url: String,
    pub snippets: Vec<Snippet>,
    /// Environment variables to set first, with their meaning.
    pub variables: Vec<(&'static str, &'static str)>,
    /// Limitations of the snippets.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct AgentUrls<'a> {
    pub agent: &'a str,
    /// The base URL for an SDK's card resolver.
    pub resolver: &'a str,
    pub registry: &'a str,
}

pub fn build_snippets(
    card: &AgentCard,
    urls: AgentUrls<'_>,
) -> Result<Snippets, SnippetUnavailable> {
    let spec = spec::choose_snippet_spec(card)?;
    let mut variables = Vec::new();
    for credential in &spec.credentials {
        let variable = spec::credential_variable(credential);
        if !variables.contains(&variable) {
            variables.push(variable);
        }
    }
    let command = cli::build_cli_snippet(&spec, urls);
    Ok(Snippets {
        dialect: spec.protocol_label(),
        snippets: match spec.route.protocol_binding {
            ProtocolBinding::V1Grpc | ProtocolBinding::V0Grpc => vec![command],
            ProtocolBinding::V01JsonRpc => vec![curl::build_curl_snippet(&spec), command],
            _ => vec![
                curl::build_curl_snippet(&spec),
                python::build_python_snippet(&spec, urls),
                javascript::build_javascript_snippet(&spec, urls),
                command,
            ],
        },
        variables,
        notes: spec.notes,
        url: spec.route.url.into(),
    })
}

pub fn route_protocol_label(route: &AgentRoute) -> &'static str {
    let spec = SnippetSpec {
        route: route.clone(),
        credentials: Vec::new(),
        message: String::new(),
        notes: Vec::new(),
    };
    spec.protocol_label()
}

/// The command that sends the agent a message, for an agent that this page cannot call by itself. Unlike a snippet it
/// is shown for every card: the program itself reports what it cannot do.
pub fn build_send_command(card: &AgentCard, urls: AgentUrls<'_>) -> String {
    match spec::choose_snippet_spec(card) {
        Ok(spec) => cli::build_cli_snippet(&spec, urls).code,
        Err(_) => cli::cli_snippet_code(&[], &spec::example_message(card), urls),
    }
}
