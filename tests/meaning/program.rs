//! The program with the tiny encoder of the tests: installing it, and searching with it from the command line and on the
//! page.

use std::path::Path;

use a2a_registry_api::AgentList;
use serde_json::Value;

use crate::support::api::Api;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Finished, Program, assert_ended, registry, text};
use crate::support::setup::{ADMIN, Setup};
use crate::support::stage::card;
use crate::support::waiting::eventually;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny");

async fn model(data: &Path, arguments: &[&str]) -> Finished {
    let mut command = registry(["model"]);
    command.args(arguments).arg("--data-dir").arg(data);
    Program::run(command).await
}

/// Registers two agents; returns the origin of their cards.
async fn register_two_agents(api: &Api) -> Origin {
    let origin = Origin::start();
    for (path, name, about) in [
        ("/bank", "Bureau", "Currency exchange"),
        ("/wings", "Wings", "Books flights"),
    ] {
        origin.answer(path, OriginReply::json(card(name, about)));
        api.register(&origin.url(path)).await;
    }
    origin
}

/// The result of a search in that mode, once the registry can search in it.
async fn search_in_mode(api: &Api, query: &str, mode: &str) -> AgentList {
    let path = format!("/v1/agents?q={query}&mode={mode}&explain=true");
    let what = format!("a search in mode {mode}");
    eventually(&what, || async {
        let list: AgentList = serde_json::from_value(api.get(&path).await.expect(200)).unwrap();
        (list.mode == mode && list.total == 2).then_some(list)
    })
    .await
}

#[tokio::test]
async fn searches_use_an_installed_model() {
    let setup = Setup::new()
        .configure("[search]\nembed_timeout = 10000")
        .approve_all();
    let data = setup.data();
    let none = model(&data, &["status"]).await;
    assert!(
        text(&none.stderr).contains("model install")
            || text(&none.stdout).contains("model install"),
        "{none:?}"
    );
    std::fs::create_dir(&data).unwrap();
    let bad = model(&data, &["install", setup.scratch().to_str().unwrap()]).await;
    assert_ended(&bad, 2, "config.json");
    let installed = model(&data, &["install", MODEL]).await;
    assert_eq!(installed.status.code(), Some(0), "{installed:?}");
    let output = model(&data, &["status", "--json"]).await;
    let output: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert!(output.to_string().contains("\"current\":true"), "{output}");
    assert_eq!(output["models"][0]["agents"], Value::Null, "{output}");

    let serving = setup.start().await;
    let _origin = register_two_agents(&serving.api).await;
    let meant = search_in_mode(&serving.api, "books+flights+and+seats+for+two", "semantic").await;
    let output = serde_json::to_string(&meant.agents).unwrap();
    assert!(output.contains("similarity of the card"), "{output}");
    let both = search_in_mode(&serving.api, "books+flights+and+seats+for+two", "hybrid").await;
    // With this model similarities are arbitrary, but both scores must be used.
    let mut agents = both.agents.iter();
    let wings = agents.find(|hit| hit.summary.name == "Wings");
    let output = serde_json::to_string(&wings).unwrap();
    assert!(
        output.contains("weight of words") && output.contains("weight of meaning"),
        "{output}"
    );
    let page = serving.api.get("/?q=books+flights+and+seats+for+two").await;
    assert!(
        page.text().contains("by full text and meaning"),
        "{}",
        page.text()
    );
    let mut search = registry([
        "search",
        "--mode",
        "semantic",
        "--json",
        "books flights and seats",
    ]);
    search
        .env("A2A_REGISTRY_URL", &serving.api.url)
        .env("A2A_REGISTRY_TOKEN", ADMIN);
    let found = Program::run(search).await;
    let found: AgentList = serde_json::from_str(&text(&found.stdout)).unwrap();
    assert_eq!(found.mode, "semantic");
    let output = model(&data, &["status", "--json"]).await;
    let output: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(output["agents"], 2, "{output}");
    let progress = &output["models"][0]["agents"];
    assert_eq!(
        (&progress["embedded"], &progress["complete"]),
        (&2.into(), &true.into()),
        "{output}"
    );
    let output = text(&model(&data, &["status"]).await.stdout);
    assert!(
        output.contains("AGENTS") && output.contains("2, all"),
        "{output}"
    );
    let ready = serving.api.admin("/readyz").await.text();
    assert!(ready.contains("searches use"), "{ready}");
    let before: Vec<String> = both
        .agents
        .iter()
        .map(|hit| hit.summary.name.clone())
        .collect();

    // After a kill and a restart the results are the same.
    serving.program.kill().await;
    let serving = setup.start().await;
    let again = search_in_mode(&serving.api, "books+flights+and+seats+for+two", "hybrid").await;
    assert!(again.agents.iter().map(|hit| &hit.summary.name).eq(&before));
    serving.stop().await;

    // Without the model searches are full text only.
    let setup = setup.configure("model = \"off\"");
    let serving = setup.start().await;
    let answer = serving
        .api
        .get("/v1/agents?q=books+flights&mode=hybrid")
        .await
        .expect(200);
    assert_eq!(answer["mode"], "lexical");
    for (query, says_so) in [
        ("books+flights&mode=hybrid", true),
        ("books+flights&mode=lexical", false),
        ("books+flights", false),
    ] {
        let page = serving.api.get(&format!("/?q={query}")).await.text();
        assert_eq!(
            page.contains("by full text only"),
            says_so,
            "{query}: {page}"
        );
    }
    serving.stop().await;
}

/// A model that is installed while a server runs takes effect in it.
#[tokio::test]
async fn a_running_server_uses_a_newly_installed_model() {
    let setup = Setup::new()
        .configure("[search]\nembed_timeout = 10000")
        .approve_all();
    let serving = setup.start().await;
    let _origin = register_two_agents(&serving.api).await;
    // The server has no model yet.
    serving.program.line("searches are full text only").await;
    let installed = model(&setup.data(), &["install", MODEL]).await;
    assert_ended(&installed, 0, "");
    let output = text(&installed.stdout);
    assert!(output.contains("without a restart"), "{output}");
    search_in_mode(&serving.api, "books+flights", "semantic").await;
    serving.stop().await;

    // A configuration that selects another model is reported.
    let off = setup.scratch().join("off.toml");
    std::fs::write(&off, "[search]\nmodel = \"off\"\n").unwrap();
    let again = model(
        &setup.data(),
        &["install", MODEL, "--config", off.to_str().unwrap()],
    )
    .await;
    assert_ended(&again, 0, "");
    let output = text(&again.stdout);
    assert!(output.contains("search.model"), "{output}");
}
