//! Interoperation with third-party SDKs and frameworks.

mod frameworks;

use std::path::Path;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, join_lines};
use crate::support::sdk::{ClientResult, Sdk, SdkAgent};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;
use crate::support::{http_client, required_variable};

/// Without the registry: the agents and clients of the other tests work, and each client finds the card with the SDK's
/// own resolver.
async fn answers_its_own_client(sdk: Sdk, agent: &SdkAgent) {
    for base in [agent.base_url.clone(), format!("{}/", agent.base_url)] {
        let conversation = sdk.run_client(&base, "hello").await;
        let expected = ClientResult {
            agent_name: sdk.agent_name().to_owned(),
            reply: sdk.reply_to("hello"),
        };
        assert_eq!(conversation, expected, "{sdk:?} at {base}");
    }
    let card = fetch_card(sdk, agent).await;
    assert_eq!(card["skills"][0]["id"], sdk.skill_id(), "{sdk:?}");
}

/// A restarted agent is the same agent at the same address, as after an upgrade.
#[tokio::test]
async fn a_restarted_agent_keeps_its_port() {
    let sdk = Sdk::Py03;
    let first = sdk.start_agent().await;
    let (base, port) = (first.base_url.clone(), first.port());
    first.program.terminate().await;
    let second = sdk.start_agent_on(port).await;
    assert_eq!(second.base_url, base);
    assert_eq!(
        sdk.run_client(&base, "again").await.reply,
        sdk.reply_to("again")
    );
}

/// An agent of each SDK is called without the registry, through it, and by its converted card.
#[tokio::test]
async fn agents_of_every_sdk_are_found_and_called_through_the_registry() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let agents = join_all(Sdk::ALL.map(Sdk::start_agent)).await;
    let agents: Vec<(Sdk, SdkAgent)> = Sdk::ALL.into_iter().zip(agents).collect();
    let alone = agents.iter();
    join_all(alone.map(|(sdk, agent)| answers_its_own_client(*sdk, agent))).await;
    let through = agents.iter();
    join_all(through.map(|(sdk, agent)| is_called_through(&registry, *sdk, agent))).await;
    let everything = registry.run_admin_command(&["search"]).await;
    for sdk in Sdk::ALL {
        let name = sdk.agent_name();
        assert!(
            join_lines(&everything.stdout).contains(name),
            "{everything:#?}"
        );
    }
    let of = |wanted: Sdk| &agents.iter().find(|(sdk, _)| *sdk == wanted).unwrap().1;
    converted_cards_reach_the_resolvers(&registry, of(Sdk::Py03), of(Sdk::Py1)).await;
}

/// An agent is registered, found by its skill, and served byte for byte. Its own SDK's client, which gets only the registry's
/// resolver URL, and `send` both talk to it.
async fn is_called_through(served: &ServingRegistry, sdk: Sdk, agent: &SdkAgent) {
    // The bare address, so that the registry must find the well-known path itself.
    let registered = served
        .run_admin_command(&["register", "--no-wait", &agent.base_url])
        .await;
    assert!(registered.status.success(), "{registered:#?}");

    let hit = served
        .wait_for_hit(&format!("skill={}", sdk.skill_id()))
        .await;
    assert_eq!(hit.summary.name, sdk.agent_name(), "{sdk:?}");
    assert_eq!(hit.summary.skills[0].id, sdk.skill_id());
    let others = Sdk::ALL.into_iter().filter(|other| *other != sdk);
    for other in others {
        assert_ne!(hit.summary.name, other.agent_name(), "{sdk:?}");
    }

    // Where the publisher serves the card, in each answer: of two well-known paths, 0.2 serves one.
    let id = hit.summary.id.to_string();
    let origin = agent.card_url(sdk);
    assert_eq!(hit.summary.links.origin.as_ref(), Some(&origin));
    let whole = served
        .get(&format!("/v1/agents/{id}"))
        .await
        .expect_status(200);
    assert_eq!(whole["links"]["origin"], *origin, "{sdk:?}");
    let shown = join_lines(&served.run_admin_command(&["show", &id]).await.stdout);
    assert!(shown.contains(&origin), "{sdk:?}: {shown}");
    let page = served.get(&format!("/agents/{id}/")).await;
    assert!(page.text().contains(&origin), "{sdk:?}");
    let resolver = &hit.summary.links.resolver;
    let published = bytes(http_client().get(agent.card_url(sdk))).await;
    for address in [
        hit.summary.links.card.clone(),
        format!("{resolver}.well-known/agent-card.json"),
        format!("{resolver}.well-known/agent.json"),
    ] {
        let delivered = bytes(http_client().get(&address)).await;
        assert_eq!(delivered, published, "{sdk:?} at {address}");
    }

    let conversation = sdk.run_client(resolver, "through the registry").await;
    assert_eq!(conversation.agent_name, sdk.agent_name());
    assert_eq!(conversation.reply, sdk.reply_to("through the registry"));

    for name in [&id, &agent.card_url(sdk)] {
        let sent = served.anonymous_command(&["send", name, "straight from a shell"]);
        let sent = Program::run(sent).await;
        assert_eq!(sent.status.code(), Some(0), "{sdk:?}: {sent:#?}");
        let expected = sdk.reply_to("straight from a shell");
        assert_eq!(join_lines(&sent.stdout), expected, "{sdk:?}");
    }
    // The registry was never between client and agent: it has no route that takes messages.
    let posted = served.request(Method::POST, &format!("/agents/{id}/"));
    assert_eq!(posted.send().await.unwrap().status(), 405);
}

