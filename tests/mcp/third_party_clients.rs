//! Third-party clients: the Python SDK in both modes and over both transports, and the conformance kit.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use super::{REVISIONS, TOOLS, publish};
use crate::support::program::{FinishedProgram, Program, registry_command};
use crate::support::setup::RegistrySetup;
use crate::support::{DEADLINE, registry_binary, required_variable};

pub(super) fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("interop")
        .join(name)
}

/// What a client on an SDK was told.
pub(super) fn client_report(finished: &FinishedProgram) -> Value {
    assert!(finished.status.success(), "{finished:#?}");
    serde_json::from_str(finished.stdout.last().unwrap()).unwrap()
}

#[tokio::test]
async fn the_python_sdk_reads_the_registry_in_both_modes() {
    let served = RegistrySetup::new().approve_all().start().await;
    let published = publish(&served, &["Rose", "Inside"]).await;
    let ids = &published.ids;
    super::show_to(
        &served,
        &ids[1],
        serde_json::json!({"visibility": "internal"}),
    )
    .await;
    let token = served.create_token("reader", "reader").await;
    let modes = [
        ("legacy", REVISIONS[1]),
        ("auto", REVISIONS[0]),
        (REVISIONS[0], REVISIONS[0]),
    ];
    let names = modes.map(|(mode, _)| mode).join(",");
    for transport in ["http", "stdio"] {
        for token in [None, Some(&token)] {
            // Without the settings of the user who runs the tests, which the program would read.
            let mut command = registry_command([""; 0]);
            let mut client = Command::new(required_variable("A2A_REGISTRY_TEST_MCP"));
            client
                .args(["-B", "-u", "-W", "ignore"])
                .arg(script("mcp_client.py"));
            for (name, value) in command.as_std_mut().get_envs() {
                match value {
                    Some(value) => client.env(name, value),
                    None => client.env_remove(name),
                };
            }
            client.args([names.as_str(), transport]);
            match transport {
                "http" => client.arg(format!("{}/mcp", served.url)).args(token),
                _ => client
                    .arg(registry_binary())
                    .env("A2A_REGISTRY_URL", &served.url),
            };
            if let (Some(token), "stdio") = (token, transport) {
                client.env("A2A_REGISTRY_TOKEN", token);
            }
            let finished = Program::run(client).await;
            assert!(finished.status.success(), "{finished:#?}");
            assert_eq!(finished.stdout.len(), modes.len(), "{finished:#?}");
            for ((mode, revision), line) in modes.iter().zip(&finished.stdout) {
                let told: Value = serde_json::from_str(line).unwrap();
                assert_eq!(
                    told["revision"], *revision,
                    "{mode} over {transport}: {told:#}"
                );
                let mut tools: Vec<_> = TOOLS.to_vec();
                tools.extend((transport == "stdio").then_some("talk_to_agent"));
                assert_eq!(told["tools"], serde_json::json!(tools));
                let found = told["agents"].as_array().unwrap().len();
                assert_eq!(found, 1 + usize::from(token.is_some()), "{told:#}");
                assert_eq!(told["total"], found);
                assert_eq!(told["read"], serde_json::json!([true, true, true]));
                assert!(told["card"].as_str().unwrap().contains("gardening"));
                assert_eq!(told["missing"][0], true);
                let sentence = told["missing"][1].as_str().unwrap();
                assert!(
                    sentence.starts_with("The agent does not exist"),
                    "{sentence}"
                );
            }
        }
    }
}

/// Scenarios of the kit that are run, by revision.
const RUN: [(&str, &[&str]); 2] = [
    (
        "2026-07-28",
        &[
            "server-stateless",
            "tools-list",
            "dns-rebinding-protection",
            "caching",
            "http-header-validation",
            "server-sse-multiple-streams",
            "sep-2164-resource-not-found",
            "input-required-result-unsupported-methods",
        ],
    ),
    (
        "2025-11-25",
        &[
            "server-initialize",
            "ping",
            "tools-list",
            "dns-rebinding-protection",
        ],
    ),
];

