//! Agents written exactly after descriptions that differ from the specification: found by each word of their cards,
//! shown, and called. Conversations with these agents are tested with those on the SDKs.

use serde_json::{Value, json};

use super::credentials::{CliUser, SECRET, messages};
use super::raw::{RawReply, RawServer};
use super::{CARD, card};
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{self, Program, assert_exit, join_lines};
use crate::support::sdk::Sdk;
use crate::support::setup::RegistrySetup;

const OLD_CARD: &str = "/.well-known/agent.json";

#[tokio::test]
async fn each_is_found_by_every_word_of_its_card_shown_and_called() {
    let registry = RegistrySetup::new().approve_all().start().await;
    for (sdk, words) in [
        (
            Sdk::A2aProtocolSkill,
            &["snail", "belly", "carry", "letters", "leaves", "slow"][..],
        ),
        (
            Sdk::PromptKit,
            &["prompter", "whispers", "stage", "lines", "theatre"],
        ),
        (Sdk::OwnV01, &["attic", "radio", "wave", "noise"]),
    ] {
        let agent = sdk.start_agent().await;
        let id = registry.publish(&agent.card_url(sdk)).await;
        for word in words {
            let found = registry.api.search(&format!("q={word}")).await;
            assert_eq!(found["agents"][0]["id"], id, "{sdk:?} {word}: {found}");
        }
        let shown = registry.api.get(&format!("/v1/agents/{id}")).await;
        let shown = shown.expect_status(200);
        assert_eq!(shown["name"], sdk.agent_name(), "{shown}");
        assert_eq!(shown["auth"], json!(["none"]), "{sdk:?}: {shown}");
        let assumed = match sdk {
            Sdk::PromptKit => Value::from(format!("{}/a2a", agent.base_url)),
            _ => Value::Null,
        };
        assert_eq!(shown["assumed_url"], assumed, "{sdk:?}: {shown}");
        let page = registry.api.get(&format!("/agents/{id}/")).await.text();
        let is_noted = page.contains("a2a-protocol skill");
        assert_eq!(is_noted, sdk == Sdk::A2aProtocolSkill, "{sdk:?}: {page}");
        let sent = registry
            .api
            .run_admin_command(&["send", &id, "hello"])
            .await;
        assert_eq!(sent.status.code(), Some(0), "{sdk:?}: {sent:#?}");
        assert_eq!(sent.stdout, [sdk.reply_to("hello")], "{sdk:?}");
    }
    registry.stop().await;
}

/// A card that names no address.
fn without_interfaces() -> Value {
    let mut card = card(&json!([]));
    card.as_object_mut().unwrap().remove("supportedInterfaces");
    card["capabilities"] = json!({});
    card
}

/// A host with such a card at a well-known path, and an agent at `/a2a` and `/rpc`.
fn without_address() -> Origin {
    let origin = Origin::start();
    let card = without_interfaces().to_string();
    origin.set_reply(OLD_CARD, OriginReply::json(card));
    let message = json!({"messageId": "m", "role": "agent", "parts": [{"text": "hello"}]});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": message});
    for path in ["/a2a", "/rpc"] {
        origin.set_reply(path, OriginReply::json(answer.to_string()));
    }
    origin
}

