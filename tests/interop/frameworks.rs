//! Frameworks whose agents call others, each as docs/find/frameworks.md says.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;
use url::Url;

use crate::support::program::Program;
use crate::support::required_variable;
use crate::support::sdk::Sdk;
use crate::support::setup::RegistrySetup;

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("interop")
        .join(name)
}

/// What an agent of a framework is told by the agent at that address.
async fn ask_framework(framework: &str, address: &str) -> Value {
    let mut command = match framework {
        "vercel" => {
            let mut node = Command::new("node");
            node.arg(script("vercel_client.cjs"));
            node.arg(required_variable("A2A_REGISTRY_TEST_NODE"));
            node
        }
        framework => {
            let mut python = Command::new(required_variable(match framework {
                "strands" => "A2A_REGISTRY_TEST_STRANDS",
                _ => "A2A_REGISTRY_TEST_FRAMEWORKS",
            }));
            python.args(["-B", "-u", "-W", "ignore"]);
            python.arg(script("frameworks.py")).arg(framework);
            python
        }
    };
    command.args([address, "hello"]);
    let finished = Program::run(command).await;
    assert!(finished.status.success(), "{framework}: {finished:#?}");
    serde_json::from_str(finished.stdout.last().unwrap()).unwrap()
}

/// Google's ADK refuses a card from another origin than that of the agent, so it is given the card's own URL, or the card. The
/// others take the base URL of a resolver, or the card's URL below it.
#[tokio::test]
async fn frameworks_take_cards_from_the_registry() {
    let registry = RegistrySetup::new().approve_all().start().await;
    for (sdk, frameworks) in [
        (Sdk::Py03, &["agent-framework", "strands", "vercel"][..]),
        (Sdk::Py1, &["agent-framework"]),
    ] {
        let agent = sdk.start_agent().await;
        let id = registry.publish(&agent.card_url(sdk)).await;
        let shown = registry
            .get(&format!("/v1/agents/{id}"))
            .await
            .expect_status(200);
        let links = |name: &str| shown["links"][name].as_str().unwrap().to_owned();
        let at_registry = format!("{}.well-known/agent-card.json", links("resolver"));
        let refused = ask_framework("adk", &at_registry).await;
        let reason = refused["error"].as_str().unwrap();
        assert!(reason.contains("same origin"), "{reason}");
        let answer = json!({"answer": sdk.reply_to("hello")});
        assert_eq!(
            ask_framework("adk", &links("origin")).await,
            answer,
            "{sdk:?}"
        );
        assert_eq!(
            ask_framework("adk-object", &links("resolver")).await,
            answer,
            "{sdk:?}"
        );
        let resolver = Url::parse(&format!("{}/agents/{id}/", registry.url)).unwrap();
        for framework in frameworks {
            let address = match *framework {
                "vercel" => resolver.join(".well-known/agent-card.json").unwrap(),
                _ => resolver.clone(),
            };
            let told = ask_framework(framework, address.as_str()).await;
            assert_eq!(told, answer, "{framework} with {sdk:?}");
        }
    }
}