/// Checks within these scenarios that ask for what this server does not offer.
const NOT_OFFERED: [(&str, &str); 7] = [
    ("sep-2575-server-rejects-undeclared-capability", SAMPLE),
    ("sep-2575-missing-capability-http-400", SAMPLE),
    (
        "sep-2575-http-server-no-independent-requests-on-stream",
        SAMPLE,
    ),
    ("sep-2575-server-no-log-without-loglevel", SAMPLE),
    ("sep-2549-prompts-list-caching-hints", PROMPTS),
    ("sep-2549-resources-list-caching-hints", RESOURCES),
    ("sep-2549-resources-templates-list-caching-hints", RESOURCES),
];

/// All other scenarios for servers, by how their names begin.
const NOT_RUN: [(&str, &str); 19] = [
    ("completion-", "no tool has arguments that are completed"),
    ("elicitation-", ASKS),
    ("http-custom-header-", "no argument is repeated in a header"),
    ("input-required-result-basic-", ASKS),
    ("input-required-result-capability-", ASKS),
    ("input-required-result-ignore-", ASKS),
    ("input-required-result-m", ASKS),
    ("input-required-result-non-tool-", ASKS),
    ("input-required-result-re", ASKS),
    ("input-required-result-tampered-", ASKS),
    ("input-required-result-validate-", ASKS),
    ("json-schema-2020-12", SAMPLE),
    ("logging-", "no log is sent to clients"),
    ("prompts-", PROMPTS),
    ("resources-", RESOURCES),
    ("sep-2640-skills-", "there are no skills of MCP"),
    ("server-se", "there are no sessions"),
    ("server-sse-polling", "there are no streams"),
    ("tools-call-", SAMPLE),
];

const ASKS: &str = "no tool asks anything of the user";
const PROMPTS: &str = "there are no prompts";
const RESOURCES: &str = "there are no resources";
const SAMPLE: &str = "it calls a sample tool of the kit";
const TASKS: (&str, &str) = ("tasks-", "no call of a tool is a task");

fn kit(arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command
        .arg(script("mcp_conformance.mjs"))
        .arg(required_variable("A2A_REGISTRY_TEST_NODE"))
        .args(arguments);
    command
}

/// Every scenario that the kit has for servers is run, or there is a reason why not.
#[tokio::test]
async fn every_scenario_of_the_kit_is_run_or_has_a_reason() {
    let listed = Program::run(kit(&["list"])).await.stdout;
    assert!(listed.len() > 60, "{listed:?}");
    let run: Vec<&str> = RUN
        .iter()
        .flat_map(|(_, scenarios)| scenarios.iter().copied())
        .collect();
    for scenario in &run {
        assert!(
            listed.iter().any(|one| one == scenario),
            "{scenario} is not in {listed:?}"
        );
    }
    for scenario in &listed {
        let reasons = NOT_RUN.iter().chain([&TASKS]);
        let reason = reasons
            .into_iter()
            .find(|(begins, _)| scenario.starts_with(begins));
        assert_ne!(
            run.contains(&scenario.as_str()),
            reason.is_some(),
            "{scenario}: {reason:?}"
        );
    }
}

#[tokio::test]
async fn the_conformance_kit_passes_what_a_server_with_tools_must() {
    let served = RegistrySetup::new().start_without_proxy().await;
    let url = format!("{}/mcp", served.url);
    for (revision, scenarios) in RUN {
        let mut words = vec![url.as_str(), revision];
        words.extend(scenarios);
        // The kit runs dozens of scenarios; on a busy machine that takes longer than one program's usual deadline.
        let finished = Program::start(kit(&words))
            .wait_for_end_within(4 * DEADLINE)
            .await;
        let lines = finished.stdout.iter();
        let results: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(results.len(), scenarios.len(), "{finished:#?}");
        for result in results {
            let ids = |member: &str| -> Vec<&str> {
                let ids = result[member].as_array().unwrap().iter();
                ids.map(|id| id.as_str().unwrap()).collect()
            };
            let failed = ids("failed");
            let excused = |id: &&str| NOT_OFFERED.iter().any(|(other, _)| other == id);
            assert!(failed.iter().all(excused), "{revision}: {result:#}");
            assert!(!ids("passed").is_empty(), "{revision}: {result:#}");
        }
    }
}