#[tokio::test]
async fn an_assumed_address_gets_no_kept_credentials_and_another_can_be_named() {
    let (user, agent) = (CliUser::new(), without_address());
    let (document, rpc) = (agent.url(OLD_CARD), agent.url("/rpc"));
    let token = format!("@{}", user.file("token", SECRET));
    let bearer = format!("Bearer {SECRET}");
    let run = async |command: &[&str], more: &[&str]| {
        let words = [command, &["--direct", document.as_str()], more].concat();
        user.run(&words).await
    };

    let refused = run(&["credentials", "add"], &["--bearer", &token]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:#?}");
    assert!(
        join_lines(&refused.stderr).contains("assumed address"),
        "{refused:#?}"
    );
    let kept = run(
        &["credentials", "add"],
        &["--bearer", &token, "--url", &rpc],
    )
    .await;
    assert_eq!(kept.status.code(), Some(0), "{kept:#?}");

    let sent = run(&["send"], &["hi"]).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    assert_eq!(sent.stdout, ["hello"]);
    let assumed = agent.url("/a2a");
    let warning = format!("names no address, so {assumed} is assumed; set another with --url");
    assert!(join_lines(&sent.stderr).contains(&warning), "{sent:#?}");
    assert_eq!(agent.requests_to("/a2a")[0].header("authorization"), None);

    // What was given for this call goes there, and what is kept goes to an address that the user names.
    let sent = run(&["send"], &["hi", "--bearer", &token]).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    let given = &agent.requests_to("/a2a")[1];
    assert_eq!(given.header("authorization"), Some(bearer.as_str()));
    let sent = run(&["send"], &["hi", "--url", &rpc]).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    assert!(!join_lines(&sent.stderr).contains("assumed"), "{sent:#?}");
    let named = &messages(&agent)[0];
    assert_eq!(named.header("authorization"), Some(bearer.as_str()));
}

#[tokio::test]
async fn an_assumed_address_is_named_on_the_page_and_refused_when_strict() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let agent = without_address();
    let id = registry.publish(&agent.url(OLD_CARD)).await;
    let assumed = agent.url("/a2a");
    let page = registry.api.get(&format!("/agents/{id}/")).await.text();
    assert!(page.contains(&assumed), "{page}");
    assert!(page.contains("names no address"), "{page}");
    assert!(!page.contains("cannot be called"), "{page}");
    let shown = registry.api.run_admin_command(&["show", &id]).await;
    assert!(join_lines(&shown.stdout).contains(&assumed), "{shown:#?}");

    let strict = registry
        .api
        .run_admin_command(&["send", &id, "hi", "--strict"])
        .await;
    assert_eq!(strict.status.code(), Some(1), "{strict:#?}");
    let reason = format!("{assumed} is assumed");
    assert!(join_lines(&strict.stderr).contains(&reason), "{strict:#?}");
    assert!(agent.requests_to("/a2a").is_empty());
    let sent = registry.api.run_admin_command(&["send", &id, "hi"]).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    let rpc = agent.url("/rpc");
    let named = ["send", &id, "hi", "--strict", "--url", &rpc];
    let named = registry.api.run_admin_command(&named).await;
    assert_eq!(named.status.code(), Some(0), "{named:#?}");
    assert_eq!(messages(&agent).len(), 1);

    // A card elsewhere on the host says nothing about the host's other addresses.
    let elsewhere = without_interfaces().to_string();
    agent.set_reply("/cards/desk.json", OriginReply::json(elsewhere));
    let card = agent.url("/cards/desk.json");
    let sent = program::registry_command(["send", "--direct", &card, "hi"]);
    assert_exit(&Program::run(sent).await, 2, "--url");
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_forms_of_the_skill_come_first_for_a_card_in_snake_case_only() {
    let error = json!({"code": -32601, "message": "Method not found"});
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "error": error});
    for (binding, version, list, expected) in [
        (
            "protocol_binding",
            "protocol_version",
            "supported_interfaces",
            ["a2a.sendMessage", "SendMessage"],
        ),
        (
            "protocolBinding",
            "protocolVersion",
            "supportedInterfaces",
            ["SendMessage", "a2a.sendMessage"],
        ),
    ] {
        let server = RawServer::start(vec![RawReply::json(&unknown)]).await;
        let origin = Origin::start();
        let mut card = without_interfaces();
        card[list] = json!([{"url": server.base, binding: "jsonrpc", version: "1.0"}]);
        origin.set_reply(CARD, OriginReply::json(card.to_string()));
        let sent = program::registry_command(["send", "--direct", &origin.url(CARD), "hi"]);
        assert_exit(&Program::run(sent).await, 2, "-32601");
        assert_eq!(server.methods(), expected);
    }
}
