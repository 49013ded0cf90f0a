//! Snippets for JavaScript's @a2a-js/sdk, in the generation that reads the card.

use super::{AgentUrls, CredentialPlacement, Snippet, SnippetSpec};
use crate::text::quote::javascript_string;

/// Writes the module. The registry supplies the card; the transport adds credentials only to requests to the agent.
pub fn build_javascript_snippet(spec: &SnippetSpec, urls: AgentUrls<'_>) -> Snippet {
    let v1 = spec.route.protocol_binding.is_v1();
    let resolver = javascript_string(urls.resolver);
    let text = javascript_string(&spec.message);
    let (factory_import, setup, factory) = match authenticated_fetch_code(spec) {
        None => ("ClientFactory", String::new(), "new ClientFactory()"),
        Some(fetch) => (
            "ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory",
            format!(
                "{fetch}const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {{\n  \
                 transports: [\n    new JsonRpcTransportFactory({{ fetchImpl }}),\n    \
                 new RestTransportFactory({{ fetchImpl }}),\n  ],\n}});\n"
            ),
            "new ClientFactory(options)",
        ),
    };
    let (types_import, request) = if v1 {
        (
            "import { SendMessageRequest } from \"@a2a-js/sdk\";\n",
            format!(
                "SendMessageRequest.fromJSON({{\n  message: {{\n    messageId: randomUUID(),\n    role: \"ROLE_USER\",\n    \
                 parts: [{{ text: {text} }}],\n  }},\n}})"
            ),
        )
    } else {
        (
            "",
            format!(
                "{{\n  message: {{\n    kind: \"message\",\n    messageId: randomUUID(),\n    role: \"user\",\n    \
                 parts: [{{ kind: \"text\", text: {text} }}],\n  }},\n}}"
            ),
        )
    };
    let code = format!(
        "import {{ randomUUID }} from \"node:crypto\";\n{types_import}\
         import {{ {factory_import} }} from \"@a2a-js/sdk/client\";\n\n{setup}\
         const client = await {factory}.createFromUrl({resolver});\n\
         const answer = await client.sendMessage({request});\n\
         console.log(JSON.stringify(answer, null, 2));\n"
    );
    Snippet {
        id: "javascript",
        title: "JavaScript",
        install: format!(
            "npm install @a2a-js/sdk@{}",
            if v1 { "^1.3.0" } else { "0.3.14" }
        ),
        code,
    }
}

/// A `fetch` that adds the credentials; `None` if the agent requires none.
fn authenticated_fetch_code(spec: &SnippetSpec) -> Option<String> {
    if spec.credentials.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    for credential in &spec.credentials {
        lines.push(match credential {
            CredentialPlacement::Bearer => {
                "headers.set(\"Authorization\", `Bearer ${process.env.A2A_TOKEN}`);".to_owned()
            }
            CredentialPlacement::Authorization => {
                "headers.set(\"Authorization\", process.env.A2A_AUTHORIZATION);".to_owned()
            }
            CredentialPlacement::HeaderKey(name) => {
                format!(
                    "headers.set({}, process.env.A2A_API_KEY);",
                    javascript_string(name)
                )
            }
            CredentialPlacement::CookieKey(name) => format!(
                "headers.set(\"Cookie\", {} + process.env.A2A_API_KEY);",
                javascript_string(&format!("{name}="))
            ),
            CredentialPlacement::QueryKey(name) => format!(
                "url.searchParams.set({}, process.env.A2A_API_KEY);",
                javascript_string(name)
            ),
        });
    }
    Some(format!(
        "const fetchImpl = (input, init = {{}}) => {{\n  const url = new URL(input);\n  \
         const headers = new Headers(init.headers);\n  {}\n  return fetch(url, {{ ...init, headers }});\n}};\n",
        lines.join("\n  ")
    ))
}
