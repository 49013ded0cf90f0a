//! The same by this program's own client.

use crate::agents::snippet::Credential;
use crate::agents::snippet::Place;
use crate::agents::snippet::Plan;
use crate::agents::snippet::Snippet;
use crate::pages::quote::shell;

/// The snippet.
pub(crate) fn snippet(plan: &Plan, place: Place<'_>) -> Snippet {
    let mut code = format!(
        "a2a-registry send --registry {} \\\n  ",
        shell(place.registry)
    );
    for credential in &plan.credentials {
        code.push_str(match credential {
            Credential::Bearer => "--bearer \"$A2A_TOKEN\" \\\n  ",
            Credential::Authorization => "--header \"Authorization: $A2A_AUTHORIZATION\" \\\n  ",
            Credential::HeaderKey(_) | Credential::CookieKey(_) | Credential::QueryKey(_) => {
                "--api-key \"$A2A_API_KEY\" \\\n  "
            }
        });
    }
    // What follows two dashes is no option, however it begins.
    let dashes = if plan.message.starts_with('-') {
        "-- "
    } else {
        ""
    };
    code.push_str(&format!(
        "{dashes}{} {}",
        shell(place.agent),
        shell(&plan.message)
    ));
    Snippet {
        id: "send",
        title: "a2a-registry",
        install: String::new(),
        code,
    }
}
