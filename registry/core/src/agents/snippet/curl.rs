//! Snippets for curl in a POSIX shell.

use std::fmt::Write as _;

use url::form_urlencoded::byte_serialize;

use super::{CredentialPlacement, ProtocolBinding, Snippet, SnippetSpec};
use crate::text::quote::{json_string, shell_word};

/// Writes the curl command. `-g` keeps curl from reading brackets in the address as patterns.
pub fn build_curl_snippet(spec: &SnippetSpec) -> Snippet {
    let mut code = format!("curl -gsS {}", shell_quoted_url(spec));
    let mut push_option = |text: &str| {
        let _ = write!(code, " \\\n  {text}");
    };
    push_option("-H 'Content-Type: application/json'");
    if spec.route.protocol_binding.is_v1() {
        push_option("-H 'A2A-Version: 1.0'");
    }
    for credential in &spec.credentials {
        match credential {
            CredentialPlacement::Bearer => push_option("-H \"Authorization: Bearer $A2A_TOKEN\""),
            CredentialPlacement::Authorization => {
                push_option("-H \"Authorization: $A2A_AUTHORIZATION\"")
            }
            CredentialPlacement::HeaderKey(name) => {
                push_option(&format!(
                    "-H {}\"$A2A_API_KEY\"",
                    shell_word(&format!("{name}: "))
                ));
            }
            CredentialPlacement::CookieKey(name) => {
                push_option(&format!(
                    "-H {}\"$A2A_API_KEY\"",
                    shell_word(&format!("Cookie: {name}="))
                ));
            }
            CredentialPlacement::QueryKey(_) => {}
        }
    }
    push_option(&format!("-d {}", shell_word(&curl_request_body(spec))));
    Snippet {
        id: "curl",
        title: "curl",
        install: String::new(),
        code,
    }
}

/// The address as a shell word, with keys in its query if the card requires that.
fn shell_quoted_url(spec: &SnippetSpec) -> String {
    let mut url = match spec.route.protocol_binding {
        ProtocolBinding::V1Rest => spec.route.operation_url(&["message:send"]),
        ProtocolBinding::V0Rest => spec.route.operation_url(&["v1", "message:send"]),
        _ => spec.route.url.clone(),
    };
    url.set_fragment(None);
    let mut keys = spec
        .credentials
        .iter()
        .filter_map(|credential| match credential {
            CredentialPlacement::QueryKey(name) => Some(name),
            _ => None,
        });
    let Some(first) = keys.next() else {
        return shell_word(url.as_str());
    };
    url.query_pairs_mut().append_pair(first, "");
    let mut argument = format!("{}\"$A2A_API_KEY\"", shell_word(url.as_str()));
    for name in keys {
        let name: String = byte_serialize(name.as_bytes()).collect();
        let _ = write!(
            argument,
            "{}\"$A2A_API_KEY\"",
            shell_word(&format!("&{name}="))
        );
    }
    argument
}

fn curl_request_body(spec: &SnippetSpec) -> String {
    let text = json_string(&spec.message);
    let tenant = spec.route.tenant().map_or_else(String::new, |tenant| {
        format!(r#","tenant":{}"#, json_string(tenant))
    });
    let v1_message = format!(
        r#""message":{{"messageId":"message-1","role":"ROLE_USER","parts":[{{"text":{text}}}]}}"#
    );
    match spec.route.protocol_binding {
        ProtocolBinding::V1Rest | ProtocolBinding::SkillRest => format!("{{{v1_message}}}"),
        ProtocolBinding::V0Rest => format!(
            r#"{{"message":{{"messageId":"message-1","role":"ROLE_USER","content":[{{"text":{text}}}]}},"configuration":{{"blocking":true}}}}"#
        ),
        ProtocolBinding::V1JsonRpc | ProtocolBinding::SkillJsonRpc | ProtocolBinding::V1Grpc => {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{{v1_message}{tenant}}}}}"#
            )
        }
        ProtocolBinding::V01JsonRpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{{"id":"task-1","message":{{"role":"user","parts":[{{"type":"text","text":{text}}}]}}}}}}"#
        ),
        // gRPC has no curl snippet.
        ProtocolBinding::V0JsonRpc
        | ProtocolBinding::PromptKitJsonRpc
        | ProtocolBinding::V0Grpc => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"kind":"message","messageId":"message-1","role":"user","parts":[{{"kind":"text","text":{text}}}]}},"configuration":{{"acceptedOutputModes":["text/plain","text","application/json"],"blocking":true}}}}}}"#
        ),
    }
}
