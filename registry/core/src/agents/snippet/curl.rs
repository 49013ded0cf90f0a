//! The request itself, for curl in a POSIX shell.

use std::fmt::Write as _;

use url::form_urlencoded::byte_serialize;

use super::{Credential, Dialect, Plan, Snippet};
use crate::text::quote::{json, shell};

/// `-g` keeps curl from reading brackets in the address as patterns.
pub fn snippet(plan: &Plan) -> Snippet {
    let mut code = format!("curl -gsS {}", address(plan));
    let mut option = |text: &str| {
        let _ = write!(code, " \\\n  {text}");
    };
    option("-H 'Content-Type: application/json'");
    if plan.route.dialect.is_v1() {
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

/// The address as a shell word, with keys in its query if the card asks for that.
fn address(plan: &Plan) -> String {
    let mut url = match plan.route.dialect {
        Dialect::V1Rest => plan.route.below(&["message:send"]),
        Dialect::V0Rest => plan.route.below(&["v1", "message:send"]),
        _ => plan.route.url.clone(),
    };
    url.set_fragment(None);
    let mut keys = plan
        .credentials
        .iter()
        .filter_map(|credential| match credential {
            Credential::QueryKey(name) => Some(name),
            _ => None,
        });
    let Some(first) = keys.next() else {
        return shell(url.as_str());
    };
    url.query_pairs_mut().append_pair(first, "");
    let mut word = format!("{}\"$A2A_API_KEY\"", shell(url.as_str()));
    for name in keys {
        let name: String = byte_serialize(name.as_bytes()).collect();
        let _ = write!(word, "{}\"$A2A_API_KEY\"", shell(&format!("&{name}=")));
    }
    word
}

fn body(plan: &Plan) -> String {
    let text = json(&plan.message);
    let tenant = plan.route.tenant().map_or_else(String::new, |tenant| {
        format!(r#","tenant":{}"#, json(tenant))
    });
    let v1 = format!(
        r#""message":{{"messageId":"message-1","role":"ROLE_USER","parts":[{{"text":{text}}}]}}"#
    );
    match plan.route.dialect {
        Dialect::V1Rest | Dialect::SkillRest => format!("{{{v1}}}"),
        Dialect::V0Rest => format!(
            r#"{{"message":{{"messageId":"message-1","role":"ROLE_USER","content":[{{"text":{text}}}]}},"configuration":{{"blocking":true}}}}"#
        ),
        Dialect::V1JsonRpc | Dialect::SkillJsonRpc | Dialect::V1Grpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{{v1}{tenant}}}}}"#
        ),
        Dialect::V01JsonRpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{{"id":"task-1","message":{{"role":"user","parts":[{{"type":"text","text":{text}}}]}}}}}}"#
        ),
        // Over gRPC there is no snippet for curl.
        Dialect::V0JsonRpc | Dialect::PromptKitJsonRpc | Dialect::V0Grpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"kind":"message","messageId":"message-1","role":"user","parts":[{{"kind":"text","text":{text}}}]}},"configuration":{{"acceptedOutputModes":["text/plain","text","application/json"],"blocking":true}}}}}}"#
        ),
    }
}
