//! The same by this program's own client.

use super::{AgentLocation, Credential, Plan, Snippet};
use crate::pages::quote::shell;

/// The snippet.
pub(crate) fn snippet(plan: &Plan, place: AgentLocation<'_>) -> Snippet {
    Snippet {
        id: "send",
        title: "a2a-registry",
        install: String::new(),
        code: code(&plan.credentials, &plan.message, place),
    }
}

/// The command that sends this message with these credentials.
pub(crate) fn code(credentials: &[Credential], message: &str, place: AgentLocation<'_>) -> String {
    let mut code = format!(
        "a2a-registry send --registry {} \\\n  ",
        shell(place.registry)
    );
    let mut options = Vec::new();
    for credential in credentials {
        let option = match credential {
            Credential::Bearer => "--bearer \"$A2A_TOKEN\" \\\n  ",
            Credential::Authorization => "--header \"Authorization: $A2A_AUTHORIZATION\" \\\n  ",
            Credential::HeaderKey(_) | Credential::CookieKey(_) | Credential::QueryKey(_) => {
                "--api-key \"$A2A_API_KEY\" \\\n  "
            }
        };
        // One key goes to every place the card names.
        if !options.contains(&option) {
            options.push(option);
        }
    }
    code.push_str(&options.concat());
    // What follows two dashes is no option, however it begins.
    let dashes = if message.starts_with('-') { "-- " } else { "" };
    code.push_str(&format!(
        "{dashes}{} {}",
        shell(place.agent),
        shell(message)
    ));
    code
}
