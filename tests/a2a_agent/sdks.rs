//! Third-party clients that know only the address of the registry: their own resolvers read its card.

use serde_json::Value;

use super::conversation::with_agents;
use super::listening_registry::{ListeningRegistry, admin};
use crate::support::database::Database;
use crate::support::program::{FinishedProgram, Program, join_lines, registry_command};
use crate::support::sdk::Sdk;
use crate::support::setup::ADMIN_TOKEN;

/// The lines of a client, by their first word.
fn line_after<'a>(finished: &'a FinishedProgram, word: &str) -> &'a str {
    let mut lines = finished.stdout.iter();
    let found = lines.find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {word}: {finished:#?}"))
}

async fn talk(
    sdk: Sdk,
    served: &ListeningRegistry,
    token: Option<&str>,
    arguments: &[&str],
) -> FinishedProgram {
    let mut command = sdk.script_command("registry");
    command
        .arg(&served.url)
        .arg(token.unwrap_or("-"))
        .args(arguments);
    let finished = Program::run(command).await;
    assert!(
        finished.status.success(),
        "{sdk:?} {arguments:?}: {finished:#?}"
    );
    finished
}

/// What every client must have seen, by the words of its SDK.
struct ExpectedOutput {
    stream: &'static str,
    states: [&'static str; 3],
    /// A part of what it calls the errors of a task that has ended, of one that does not exist, and of a stream of an ended one.
    errors: [&'static str; 3],
    /// Whether it accepts the signature of the registry's card. That of 0.3 verifies the members of 0.3 alone.
    verifies: &'static str,
}

async fn all_are_served(sdk: Sdk, arguments: &[&str], words: &ExpectedOutput, lists: bool) {
    let database = Database::sqlite();
    let served = with_agents(database.url()).await;
    for (token, listed) in [(None, "0 0"), (admin(), "1 2")] {
        let finished = talk(sdk, &served, token, arguments).await;
        let expected = served
            .v1_pages(token, "flights", 10)
            .await
            .concat()
            .join(" ");
        assert!(line_after(&finished, "CARD").starts_with("Agent registry at "));
        assert_eq!(
            line_after(&finished, "VERIFIED").to_lowercase(),
            words.verifies
        );
        assert_eq!(line_after(&finished, "STREAM"), words.stream);
        assert_eq!(line_after(&finished, "STREAMED"), expected);
        let [completed, asks, cancelled] = words.states;
        assert_eq!(
            line_after(&finished, "SENT"),
            format!("{completed} {expected}")
        );
        assert_eq!(line_after(&finished, "GOT").to_lowercase(), "true");
        for (word, error) in ["CANCEL", "GET", "SUBSCRIBE"].iter().zip(words.errors) {
            assert!(
                line_after(&finished, word).contains(error),
                "{word}: {finished:#?}"
            );
        }
        assert_eq!(line_after(&finished, "ASKED"), asks);
        assert_eq!(line_after(&finished, "ENDED"), cancelled);
        if lists {
            assert_eq!(line_after(&finished, "LISTED"), listed);
        }
    }
}

const OF_1_0: [&str; 3] = [
    "TASK_STATE_COMPLETED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_CANCELED",
];

#[tokio::test]
async fn the_python_sdk_of_1_0_talks_to_it_over_both_bindings() {
    let words = ExpectedOutput {
        stream: "task artifact_update status_update",
        states: OF_1_0,
        errors: [
            "TaskNotCancelableError",
            "TaskNotFoundError",
            "UnsupportedOperationError",
        ],
        verifies: "true",
    };
    for binding in ["JSONRPC", "HTTP+JSON"] {
        all_are_served(Sdk::Py1, &[binding], &words, true).await;
    }
}

#[tokio::test]
async fn the_javascript_sdk_of_1_0_talks_to_it_over_both_bindings() {
    let words = ExpectedOutput {
        stream: "task artifactUpdate statusUpdate",
        states: OF_1_0,
        errors: [
            "TaskNotCancelableError",
            "TaskNotFoundError",
            "UnsupportedOperationError",
        ],
        verifies: "true",
    };
    for binding in ["jsonrpc", "rest"] {
        all_are_served(Sdk::Node, &[binding], &words, true).await;
    }
}

#[tokio::test]
async fn the_python_sdk_of_0_3_talks_to_it() {
    let words = ExpectedOutput {
        stream: "task artifact-update status-update",
        states: ["completed", "input-required", "canceled"],
        errors: ["-32002", "-32001", "-32004"],
        verifies: "false",
    };
    all_are_served(Sdk::Py03, &[], &words, false).await;
}

/// Its resolver asks for the card at `agent.json` alone.
#[tokio::test]
async fn the_python_sdk_of_0_2_finds_its_card_and_talks_to_it() {
    let database = Database::sqlite();
    let served = with_agents(database.url()).await;
    let finished = talk(Sdk::Py02, &served, None, &[]).await;
    let expected = served.v1_pages(None, "flights", 10).await.concat();
    assert!(line_after(&finished, "CARD").starts_with("Agent registry at "));
    assert_eq!(
        line_after(&finished, "SENT"),
        format!("completed {}", expected.join(" "))
    );
}

/// Our own client, which takes the interface of the card that it likes best.
#[tokio::test]
async fn send_talks_to_it() {
    let database = Database::sqlite();
    let served = with_agents(database.url()).await;
    let card = format!("{}/.well-known/agent-card.json", served.url);
    let sent = Program::run(registry_command(["send", "--direct", &card, "flights"])).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    let shown = join_lines(&sent.stdout);
    for urn in served.v1_pages(None, "flights", 10).await.concat() {
        assert!(shown.contains(&urn), "{shown}");
    }
    let sent = Program::run(registry_command([
        "send", "--direct", &card, "flights", "--json",
    ]))
    .await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    assert!(
        sent.stdout
            .iter()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{sent:#?}"
    );
    assert!(!join_lines(&sent.stdout).contains(ADMIN_TOKEN));
}
