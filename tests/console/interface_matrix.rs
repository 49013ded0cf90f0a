//! Conversations in each version and binding: messages, streams, tasks, files, cancellation, and several turns.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::Key;

use super::{CARD, ConsoleTurn, ConsoleUser};
use crate::page_journeys::PageVisitor;
use crate::page_quality::{AXE, LOOKS, axe, pictures};
use crate::pages::demo;
use crate::support::browser::Browser;
use crate::support::origin::{Origin, OriginReply};
use crate::support::sdk::{Sdk, SdkAgent};
use crate::support::setup::RegistrySetup;

/// The interfaces of an agent's card, by a word of their descriptions.
fn interfaces(sdk: Sdk) -> &'static [&'static str] {
    match sdk {
        Sdk::Py02 => &["0.2 over JSON-RPC"],
        Sdk::Py03 | Sdk::Node03 => &["0.3 over JSON-RPC", "0.3 over HTTP+JSON"],
        _ => &["1.0 over JSON-RPC", "1.0 over HTTP+JSON"],
    }
}

/// The card of the 0.3 agent with both of its interfaces; its own names one.
fn both(agent: &SdkAgent) -> String {
    let base = &agent.base_url;
    json!({
        "protocolVersion": "0.3.0", "name": "Tide table", "description": "d", "version": "1",
        "url": format!("{base}/"), "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": format!("{base}/"), "transport": "JSONRPC"},
            {"url": format!("{base}/rest"), "transport": "HTTP+JSON"},
        ],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}],
    })
    .to_string()
}

/// Goes through every cell with the agent whose page is open.
async fn talk(talker: &ConsoleUser, sdk: Sdk, interface: &str, file: &std::path::Path) {
    let cell = format!("{sdk:?} {interface}");
    talker.choose(interface).await;
    for streams in [true, false] {
        let cell = format!("{cell}, streaming: {streams}");
        talker.stream(streams).await;
        let said = talker.ask("hello").await;
        assert_eq!(said.who, "agent", "{cell}: {said:?}");
        assert!(
            said.text.contains(&sdk.reply_to("hello")),
            "{cell}: {said:?}"
        );
        let task = talker.ask("work in pieces").await;
        assert!(task.text.contains("one, two, three"), "{cell}: {task:?}");
        assert!(task.text.contains("completed"), "{cell}: {task:?}");
        assert!(task.text.contains("Numbers"), "{cell}: {task:?}");
    }
    talker.stream(true).await;

    let asked = talker.ask("ask me").await;
    assert!(asked.text.contains("which one?"), "{cell}: {asked:?}");
    assert!(asked.text.contains("input-required"), "{cell}: {asked:?}");
    let answered = talker.ask("the blue one").await;
    let heard = sdk.reply_to("the blue one");
    assert!(answered.text.contains(&heard), "{cell}: {answered:?}");
    assert!(answered.text.contains("completed"), "{cell}: {answered:?}");

    talker.attach(file).await;
    let returned = talker.ask("give it back").await;
    let content = fs::read_to_string(file).unwrap();
    // Over HTTP+JSON that SDK drops the names of files.
    let is_nameless = sdk == Sdk::Node03 && interface.contains("HTTP+JSON");
    let name = if is_nameless { "file" } else { "shell.txt" };
    let wanted = (name, "application/octet-stream", content.as_str());
    let last = returned.files.last().unwrap();
    let last = (last.0.as_str(), last.1.as_str(), last.2.as_str());
    assert_eq!(last, wanted, "{cell}: {returned:?}");

    talker.say("work for ever").await;
    let begun = |text: &str| text.contains("working") && text.contains("one");
    talker.until(&cell, |shown| begun(&shown.text)).await;
    talker.find("cancel").await.click().await.unwrap();
    let canceled = |text: &str| text.contains("canceled");
    let over = talker
        .until(&cell, |shown| shown.idle && canceled(&shown.text))
        .await;
    assert_eq!(over.who, "agent", "{cell}: {over:?}");
}

