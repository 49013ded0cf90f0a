//! The program as its users run it: its output, its exit codes and its shutdown.

use tokio::process::Command;

use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, registry_command};
use crate::support::setup::RegistrySetup;

/// A text that would run, steer or hide something if it were printed literally.
const HOSTILE: &str = "'; $(id) <script>\u{1b}[2J\u{202e}\u{9b}31m\u{7}";
const CARD_PATH: &str = "/.well-known/agent-card.json";

/// Runs the program to its end.
async fn run_command(arguments: &[&str]) -> FinishedProgram {
    Program::run(registry_command(arguments)).await
}

/// The exit code and the one line on standard error.
fn failed(finished: &FinishedProgram) -> (i32, &str) {
    assert!(finished.stdout.is_empty(), "{finished:?}");
    assert_eq!(finished.stderr.len(), 1, "{finished:?}");
    (finished.status.code().unwrap(), &finished.stderr[0])
}

fn code(finished: &FinishedProgram) -> i32 {
    finished.status.code().unwrap()
}

/// A card with the hostile text in every member that is shown.
fn hostile_card(origin: &Origin) -> Vec<u8> {
    let text = serde_json::Value::from(HOSTILE);
    let card = serde_json::json!({
        "name": text, "description": text, "version": text, "url": origin.url("/a2a"),
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "provider": {"organization": text, "url": "https://provider.example"},
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": text, "name": text, "description": text, "tags": [text], "examples": [text]}]
    });
    serde_json::to_vec(&card).unwrap()
}

/// Checks that the output contains no control sequence or invisible character.
fn assert_visible(finished: &FinishedProgram) {
    for line in finished.stdout.iter().chain(&finished.stderr) {
        let bad = line
            .chars()
            .find(|character| character.is_control() || *character == '\u{202e}');
        assert_eq!(bad, None, "{line:?}");
    }
}

