//! The program with its built-in encoder and the tiny one of the tests: installing the latter, and searching from the
//! command line and on the page.

use std::path::Path;

use a2a_registry_api::AgentList;
use serde_json::Value;

use crate::support::api::RegistryClient;
use crate::support::in_process_registry::card_bytes;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// The name of the encoder in the program.
const BUILT_IN: &str = "all-MiniLM-L6-v2";
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny");
const MULTILINGUAL_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny_xlmr");

async fn run_model_command(data: &Path, arguments: &[&str]) -> FinishedProgram {
    let mut command = registry_command(["model"]);
    command.args(arguments).arg("--data-dir").arg(data);
    Program::run(command).await
}

/// Registers two agents; returns the origin of their cards.
async fn register_two_agents(api: &RegistryClient) -> Origin {
    let origin = Origin::start();
    for (path, name, about) in [
        ("/bank", "Bureau", "Currency exchange"),
        ("/wings", "Wings", "Books flights"),
    ] {
        origin.set_reply(path, OriginReply::json(card_bytes(name, about)));
        api.register(&origin.url(path)).await;
    }
    origin
}

/// The result of a search in that mode, once the registry can search in it.
async fn search_in_mode(api: &RegistryClient, query: &str, mode: &str) -> AgentList {
    let path = format!("/v1/agents?q={query}&mode={mode}&explain=true");
    let what = format!("a search in mode {mode}");
    eventually(&what, || async {
        let list: AgentList =
            serde_json::from_value(api.get(&path).await.expect_status(200)).unwrap();
        (list.mode == mode && list.total == 2).then_some(list)
    })
    .await
}

#[tokio::test]
async fn searches_use_an_installed_model() {
    let setup = RegistrySetup::new()
        .with_config_lines("[search]\nembed_timeout = 10000")
        .with_model()
        .approve_all();
    let data = setup.data_folder();
    let none = run_model_command(&data, &["status"]).await;
    assert!(
        join_lines(&none.stderr).contains("model install")
            || join_lines(&none.stdout).contains("model install"),
        "{none:?}"
    );
    std::fs::create_dir(&data).unwrap();
    let bad = run_model_command(
        &data,
        &["install", setup.scratch_folder().to_str().unwrap()],
    )
    .await;
    assert_exit(&bad, 2, "config.json");
    let installed = run_model_command(&data, &["install", MODEL]).await;
    assert_eq!(installed.status.code(), Some(0), "{installed:?}");
    let output = run_model_command(&data, &["status", "--json"]).await;
    let output: Value = serde_json::from_str(&join_lines(&output.stdout)).unwrap();
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
        output.contains("weight of text") && output.contains("weight of semantic score"),
        "{output}"
    );
    let page = serving.api.get("/?q=books+flights+and+seats+for+two").await;
    assert!(
        page.text().contains("by full text and meaning"),
        "{}",
        page.text()
    );
    let mut search = registry_command([
        "search",
        "--mode",
        "semantic",
        "--json",
        "books flights and seats",
    ]);
    search
        .env("A2A_REGISTRY_URL", &serving.api.url)
        .env("A2A_REGISTRY_TOKEN", ADMIN_TOKEN);
    let found = Program::run(search).await;
    let found: AgentList = serde_json::from_str(&join_lines(&found.stdout)).unwrap();
    assert_eq!(found.mode, "semantic");
    let output = run_model_command(&data, &["status", "--json"]).await;
    let output: Value = serde_json::from_str(&join_lines(&output.stdout)).unwrap();
    assert_eq!(output["agents"], 2, "{output}");
    let progress = &output["models"][0]["agents"];
    assert_eq!(
        (&progress["embedded"], &progress["complete"]),
        (&2.into(), &true.into()),
        "{output}"
    );
    let output = join_lines(&run_model_command(&data, &["status"]).await.stdout);
    assert!(
        output.contains("AGENTS") && output.contains("2, all"),
        "{output}"
    );
    let ready = serving.api.get_as_admin("/readyz").await.text();
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
    let setup = setup.with_config_lines("model = \"off\"");
    let serving = setup.start().await;
    let answer = serving
        .api
        .get("/v1/agents?q=books+flights&mode=hybrid")
        .await
        .expect_status(200);
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

