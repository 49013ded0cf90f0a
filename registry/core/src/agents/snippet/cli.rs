//! Snippets for this program's own command-line client.

use super::{AgentUrls, CredentialPlacement, Snippet, SnippetSpec};
use crate::text::quote::shell_word;

pub fn build_cli_snippet(spec: &SnippetSpec, urls: AgentUrls<'_>) -> Snippet {
    Snippet {
        id: "send",
        title: "a2a-registry",
        install: String::new(),
        code: cli_snippet_code(&spec.credentials, &spec.message, urls),
    }
}

/// The command that sends this message with these credentials. Tokens and keys are environment variables of the
/// command, because other users can see its arguments in the process list.
pub fn cli_snippet_code(
    credentials: &[CredentialPlacement],
    message: &str,
    urls: AgentUrls<'_>,
) -> String {
    let mut variables = Vec::new();
    let mut options = Vec::new();
    for credential in credentials {
        let (list, fragment) = match credential {
            CredentialPlacement::Bearer => (&mut variables, "A2A_AGENT_TOKEN=\"$A2A_TOKEN\" \\\n"),
            CredentialPlacement::Authorization => (
                &mut options,
                "--header \"Authorization: $A2A_AUTHORIZATION\" \\\n  ",
            ),
            CredentialPlacement::HeaderKey(_)
            | CredentialPlacement::CookieKey(_)
            | CredentialPlacement::QueryKey(_) => {
                (&mut variables, "A2A_AGENT_KEY=\"$A2A_API_KEY\" \\\n")
            }
        };
        // The same key is sent in every position that the card names.
        if !list.contains(&fragment) {
            list.push(fragment);
        }
    }
    let mut code = variables.concat();
    code.push_str(&format!(
        "a2a-registry send --registry {} \\\n  ",
        shell_word(urls.registry)
    ));
    code.push_str(&options.concat());
    // Text after two dashes is never parsed as an option.
    let dashes = if message.starts_with('-') { "-- " } else { "" };
    code.push_str(&format!(
        "{dashes}{} {}",
        shell_word(urls.agent),
        shell_word(message)
    ));
    code
}