#[tokio::test]
async fn a_hostile_card_is_registered_approved_and_shown_without_effect() {
    let origin = Origin::start();
    let card = hostile_card(&origin);
    origin.set_reply(CARD_PATH, OriginReply::json(card.clone()));
    let answer = serde_json::json!({
        "jsonrpc": "2.0", "id": 1,
        "result": {"kind": "message", "role": "agent", "messageId": "m",
                   "parts": [{"kind": "text", "text": HOSTILE}]}
    });
    origin.set_reply("/a2a", OriginReply::json(answer.to_string()));
    let server = RegistrySetup::new().start().await;

    let registered = server
        .run_admin_command(&["register", &origin.url("")])
        .await;
    assert_eq!(code(&registered), 0, "{registered:?}");
    assert_visible(&registered);
    let line = registered
        .stdout
        .iter()
        .find(|line| line.contains("pending"))
        .unwrap();
    let review = line
        .split("review approve ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();

    let approved = server
        .run_admin_command(&["review", "approve", review, "--reason", "looked at"])
        .await;
    assert_eq!(code(&approved), 0, "{approved:?}");
    assert_visible(&approved);
    let host = origin.address().to_string();
    for arguments in [
        vec!["show", &host],
        vec!["show", &host, "--versions"],
        vec!["show", &host, "--findings"],
        vec!["domain", "show", &host],
        vec!["domain", "list"],
        vec!["review", "list", "--state", "approved"],
        vec!["review", "show", review],
        vec!["send", &host, "hello"],
        vec!["agent", "suspend", &host, "--reason", "test"],
        vec!["agent", "resume", &host, "--reason", "test"],
    ] {
        let finished = server.run_admin_command(&arguments).await;
        assert_eq!(code(&finished), 0, "{arguments:?}: {finished:?}");
        assert_visible(&finished);
    }
    for arguments in [
        vec!["show", &host],
        vec!["review", "show", review],
        vec!["send", &host, "hello"],
    ] {
        let mut command = server.admin_command(&arguments);
        command.arg("--json");
        let finished = Program::run(command).await;
        assert_eq!(code(&finished), 0, "{arguments:?}: {finished:?}");
        assert_visible(&finished);
        let said = finished.stdout.join("\n");
        let value: serde_json::Value = serde_json::from_str(&said).unwrap();
        let kept = serde_json::to_string(HOSTILE).unwrap();
        assert!(value.to_string().contains(&kept), "{value}");
    }
    let bytes = server
        .admin_command(&["show", &host, "--card"])
        .output()
        .await
        .unwrap();
    assert_eq!(bytes.stdout, card);
    let raw = server
        .admin_command(&["send", &host, "hello", "--raw"])
        .output()
        .await
        .unwrap();
    assert_eq!(raw.stdout, format!("{HOSTILE}\n").as_bytes());
}

#[tokio::test]
async fn one_failing_name_does_not_stop_the_others() {
    let origin = Origin::start();
    origin.set_reply(CARD_PATH, OriginReply::json(hostile_card(&origin)));
    let server = RegistrySetup::new().start().await;
    let url = origin.url("");
    let finished = server
        .run_admin_command(&["register", "10.0.0.1", &url, "no such name"])
        .await;
    assert_eq!(code(&finished), 1, "{finished:?}");
    assert_eq!(finished.stderr.len(), 2, "{finished:?}");
    assert!(
        finished.stdout.iter().any(|line| line.contains("pending")),
        "{finished:?}"
    );

    let answers = server
        .run_admin_command(&["register", &url, "--json"])
        .await;
    assert_eq!(answers.stdout.len(), 1, "{answers:?}");
    let domain: serde_json::Value = serde_json::from_str(&answers.stdout[0]).unwrap();
    assert_eq!(domain["domain"], origin.address().to_string());
}

#[tokio::test]
async fn a_missing_agent_is_a_negative_result() {
    let server = RegistrySetup::new().start().await;
    for arguments in [
        &["show", "nosuch.example"][..],
        &["show", "urn:air:nosuch.example:agents:x"],
        &["domain", "show", "nosuch.example"],
        &["review", "show", "01890a5d-ac96-774b-bcce-b302099a8057"],
        &["send", "nosuch.example", "hello"],
    ] {
        let finished = server.run_admin_command(arguments).await;
        assert_eq!(failed(&finished).0, 1, "{arguments:?}: {finished:?}");
    }
    assert_eq!(
        code(&server.run_admin_command(&["search", "nothing"]).await),
        1
    );
    let wrong = server
        .run_admin_command(&["search", "--sort", "backwards"])
        .await;
    let (code, line) = failed(&wrong);
    assert_eq!(code, 2);
    assert!(line.contains("relevance"), "{line}");
    let stranger = server
        .run_admin_command(&["domain", "list", "--token", "wrong"])
        .await;
    assert!(failed(&stranger).1.contains("A2A_REGISTRY_TOKEN"));
}

#[tokio::test]
async fn the_printed_configuration_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let printed = run_command(&["serve", "--print-config", "--listen", "127.0.0.1:9999"]).await;
    assert_eq!(code(&printed), 0, "{printed:?}");
    let file = folder.path().join("registry.toml");
    std::fs::write(&file, printed.stdout.join("\n")).unwrap();
    let again = run_command(&[
        "serve",
        "--print-config",
        "--config",
        file.to_str().unwrap(),
    ])
    .await;
    assert_eq!(again.stdout, printed.stdout);
    assert!(
        again
            .stdout
            .contains(&"listen = \"127.0.0.1:9999\"".to_owned())
    );
    let commented = run_command(&["serve", "--print-config=commented"]).await;
    assert_eq!(code(&commented), 0, "{commented:?}");
    std::fs::write(&file, commented.stdout.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let defaults = run_command(&["serve", "--print-config"]).await;
    let read = run_command(&["serve", "--print-config", "--config", file]).await;
    assert_eq!(read.stdout, defaults.stdout);
    let other = run_command(&["serve", "--print-config=short"]).await;
    assert!(failed(&other).1.contains("commented"), "{other:?}");
    // Keys that are not set are shown too, and native TLS is one of them.
    assert!(
        defaults
            .stdout
            .contains(&"# tls_cert = (not set)".to_owned())
    );
    let unset = "# metrics_listen = (not set)".to_owned();
    assert!(again.stdout.contains(&unset), "{again:?}");
}

#[tokio::test]
async fn a_server_ends_properly_and_frees_its_folder() {
    let server = RegistrySetup::new().start().await;
    assert_eq!(code(&server.run_admin_command(&["reindex"]).await), 0);
    let (setup, url) = (server.setup.clone(), server.url.clone());
    server.stop().await;
    let data = setup.data_folder().display().to_string();
    for arguments in [
        &["migrate"][..],
        &["reindex", "--registry", &url],
        &["token", "reset-admin"],
    ] {
        let mut all = arguments.to_vec();
        all.extend(["--data-dir", &data]);
        let done = run_command(&all).await;
        assert_eq!(code(&done), 0, "{arguments:?}: {done:?}");
    }
}

/// The start message has the addresses, as text for people, and as one line of JSON for programs.
#[tokio::test]
async fn a_server_prints_its_addresses_and_its_end() {
    let setup =
        RegistrySetup::new().with_config_lines("[server]\nmetrics_listen = \"127.0.0.1:0\"");
    let mut command = setup.serve_command();
    command.env_remove("A2A_REGISTRY_BOOTSTRAP_TOKEN");
    let server = Program::start(command);
    let made = |line: &str| Some(line.strip_prefix("admin token: ")?.starts_with("a2ar_"));
    assert!(
        server.wait_for_match(made).await,
        "the first start makes a token"
    );
    server.wait_for_line("metrics on http://127.0.0.1:").await;
    server.wait_for_line("listening on http://127.0.0.1:").await;
    let finished = server.terminate().await;
    assert_eq!(code(&finished), 0, "{finished:?}");
    assert_eq!(finished.stdout.last().unwrap(), "stopped");

    let server = setup.start_without_proxy().await;
    let url = server.status_line.url().to_owned();
    assert_eq!(server.get("/livez").await.status, 200);
    let finished = server.stop().await;
    let [serving, stopped] = finished.stdout.as_slice() else {
        panic!("{finished:?}");
    };
    let serving: serde_json::Value = serde_json::from_str(serving).unwrap();
    assert_eq!(serving["url"], url);
    assert_eq!(serving["roles"], serde_json::json!(["api", "crawler"]));
    let metrics = serving["metrics_url"].as_str().unwrap();
    assert!(metrics.ends_with("/metrics"), "{metrics}");
    assert_eq!(
        serving["admin_token"],
        serde_json::Value::Null,
        "a later start makes none"
    );
    assert_eq!(stopped, r#"{"state":"stopped"}"#);
}

#[tokio::test]
async fn a_closed_output_pipe_is_no_error() {
    let mut shell = Command::new("bash");
    shell
        .arg("-c")
        .arg("set -o pipefail; \"$0\" openapi | head -c 10")
        .arg(crate::support::registry_binary());
    let finished = Program::run(shell).await;
    assert_eq!(code(&finished), 0, "{finished:?}");
    assert!(finished.stderr.is_empty(), "{finished:?}");
}