/// With nothing installed the built-in encoder is used; a model that is installed while a server runs replaces it.
#[tokio::test]
async fn a_running_server_uses_a_newly_installed_model() {
    let setup = RegistrySetup::new().with_model().approve_all();
    let serving = setup.start().await;
    let _origin = register_two_agents(&serving.api).await;
    serving.api.wait_for_vectors(BUILT_IN, 2).await;
    let found = search_in_mode(&serving.api, "who+brings+cash+along+abroad", "hybrid").await;
    assert_eq!(found.agents[0].summary.name, "Bureau", "{found:#?}");
    let data = setup.data_folder();
    let output = run_model_command(&data, &["status", "--json"]).await;
    let output: Value = serde_json::from_str(&join_lines(&output.stdout)).unwrap();
    let model = &output["models"][0];
    assert_eq!(
        (&model["built_in"], &model["current"], &model["name"]),
        (&true.into(), &true.into(), &BUILT_IN.into()),
        "{output}"
    );
    assert_eq!(
        (&output["agents"], &model["agents"]["embedded"]),
        (&2.into(), &2.into()),
        "{output}"
    );

    let installed = run_model_command(&data, &["install", MODEL, "--json"]).await;
    assert_exit(&installed, 0, "");
    let output = join_lines(&installed.stdout);
    assert!(output.contains("without a restart"), "{output}");
    let output: Value = serde_json::from_str(&output).unwrap();
    let tiny = output["model"]["name"].as_str().unwrap();
    serving.api.wait_for_vectors(tiny, 2).await;
    search_in_mode(&serving.api, "books+flights", "semantic").await;
    let output = join_lines(&run_model_command(&data, &["status"]).await.stdout);
    let in_use: Vec<&str> = output
        .lines()
        .filter(|line| line.starts_with("yes"))
        .collect();
    assert!(in_use.len() == 1 && in_use[0].contains(tiny), "{output}");
    serving.stop().await;

    // A configuration that selects another model is reported.
    let off = setup.scratch_folder().join("off.toml");
    std::fs::write(&off, "[search]\nmodel = \"off\"\n").unwrap();
    let again = run_model_command(
        &setup.data_folder(),
        &["install", MODEL, "--config", off.to_str().unwrap()],
    )
    .await;
    assert_exit(&again, 0, "");
    let output = join_lines(&again.stdout);
    assert!(output.contains("search.model"), "{output}");
}

/// A query in a language that the model does not know is full text, and API and page say so; a multilingual model
/// encodes it.
#[tokio::test]
async fn a_query_in_another_language_waits_for_a_multilingual_model() {
    const QUERY: &str = "ich+suche+flights+nach+rom";
    let setup = RegistrySetup::new()
        .with_model()
        .with_config_lines("[search]\nembed_timeout = 10000")
        .approve_all();
    let data = setup.data_folder();
    std::fs::create_dir(&data).unwrap();
    let installed = run_model_command(&data, &["install", MODEL]).await;
    assert_exit(&installed, 0, "");
    let serving = setup.start().await;
    let _origin = register_two_agents(&serving.api).await;
    search_in_mode(&serving.api, "books+flights+to+rome", "hybrid").await;
    // In the last one no agent has the word, which means "weather".
    for query in [
        QUERY,
        "ich+suche+flights&mode=semantic",
        "%D0%BF%D0%BE%D0%B3%D0%BE%D0%B4%D0%B0",
    ] {
        let path = format!("/v1/agents?q={query}");
        let answer = serving.api.get(&path).await.expect_status(200);
        assert_eq!(answer["mode"], "lexical", "{answer}");
        assert_eq!(answer["hints"][0]["kind"], "unknown_language", "{answer}");
        let page = serving.api.get(&format!("/?q={query}")).await.text();
        assert!(page.contains("A multilingual model"), "{page}");
        assert!(!page.contains("no model responded"), "{page}");
    }
    // No other reason is given besides.
    let command = ["search", "--mode", "hybrid", "ich suche flights nach rom"];
    let told = serving.api.run_admin_command(&command).await;
    assert_exit(&told, 0, "A multilingual model");
    let said = join_lines(&told.stderr);
    assert!(!said.contains("mode lexical was used"), "{said}");
    let answer = serving
        .api
        .get("/v1/agents?q=flights+to+rome")
        .await
        .expect_status(200);
    assert_eq!(answer["mode"], "hybrid", "{answer}");
    assert!(!answer.to_string().contains("unknown_language"), "{answer}");

    let installed = run_model_command(&data, &["install", MULTILINGUAL_MODEL]).await;
    assert_exit(&installed, 0, "");
    let meant = search_in_mode(&serving.api, QUERY, "hybrid").await;
    assert!(
        meant
            .hints
            .iter()
            .all(|hint| hint.kind != "unknown_language")
    );
    serving.stop().await;
}
