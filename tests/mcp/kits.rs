//! Other people's clients: the Python SDK in both modes and over both transports, and the conformance kit.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use super::{REVISIONS, TOOLS, publish};
use crate::support::origin::Origin;
use crate::support::program::{Finished, Program, registry};
use crate::support::setup::Setup;
use crate::support::{binary, prepared};

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("interop")
        .join(name)
}

/// What the client on the Python SDK was told.
fn told(finished: &Finished) -> Value {
    assert!(finished.status.success(), "{finished:#?}");
    serde_json::from_str(finished.stdout.last().unwrap()).unwrap()
}

#[tokio::test]
async fn the_python_sdk_reads_the_registry_in_both_modes() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    let ids = publish(&served, &origin, &["Rose", "Inside"]).await;
    super::show_to(
        &served,
        &ids[1],
        serde_json::json!({"visibility": "internal"}),
    )
    .await;
    let token = served.token("reader", "reader").await;
    let modes = [
        ("legacy", REVISIONS[1]),
        ("auto", REVISIONS[0]),
        (REVISIONS[0], REVISIONS[0]),
    ];
    for (mode, revision) in modes {
        for transport in ["http", "stdio"] {
            for token in [None, Some(&token)] {
                // Without the settings of the user who runs the tests, which the program would read.
                let mut command = registry([""; 0]);
                let mut client = Command::new(prepared("A2A_REGISTRY_TEST_MCP"));
                client
                    .args(["-B", "-u", "-W", "ignore"])
                    .arg(script("mcp_client.py"));
                for (name, value) in command.as_std_mut().get_envs() {
                    match value {
                        Some(value) => client.env(name, value),
                        None => client.env_remove(name),
                    };
                }
                client.args([mode, transport]);
                match transport {
                    "http" => client.arg(format!("{}/mcp", served.url)).args(token),
                    _ => client.arg(binary()).env("A2A_REGISTRY_URL", &served.url),
                };
                if let (Some(token), "stdio") = (token, transport) {
                    client.env("A2A_REGISTRY_TOKEN", token);
                }
                let told = told(&Program::run(client).await);
                assert_eq!(
                    told["revision"], revision,
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
                assert!(sentence.starts_with("There is no such agent"), "{sentence}");
            }
        }
    }
}

/// Scenarios of the kit that a server with tools alone and no sessions must pass, by revision.
const REQUIRED: [(&str, &[&str]); 2] = [
    (
        "2026-07-28",
        &[
            "server-stateless",
            "tools-list",
            "dns-rebinding-protection",
            "caching",
            "http-header-validation",
            "server-sse-multiple-streams",
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
            "server-sse-multiple-streams",
        ],
    ),
];

#[tokio::test]
async fn the_conformance_kit_passes_what_a_server_with_tools_must() {
    let served = Setup::new().start_untapped().await;
    let url = format!("{}/mcp", served.url);
    for (revision, scenarios) in REQUIRED {
        let mut command = Command::new("node");
        command
            .arg(script("mcp_conformance.mjs"))
            .arg(prepared("A2A_REGISTRY_TEST_NODE"))
            .args([url.as_str(), revision])
            .args(scenarios);
        let finished = Program::run(command).await;
        let lines = finished.stdout.iter();
        let results: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(results.len(), scenarios.len(), "{finished:#?}");
        for result in results {
            assert_eq!(result["status"], 0, "{revision}: {result:#}");
            assert_eq!(
                result["failed"],
                serde_json::json!([]),
                "{revision}: {result:#}"
            );
            assert_ne!(
                result["passed"],
                serde_json::json!([]),
                "{revision}: {result:#}"
            );
        }
    }
}
