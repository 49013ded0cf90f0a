//! Snippets for this program's own client.

use super::{AgentLocation, Credential, Plan, Snippet};
use crate::text::quote::shell;

pub fn snippet(plan: &Plan, place: AgentLocation<'_>) -> Snippet {
    Snippet {
        id: "send",
        title: "a2a-registry",
        install: String::new(),
        code: code(&plan.credentials, &plan.message, place),
    }
}

/// The command that sends this message with these credentials. Tokens and keys are variables of the command, because
/// other users see its arguments in the list of processes.
pub fn code(credentials: &[Credential], message: &str, place: AgentLocation<'_>) -> String {
    let mut variables = Vec::new();
    let mut options = Vec::new();
    for credential in credentials {
        let (list, word) = match credential {
            Credential::Bearer => (&mut variables, "A2A_AGENT_TOKEN=\"$A2A_TOKEN\" \\\n"),
            Credential::Authorization => (
                &mut options,
                "--header \"Authorization: $A2A_AUTHORIZATION\" \\\n  ",
            ),
            Credential::HeaderKey(_) | Credential::CookieKey(_) | Credential::QueryKey(_) => {
                (&mut variables, "A2A_AGENT_KEY=\"$A2A_API_KEY\" \\\n")
            }
        };
        // One key goes to every place that the card names.
        if !list.contains(&word) {
            list.push(word);
        }
    }
    let mut code = variables.concat();
    code.push_str(&format!(
        "a2a-registry send --registry {} \\\n  ",
        shell(place.registry)
    ));
    code.push_str(&options.concat());
    // What follows two dashes is not an option, however it begins.
    let dashes = if message.starts_with('-') { "-- " } else { "" };
    code.push_str(&format!(
        "{dashes}{} {}",
        shell(place.agent),
        shell(message)
    ));
    code
}
