//! Requests that schemathesis generates from the document, and its checks of the responses.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::cards::card_json;
use crate::support::exchange::ApiDocument;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, join_lines};
use crate::support::required_variable;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// The checks, by name, so that a newer schemathesis does not silently add others.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,negative_data_rejection,\
                      missing_required_header,unsupported_method,allow_header_conformance,ignored_auth";

/// Timeout of a run, with other tests beside it.
const LIMIT: Duration = Duration::from_secs(900);

/// Number of requests at random per operation.
const EXAMPLES: &str = "75";

/// The document's examples, each constraint of each parameter kept and broken, and requests at random.
const PHASES: &str = "examples,coverage,fuzzing";
/// The same without requests at random.
const FIXED_PHASES: &str = "examples,coverage";

/// A registry with agents in which anyone may register and write without a rate limit.
async fn populated() -> (ServingRegistry, Vec<Origin>) {
    let open =
        "[governance]\nregistration = \"open\"\n[limits]\nanonymous_writes_per_minute = 1000000\n";
    let registry = RegistrySetup::new()
        .with_config_lines(open)
        .approve_all()
        .start()
        .await;
    let mut origins = Vec::new();
    for (name, skill) in [
        ("Echo", "repeat"),
        ("Oracle", "foretell"),
        ("Baker", "bake"),
    ] {
        let origin = Origin::start();
        origin.set_reply("/a.json", OriginReply::json(card_json(name, skill)));
        registry.register(&origin.url("/a.json")).await;
        registry.wait_for_hit(&format!("skill={skill}")).await;
        origins.push(origin);
    }
    let token = json!({"account": "publisher", "role": "publisher", "name": "spare"});
    let made = registry
        .admin_request(Method::POST, "/v1/tokens")
        .json(&token);
    assert_eq!(made.send().await.unwrap().status(), 201);
    (registry, origins)
}

/// Asks these operations with this token, or anonymously.
///
/// # Panics
///
/// Where a response is not as documented, or an operation was not tested.
async fn fuzz(
    registry: &ServingRegistry,
    token: Option<&str>,
    phases: &str,
    operations: &[String],
) {
    let mut command = Command::new(required_variable("A2A_REGISTRY_TEST_SCHEMATHESIS"));
    command
        .current_dir(registry.setup.scratch_folder())
        .args(["-m", "schemathesis.cli", "run"])
        .arg(format!("{}/openapi.json", registry.url))
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
        .args(["--phases", phases, "--workers", "1"])
        // Text with NUL is refused by a check of its own, which no schema can express.
        .args([
            "--generation-allow-x00",
            "false",
            "--generation-database",
            "none",
        ])
        // A generated token would be refused before anything else is checked; the anonymous run sends none.
        .args(["--generation-with-security-parameters", "false"])
        .args(["--continue-on-failure", "--warnings", "off", "--no-color"]);
    for operation in operations {
        command.args(["--include-operation-id", operation]);
    }
    if let Some(token) = token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let finished = Program::start(command).wait_for_end_within(LIMIT).await;
    let output = join_lines(&finished.stdout);
    assert!(
        finished.status.success(),
        "{output}\n{}",
        join_lines(&finished.stderr)
    );
    let tested = format!("Tested: {}", operations.len());
    let mut lines = output.lines();
    assert!(
        lines.any(|line| line.trim_end().ends_with(&tested)),
        "some operations were not tested: {output}"
    );
}

/// The operations of the API document that can be asked without a token, and those that cannot.
fn open_and_closed() -> (Vec<String>, Vec<String>) {
    let document = ApiDocument::current();
    let paths = document.json()["paths"].as_object().unwrap().values();
    let all = paths.flat_map(|path| path.as_object().unwrap().values());
    let (open, closed): (Vec<&Value>, Vec<&Value>) =
        all.partition(|operation| match operation["security"].as_array() {
            Some(ways) => ways.contains(&json!({})),
            None => true,
        });
    let named = |operations: Vec<&Value>| -> Vec<String> {
        let ids = operations.iter().map(|one| one["operationId"].as_str());
        ids.map(|id| id.unwrap().to_owned()).collect()
    };
    (named(open), named(closed))
}

/// Where a token is needed, a request without one is refused before it is looked at, so requests at random are all alike.
#[tokio::test]
async fn every_anonymous_request_gets_a_documented_response() {
    let (registry, _origins) = populated().await;
    let (open, closed) = open_and_closed();
    fuzz(&registry, None, PHASES, &open).await;
    fuzz(&registry, None, FIXED_PHASES, &closed).await;
}

/// Revoking comes last: token ids from one response are used in the next request, and after a revocation all requests would be
/// anonymous.
#[tokio::test]
async fn every_admin_request_gets_a_documented_response() {
    let (registry, _origins) = populated().await;
    let (open, closed) = open_and_closed();
    let all = open.into_iter().chain(closed);
    let (last, first): (Vec<_>, Vec<_>) = all.partition(|id| id == "token_revoke");
    for operations in [first, last] {
        let known = registry
            .admin_request(Method::GET, "/v1/tokens")
            .send()
            .await;
        assert_eq!(known.unwrap().status(), 200);
        fuzz(&registry, Some(ADMIN_TOKEN), PHASES, &operations).await;
    }
}
