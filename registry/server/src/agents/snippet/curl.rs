//! The request itself, for curl in a POSIX shell.

use std::fmt::Write as _;

use url::Url;

use crate::agents::snippet::Credential;
use crate::agents::snippet::Dialect;
use crate::agents::snippet::Plan;
use crate::agents::snippet::Snippet;
use crate::pages::quote::json;
use crate::pages::quote::shell;

/// The snippet. `-g` keeps curl from reading brackets in the address as patterns.
pub(crate) fn snippet(plan: &Plan) -> Snippet {
    let mut code = format!("curl -gsS {}", address(plan));
    let mut option = |text: &str| {
        let _ = write!(code, " \\\n  {text}");
    };
    option("-H 'Content-Type: application/json'");
    if plan.dialect.is_v1() {
        option("-H 'A2A-Version: 1.0'");
    }
    for credential in &plan.credentials {
        match credential {
            Credential::Bearer => option("-H \"Authorization: Bearer $A2A_TOKEN\""),
            Credential::Authorization => option("-H \"Authorization: $A2A_AUTHORIZATION\""),
            Credential::HeaderKey(name) => {
                option(&format!(
                    "-H {}\"$A2A_API_KEY\"",
                    shell(&format!("{name}: "))
                ));
            }
            Credential::CookieKey(name) => {
                option(&format!(
                    "-H {}\"$A2A_API_KEY\"",
                    shell(&format!("Cookie: {name}="))
                ));
            }
            Credential::QueryKey(_) => {}
        }
    }
    option(&format!("-d {}", shell(&body(plan))));
    Snippet {
        id: "curl",
        title: "curl",
        install: String::new(),
        code,
    }
}

/// The address as a shell word, with the key in its query where the card asks for that.
fn address(plan: &Plan) -> String {
    let mut url = match plan.dialect {
        Dialect::V1Rest => below(plan),
        _ => plan.url.clone(),
    };
    url.set_fragment(None);
    let key = plan
        .credentials
        .iter()
        .find_map(|credential| match credential {
            Credential::QueryKey(name) => Some(name),
            _ => None,
        });
    let Some(name) = key else {
        return shell(url.as_str());
    };
    url.query_pairs_mut().append_pair(name, "");
    format!("{}\"$A2A_API_KEY\"", shell(url.as_str()))
}

/// `…/message:send` (1.0 section 11.3), behind the tenant where there is one.
fn below(plan: &Plan) -> Url {
    let mut url = plan.url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        path.extend(plan.tenant.as_deref());
        path.push("message:send");
    }
    url
}

fn body(plan: &Plan) -> String {
    let text = json(&plan.message);
    let tenant = plan.tenant.as_deref().map_or_else(String::new, |tenant| {
        format!(r#","tenant":{}"#, json(tenant))
    });
    let v1 = format!(
        r#""message":{{"messageId":"message-1","role":"ROLE_USER","parts":[{{"text":{text}}}]}}"#
    );
    match plan.dialect {
        Dialect::V1Rest => format!("{{{v1}}}"),
        Dialect::V1JsonRpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{{v1}{tenant}}}}}"#
        ),
        Dialect::V03JsonRpc | Dialect::V02JsonRpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"kind":"message","messageId":"message-1","role":"user","parts":[{{"kind":"text","text":{text}}}]}},"configuration":{{"acceptedOutputModes":["text/plain","text","application/json"],"blocking":true}}}}}}"#
        ),
    }
}
