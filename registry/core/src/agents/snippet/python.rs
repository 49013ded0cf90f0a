//! Snippets for Python's a2a-sdk, in the generation that reads the card.

use std::fmt::Write as _;

use super::{AgentUrls, CredentialPlacement, ProtocolBinding, SdkGeneration, Snippet, SnippetSpec};
use crate::text::quote::python_string;

struct PythonSdkCode {
    version_range: &'static str,
    /// Imports from the standard library besides `asyncio` and `os`.
    standard_import: &'static str,
    imports: &'static str,
    request_code: String,
}

/// Writes the program. The registry supplies the card; credentials go only to the agent, so there are two HTTP
/// clients.
pub fn build_python_snippet(spec: &SnippetSpec, urls: AgentUrls<'_>) -> Snippet {
    let agent_client = python_http_client_code(spec);
    let resolver = python_string(urls.resolver);
    let text = python_string(&spec.message);
    let os = if spec.credentials.is_empty() {
        ""
    } else {
        "import os\n"
    };
    let PythonSdkCode {
        version_range: versions,
        standard_import,
        imports,
        request_code: exchange,
    } = match spec.sdk_generation() {
        SdkGeneration::V1 => python_sdk_v1_code(spec.route.protocol_binding, &text),
        SdkGeneration::V03 => python_sdk_v03_code(spec.route.protocol_binding, &text),
        // 0.1 has no SDK, and so no snippet.
        SdkGeneration::V02 | SdkGeneration::V01 => python_sdk_v02_code(&text),
    };
    let code = format!(
        "import asyncio\n{os}{standard_import}\nimport httpx\n{imports}\n\n\
         async def main():\n    async with httpx.AsyncClient() as registry, {agent_client} as http:\n        \
         card = await A2ACardResolver(registry, base_url={resolver}).get_agent_card()\n\
         {exchange}\n\nasyncio.run(main())\n"
    );
    Snippet {
        id: "python",
        title: "Python",
        install: format!("pip install 'a2a-sdk{versions}' httpx"),
        code,
    }
}

fn python_sdk_v1_code(dialect: ProtocolBinding, text: &str) -> PythonSdkCode {
    let bindings = match dialect {
        ProtocolBinding::V1Rest => ", supported_protocol_bindings=[\"HTTP+JSON\"]",
        _ => "",
    };
    PythonSdkCode {
        version_range: ">=1.3,<2",
        standard_import: "",
        imports: "from a2a.client import A2ACardResolver, ClientConfig, ClientFactory\n\
             from a2a.helpers import get_stream_response_text, new_text_message\n\
             from a2a.types import Role, SendMessageRequest\n",
        request_code: format!(
            "        client = ClientFactory(ClientConfig(httpx_client=http{bindings})).create(card)\n        \
             message = new_text_message({text}, role=Role.ROLE_USER)\n        \
             async for event in client.send_message(SendMessageRequest(message=message)):\n            \
             print(get_stream_response_text(event))\n"
        ),
    }
}

fn python_sdk_v03_code(dialect: ProtocolBinding, text: &str) -> PythonSdkCode {
    let transports = match dialect {
        ProtocolBinding::V0Rest => ", supported_transports=[\"HTTP+JSON\"]",
        _ => "",
    };
    PythonSdkCode {
        version_range: ">=0.3.26,<0.4",
        standard_import: "",
        imports: "from a2a.client import A2ACardResolver, ClientConfig, ClientFactory\n\
             from a2a.client.helpers import create_text_message_object\n",
        request_code: format!(
            "        client = ClientFactory(ClientConfig(httpx_client=http{transports})).create(card)\n        \
             message = create_text_message_object(content={text})\n        \
             async for event in client.send_message(message):\n            \
             print(event)\n"
        ),
    }
}

fn python_sdk_v02_code(text: &str) -> PythonSdkCode {
    PythonSdkCode {
        version_range: "==0.2.16",
        standard_import: "import uuid\n",
        imports: "from a2a.client import A2ACardResolver, A2AClient\n\
             from a2a.types import Message, MessageSendParams, Part, Role, SendMessageRequest, TextPart\n",
        request_code: format!(
            "        message = Message(\n            role=Role.user,\n            \
             parts=[Part(root=TextPart(text={text}))],\n            \
             message_id=str(uuid.uuid4()),\n        )\n        \
             request = SendMessageRequest(\n            id=str(uuid.uuid4()), params=MessageSendParams(message=message)\n        )\n        \
             answer = await A2AClient(http, agent_card=card).send_message(request)\n        \
             print(answer.model_dump_json(indent=2, exclude_none=True))\n"
        ),
    }
}

fn python_http_client_code(spec: &SnippetSpec) -> String {
    let mut headers = Vec::new();
    let mut params = String::new();
    for credential in &spec.credentials {
        match credential {
            CredentialPlacement::Bearer => {
                headers.push("\"Authorization\": f\"Bearer {os.environ['A2A_TOKEN']}\"".to_owned())
            }
            CredentialPlacement::Authorization => {
                headers.push("\"Authorization\": os.environ[\"A2A_AUTHORIZATION\"]".to_owned());
            }
            CredentialPlacement::HeaderKey(name) => {
                headers.push(format!(
                    "{}: os.environ[\"A2A_API_KEY\"]",
                    python_string(name)
                ));
            }
            CredentialPlacement::CookieKey(name) => headers.push(format!(
                "\"Cookie\": {} + os.environ[\"A2A_API_KEY\"]",
                python_string(&format!("{name}="))
            )),
            CredentialPlacement::QueryKey(name) => {
                let _ = write!(
                    params,
                    "params={{{}: os.environ[\"A2A_API_KEY\"]}}, ",
                    python_string(name)
                );
            }
        }
    }
    let headers = if headers.is_empty() {
        String::new()
    } else {
        format!("headers={{{}}}, ", headers.join(", "))
    };
    format!("httpx.AsyncClient({headers}{params}timeout=60)")
}
