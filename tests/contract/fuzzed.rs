//! Requests that schemathesis generates from the document, and its checks of the responses.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::prepared;
use crate::support::program::{Finished, Program, text};
use crate::support::serving::ServingRegistry;
use crate::support::setup::{ADMIN, Setup};

/// The checks, by name, so that a newer schemathesis does not silently add others.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,negative_data_rejection,\
                      missing_required_header,unsupported_method,allow_header_conformance,ignored_auth";

/// Timeout of a run, with other tests beside it.
const LIMIT: Duration = Duration::from_secs(900);

/// Number of requests per operation.
const EXAMPLES: &str = "75";

/// A registry with agents in which anyone may register and write without a rate limit.
async fn populated() -> (ServingRegistry, Vec<Origin>) {
    let open =
        "[governance]\nregistration = \"open\"\n[limits]\nanonymous_writes_per_minute = 1000000\n";
    let served = Setup::new().configure(open).approve_all().start().await;
    let mut origins = Vec::new();
    for (name, skill) in [
        ("Echo", "repeat"),
        ("Oracle", "foretell"),
        ("Baker", "bake"),
    ] {
        let origin = Origin::start();
        origin.answer("/a.json", OriginReply::json(card(name, skill)));
        served.register(&origin.url("/a.json")).await;
        served.found(&format!("skill={skill}")).await;
        origins.push(origin);
    }
    let token = json!({"account": "publisher", "role": "publisher", "name": "spare"});
    let made = served.as_admin(Method::POST, "/v1/tokens").json(&token);
    assert_eq!(made.send().await.unwrap().status(), 201);
    (served, origins)
}

async fn fuzz(served: &ServingRegistry, token: Option<&str>, selection: [&str; 2]) -> Finished {
    let mut command = Command::new(prepared("A2A_REGISTRY_TEST_SCHEMATHESIS"));
    command
        .current_dir(served.setup.scratch())
        .args(["-m", "schemathesis.cli", "run"])
        .arg(format!("{}/openapi.json", served.url))
        .args([
            "--checks",
            CHECKS,
            "--max-examples",
            EXAMPLES,
            "--seed",
            "16",
        ])
        // One worker: in Python 3.11 two threads that read syntax trees at once can fail (SystemError, "AST constructor
        // recursion depth mismatch").
        .args(["--phases", "examples,coverage,fuzzing", "--workers", "1"])
        // Text with NUL is refused by a check of its own, which no schema can express.
        .args([
            "--generation-allow-x00",
            "false",
            "--generation-database",
            "none",
        ])
        .args(selection)
        // A generated token would be refused before anything else is checked; the anonymous run sends none.
        .args(["--generation-with-security-parameters", "false"])
        .args(["--continue-on-failure", "--warnings", "off", "--no-color"]);
    if let Some(token) = token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    Program::start(command).finish_within(LIMIT).await
}

/// Number of operations of the API document.
fn operations() -> usize {
    let document: Value = serde_json::from_str(include_str!("../../openapi/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    paths
        .map(|methods| methods.as_object().unwrap().len())
        .sum()
}

/// Runs all operations with this token, or anonymously. Revoking comes last: token ids from one response are used in
/// the next request, and after a revocation all requests would be anonymous.
async fn run_all_operations(token: Option<&str>) {
    let (served, _origins) = populated().await;
    for (selected, tested) in [
        ("--exclude-operation-id", operations() - 1),
        ("--include-operation-id", 1),
    ] {
        if let Some(token) = token {
            let known = served.request(Method::GET, "/v1/tokens").bearer_auth(token);
            assert_eq!(known.send().await.unwrap().status(), 200);
        }
        let finished = fuzz(&served, token, [selected, "token_revoke"]).await;
        let output = text(&finished.stdout);
        assert!(
            finished.status.success(),
            "{output}\n{}",
            text(&finished.stderr)
        );
        assert!(
            output
                .lines()
                .any(|line| line.trim_end().ends_with(&format!("Tested: {tested}"))),
            "some operations were not tested: {output}"
        );
    }
}

#[tokio::test]
async fn every_anonymous_request_gets_a_documented_response() {
    run_all_operations(None).await;
}

#[tokio::test]
async fn every_admin_request_gets_a_documented_response() {
    run_all_operations(Some(ADMIN)).await;
}