#[tokio::test]
async fn every_version_and_binding_is_spoken_with_the_sdks() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("shell.txt");
    fs::write(&file, "a shell").unwrap();
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let (skill, py02, py03, py1, node03, node) = tokio::join!(
        Sdk::A2aProtocolSkill.start_cors_agent(),
        Sdk::Py02.start_cors_agent(),
        Sdk::Py03.start_cors_agent(),
        Sdk::Py1.start_cors_agent(),
        Sdk::Node03.start_cors_agent(),
        Sdk::Node.start_cors_agent()
    );
    origin.set_reply(CARD, OriginReply::json(both(&py03)));
    let talker = ConsoleUser::open_browser(&registry).await;
    for (sdk, agent) in [
        (Sdk::A2aProtocolSkill, &skill),
        (Sdk::Py02, &py02),
        (Sdk::Py03, &py03),
        (Sdk::Py1, &py1),
        (Sdk::Node03, &node03),
        (Sdk::Node, &node),
    ] {
        let id = match sdk {
            Sdk::Py03 => registry.publish(&origin.url(CARD)).await,
            _ => registry.publish(&agent.card_url(sdk)).await,
        };
        talker.open(&id).await;
        for interface in interfaces(sdk) {
            talk(&talker, sdk, interface, &file).await;
        }
        let complaints = talker.visitor.browser.take_log_messages().await;
        assert_eq!(complaints, Vec::<String>::new(), "{sdk:?}");
    }
    talker.close().await;
    registry.stop().await;
}

#[tokio::test]
async fn the_sample_agents_are_talked_to_in_the_first_minute() {
    let demo = demo().await;
    let browser = Browser::open().await;
    let talker = ConsoleUser {
        visitor: PageVisitor::with_browser(&demo.url, browser),
    };
    let axe = axe();
    for (name, interface, text, answer) in [
        (
            "Ledger Converter",
            "0.2 over JSON-RPC",
            "100 EUR in USD",
            "USD",
        ),
        (
            "Recipe Scaler",
            "0.3 over JSON-RPC",
            "Scale from 4 to 6 servings: 2 eggs",
            "3 eggs",
        ),
        (
            "Trip Planner",
            "1.0 over HTTP+JSON",
            "Plan three days in Rome",
            "Colosseum",
        ),
        (
            "Trip Planner",
            "1.0 over JSON-RPC",
            "Plan three days in Rome",
            "Colosseum",
        ),
    ] {
        let page = demo.agent(name).await;
        let id = page.trim_start_matches("/agents/").trim_end_matches('/');
        talker.open(id).await;
        talker.choose(interface).await;
        let said = talker.ask(text).await;
        assert!(
            said.who == "agent" && said.text.contains(answer),
            "{said:?}"
        );
    }
    // By the keyboard alone: on from the message to the button, or sent from within it.
    talker.fill("text", "Plan three days in Paris").await;
    let keys = Key::Control + Key::Enter;
    talker.find("text").await.send_keys(keys).await.unwrap();
    let planned = |shown: &ConsoleTurn| shown.idle && shown.text.contains("Louvre");
    talker.until("Paris", planned).await;
    talker.find("new").await.click().await.unwrap();
    assert_eq!(talker.read_last_turn().await.turns, 0);
    talker.fill("text", "Plan three days in Rome").await;
    let on = Key::Tab + Key::Tab;
    talker.find("text").await.send_keys(on).await.unwrap();
    let focused = talker.run("return document.activeElement.id").await;
    assert_eq!(focused, "console-send");
    let page = talker.visitor.browser.page();
    let button = page.active_element().await.unwrap();
    button.send_keys(Key::Enter + "").await.unwrap();
    let planned = |shown: &ConsoleTurn| shown.idle && shown.text.contains("Colosseum");
    talker.until("Rome", planned).await;
    // The page with a conversation and the traffic is as accessible as without.
    talker.visitor.click("#console-traffic summary").await;
    talker.visitor.click("#console-credentials summary").await;
    for (width, height, theme) in LOOKS {
        talker
            .visitor
            .browser
            .emulate_screen_size(width, height)
            .await;
        talker.visitor.browser.set_color_scheme(theme).await;
        let screen = format!("console-{width}-{theme}");
        let needed = talker
            .run("return document.documentElement.scrollWidth")
            .await;
        assert!(
            needed.as_u64().unwrap() <= u64::from(width),
            "{screen}: {needed}"
        );
        talker.run(&axe).await;
        let page = talker.visitor.browser.page();
        let objections = page.execute_async(AXE, Vec::new()).await.unwrap();
        assert_eq!(
            *objections.json(),
            Value::from(Vec::<Value>::new()),
            "{screen}"
        );
        let picture = pictures().join(format!("{screen}.png"));
        talker.visitor.browser.capture_full_page(&picture).await;
    }
    let complaints = talker.visitor.browser.take_log_messages().await;
    assert_eq!(complaints, Vec::<String>::new());
    talker.close().await;
}
