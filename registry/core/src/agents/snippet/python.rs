//! A program for Python's a2a-sdk, of the generation that reads the card.

use std::fmt::Write as _;

use super::{AgentLocation, Credential, Dialect, Generation, Plan, Snippet};
use crate::text::quote::python;

struct SdkUse {
    versions: &'static str,
    /// What it imports from the standard library besides `asyncio` and `os`.
    standard_import: &'static str,
    imports: &'static str,
    exchange: String,
}

/// The registry supplies the card; credentials go to the agent alone, which is why there are two HTTP clients.
pub fn snippet(plan: &Plan, place: AgentLocation<'_>) -> Snippet {
    let agent_client = agent_client(plan);
    let resolver = python(place.resolver);
    let text = python(&plan.message);
    let os = if plan.credentials.is_empty() {
        ""
    } else {
        "import os\n"
    };
    let SdkUse {
        versions,
        standard_import,
        imports,
        exchange,
    } = match plan.generation() {
        Generation::V1 => v1(plan.route.dialect, &text),
        Generation::V03 => v03(plan.route.dialect, &text),
        // There is no SDK for 0.1, and no snippet.
        Generation::V02 | Generation::V01 => v02(&text),
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

fn v1(dialect: Dialect, text: &str) -> SdkUse {
    let bindings = match dialect {
        Dialect::V1Rest => ", supported_protocol_bindings=[\"HTTP+JSON\"]",
        _ => "",
    };
    SdkUse {
        versions: ">=1.3,<2",
        standard_import: "",
        imports: "from a2a.client import A2ACardResolver, ClientConfig, ClientFactory\n\
             from a2a.helpers import get_stream_response_text, new_text_message\n\
             from a2a.types import Role, SendMessageRequest\n",
        exchange: format!(
            "        client = ClientFactory(ClientConfig(httpx_client=http{bindings})).create(card)\n        \
             message = new_text_message({text}, role=Role.ROLE_USER)\n        \
             async for event in client.send_message(SendMessageRequest(message=message)):\n            \
             print(get_stream_response_text(event))\n"
        ),
    }
}

fn v03(dialect: Dialect, text: &str) -> SdkUse {
    let transports = match dialect {
        Dialect::V0Rest => ", supported_transports=[\"HTTP+JSON\"]",
        _ => "",
    };
    SdkUse {
        versions: ">=0.3.26,<0.4",
        standard_import: "",
        imports: "from a2a.client import A2ACardResolver, ClientConfig, ClientFactory\n\
             from a2a.client.helpers import create_text_message_object\n",
        exchange: format!(
            "        client = ClientFactory(ClientConfig(httpx_client=http{transports})).create(card)\n        \
             message = create_text_message_object(content={text})\n        \
             async for event in client.send_message(message):\n            \
             print(event)\n"
        ),
    }
}

fn v02(text: &str) -> SdkUse {
    SdkUse {
        versions: "==0.2.16",
        standard_import: "import uuid\n",
        imports: "from a2a.client import A2ACardResolver, A2AClient\n\
             from a2a.types import Message, MessageSendParams, Part, Role, SendMessageRequest, TextPart\n",
        exchange: format!(
            "        message = Message(\n            role=Role.user,\n            \
             parts=[Part(root=TextPart(text={text}))],\n            \
             message_id=str(uuid.uuid4()),\n        )\n        \
             request = SendMessageRequest(\n            id=str(uuid.uuid4()), params=MessageSendParams(message=message)\n        )\n        \
             answer = await A2AClient(http, agent_card=card).send_message(request)\n        \
             print(answer.model_dump_json(indent=2, exclude_none=True))\n"
        ),
    }
}

fn agent_client(plan: &Plan) -> String {
    let mut headers = Vec::new();
    let mut params = String::new();
    for credential in &plan.credentials {
        match credential {
            Credential::Bearer => {
                headers.push("\"Authorization\": f\"Bearer {os.environ['A2A_TOKEN']}\"".to_owned())
            }
            Credential::Authorization => {
                headers.push("\"Authorization\": os.environ[\"A2A_AUTHORIZATION\"]".to_owned());
            }
            Credential::HeaderKey(name) => {
                headers.push(format!("{}: os.environ[\"A2A_API_KEY\"]", python(name)));
            }
            Credential::CookieKey(name) => headers.push(format!(
                "\"Cookie\": {} + os.environ[\"A2A_API_KEY\"]",
                python(&format!("{name}="))
            )),
            Credential::QueryKey(name) => {
                let _ = write!(
                    params,
                    "params={{{}: os.environ[\"A2A_API_KEY\"]}}, ",
                    python(name)
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