/// Where the card's shape and the agent's protocol are of two generations, the resolver of that protocol's SDK reads the card
/// at the base URL of a conversion, and its client talks to the agent.
async fn converted_cards_reach_the_resolvers(
    served: &ServingRegistry,
    old: &SdkAgent,
    new: &SdkAgent,
) {
    let mut old_shape = fetch_card(Sdk::Py03, old).await;
    let mut new_shape = fetch_card(Sdk::Py1, new).await;
    let old_url = old_shape["url"].take();
    let new_url = new_shape["supportedInterfaces"][0]["url"].take();
    old_shape["url"] = new_url;
    old_shape["protocolVersion"] = json!("1.0");
    new_shape["supportedInterfaces"] =
        json!([{"url": old_url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
    for (client, agent, card, form) in [
        (Sdk::Py03, Sdk::Py03, new_shape, "0.3"),
        (Sdk::Node, Sdk::Py1, old_shape, "1.0"),
    ] {
        let origin = Origin::start();
        origin.set_reply("/card.json", OriginReply::json(card.to_string()));
        let id = served.publish(&origin.url("/card.json")).await;
        let base = format!("{}/agents/{id}/as/{form}/", served.url);
        let conversation = client.run_client(&base, "hello").await;
        assert_eq!(conversation.agent_name, card["name"], "{client:?}");
        assert_eq!(conversation.reply, agent.reply_to("hello"), "{client:?}");
    }
}

/// The card that an agent serves.
async fn fetch_card(sdk: Sdk, agent: &SdkAgent) -> Value {
    let card = bytes(http_client().get(agent.card_url(sdk))).await;
    serde_json::from_slice(&card).unwrap()
}

async fn bytes(request: reqwest::RequestBuilder) -> Vec<u8> {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.bytes().await.unwrap().to_vec()
}

/// The client's descriptors of the gRPC services are what their script makes of the SDK's own.
#[tokio::test]
async fn the_descriptors_of_grpc_are_those_of_the_sdk() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../registry/a2a/proto");
    let made = tempfile::tempdir().unwrap();
    let mut script = Command::new(required_variable("A2A_REGISTRY_TEST_PY1"));
    script
        .arg("-B")
        .arg(folder.join("generate.py"))
        .arg(made.path());
    let finished = Program::run(script).await;
    assert!(finished.status.success(), "{finished:#?}");
    for name in ["lf.a2a.v1.binpb", "a2a.v1.binpb"] {
        let (made, kept) = (made.path().join(name), folder.join(name));
        assert_eq!(
            std::fs::read(made).unwrap(),
            std::fs::read(kept).unwrap(),
            "{name}"
        );
    }
}
