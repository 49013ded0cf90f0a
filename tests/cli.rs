//! The command line in processes: exit codes, and one line per failure. This file tests commands without a registry,
//! `client` those with a registry, `agent_names` which agent a name means, `exit_codes` all exit codes, `fetching`
//! where cards are looked for, `similar` similar agents and weak matches, and `sign` signed cards.

mod accounts;
mod agent_names;
mod client;
mod collections;
mod exit_codes;
mod fetching;
mod forged_signatures;
mod model_hub;
mod operator;
mod personal;
mod policies;
mod process;
mod register;
mod removal;
mod reviews;
mod secrets;
mod sign;
mod similar;
mod timeouts;

use std::net::TcpListener;

use tempfile::TempDir;
use tokio::process::Command;

use crate::support::cards::card_json;
use crate::support::program::{Program, assert_exit, join_lines, registry_command};

async fn run_command(arguments: &[&str]) -> crate::support::program::FinishedProgram {
    Program::run(registry_command(arguments)).await
}

/// A folder with this text in a file, and the file's path.
fn file(content: &str) -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[tokio::test]
async fn flags_override_the_environment_which_overrides_the_file() {
    let (_folder, path) = file(
        "[server]\nlisten = \"127.0.0.1:1001\"\npublic_url = \"https://file.example\"\n\
         [limits]\nfacets = 3\nfilters = 4\n",
    );
    let mut command = registry_command(["serve", "--print-config", "--config", &path]);
    command
        .args(["--listen", "127.0.0.1:1003"])
        .env("A2A_REGISTRY__SERVER__LISTEN", "127.0.0.1:1002")
        .env("A2A_REGISTRY__LIMITS__FACETS", "5");
    let finished = Program::run(command).await;
    assert_exit(&finished, 0, "");
    let shown: toml::Table = join_lines(&finished.stdout).parse().unwrap();
    assert_eq!(shown["server"]["listen"].as_str(), Some("127.0.0.1:1003"));
    let public_url = shown["server"]["public_url"].as_str();
    assert_eq!(public_url, Some("https://file.example"));
    assert_eq!(shown["limits"]["facets"].as_integer(), Some(5));
    assert_eq!(shown["limits"]["filters"].as_integer(), Some(4));

    // The printed configuration can be used as a file.
    let (_folder, path) = file(&join_lines(&finished.stdout));
    let again = run_command(&["serve", "--print-config", "--config", &path]).await;
    assert_eq!(again.stdout, finished.stdout);
}

#[tokio::test]
async fn all_mistakes_in_a_configuration_are_reported_at_once() {
    let (_folder, path) = file(
        "[server]\nlissen = \"127.0.0.1:1\"\npublic_url = \"ftp://x\"\ndrain_seconds = \"soon\"\n\
         [crawler]\nconcurrency = 0\nallow_ports = \"some\"\nallow_networks = [\"10.0.0.0/99\"]\n\
         [limit]\nfacets = 3\n",
    );
    let finished = run_command(&["serve", "--config", &path]).await;
    assert_exit(&finished, 2, "configuration: ");
    for mistake in [
        "lissen",
        "server.public_url",
        "drain_seconds",
        "crawler.concurrency",
        "crawler.allow_ports",
        "allow_networks",
        "`limit`",
    ] {
        let line = &finished.stderr[0];
        assert!(line.contains(mistake), "{mistake} is missing in {line}");
    }
    let missing = run_command(&["serve", "--config", "/no/such/file"]).await;
    assert_exit(&missing, 2, "/no/such/file");
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    for command in ["serve", "demo"] {
        let mut command = registry_command([command, "--listen", &address, "--data-dir"]);
        command.arg(&data);
        assert_exit(
            &Program::run(command).await,
            2,
            &format!("{address} is in use"),
        );
    }
}

#[tokio::test]
async fn wrong_usage_is_reported_in_one_line() {
    for (arguments, named) in [
        (&["serve", "--lissen", "x"][..], "--lissen"),
        (&["serve", "--listen", "x"], "--listen"),
        (&["serve", "--roles", "api"], "PostgreSQL"),
        (&["search", "--limit", "101"], "--limit"),
        (&["show"], "AGENT"),
        (&["show", "a", "--card", "--versions"], "--versions"),
        (&["review", "approve", "x", "--reason", "y"], "x"),
        (&["token", "create", "x", "--role", "king"], "king"),
        (&["token", "create", "x"], "--account"),
        (&["token", "create", "--account", "ann"], "--role"),
        (&["token", "create", "--role", "curator"], "--account"),
        (&["send", "a", "b", "--strict", "--direct"], "--direct"),
        (&["search", "--registry", "nowhere"], "--registry"),
        (&["fly"], "fly"),
    ] {
        assert_exit(&run_command(arguments).await, 2, named);
    }
    let help = run_command(&["--help"]).await;
    assert_exit(&help, 0, "");
    for command in [
        "demo", "serve", "register", "search", "send", "lint", "doctor",
    ] {
        let listed = help
            .stdout
            .iter()
            .any(|line| line.trim().starts_with(command));
        assert!(listed, "{command}");
    }
    let version = run_command(&["--version"]).await;
    assert_exit(&version, 0, "");
    assert!(version.stdout[0].starts_with("a2a-registry "));
}

#[tokio::test]
async fn the_exit_code_of_lint_shows_the_worst_finding() {
    let good = card_json("Echo", "repeat");
    let broken = good.replace("\"version\": \"1.0.0\"", "\"version\": {}");
    assert_ne!(good, broken);
    for (content, code, said) in [
        (good.as_str(), 0, "errors: 0, warnings: 0"),
        (&broken, 1, "errors: 1"),
        ("<html>", 2, "HTML"),
        ("nonsense", 2, "JSON"),
        ("{\"title\": \"x\"}", 2, "no `name`"),
        ("", 2, "empty"),
    ] {
        let (_folder, path) = file(content);
        assert_exit(&run_command(&["lint", &path]).await, code, said);
        let piped = registry_command(["lint", "-"]);
        let piped = Program::run_with_input(piped, content.as_bytes()).await;
        assert_exit(&piped, code, said);
    }
    let (_folder, path) = file(&broken);
    let shown = run_command(&["lint", &path]).await;
    assert!(join_lines(&shown.stdout).contains("/version"), "{shown:#?}");
    let json = run_command(&["lint", "--json", &path]).await;
    let report: serde_json::Value = serde_json::from_str(&join_lines(&json.stdout)).unwrap();
    assert_eq!(report["findings"][0]["pointer"], "/version");
    assert_eq!(report["findings"][0]["severity"], "error");
    assert_exit(
        &run_command(&["lint", "/no/such/card"]).await,
        2,
        "/no/such/card",
    );
}

/// Each of several cards is linted, whatever the others contain, and the worst result decides the exit code.
#[tokio::test]
async fn lint_reports_each_of_several_cards() {
    let good = card_json("Echo", "repeat");
    let broken = good.replace("\"version\": \"1.0.0\"", "\"version\": {}");
    let (_one, good) = file(&good);
    let (_two, broken) = file(&broken);
    let (_three, nothing) = file("<html>");
    for (cards, code) in [
        (vec![good.as_str(), &good], 0),
        (vec![&broken, &good], 1),
        (vec!["/no/such/card", &broken, &good], 2),
        (vec![&nothing, &good], 2),
    ] {
        let arguments = [&["lint"][..], &cards].concat();
        let finished = run_command(&arguments).await;
        assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
        for card in &cards {
            let named = finished.stderr.iter().any(|line| line.contains(card));
            assert!(named, "{card}: {finished:#?}");
        }
        let finished = run_command(&[&arguments[..], &["--json"]].concat()).await;
        assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
        assert_eq!(finished.stdout.len(), cards.len(), "{finished:#?}");
        for (line, card) in finished.stdout.iter().zip(&cards) {
            let report: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(report["source"], **card, "{report}");
            let read = report["findings"].is_array();
            assert_eq!(!read, report["exit_code"] == 2, "{report}");
        }
        let logged = run_command(&[&arguments[..], &["--sarif"]].concat()).await;
        assert_eq!(logged.status.code(), Some(code), "{logged:#?}");
        let log: serde_json::Value = serde_json::from_str(&join_lines(&logged.stdout)).unwrap();
        assert_eq!(log["runs"].as_array().map(Vec::len), Some(1), "{log:#}");
    }
}

#[tokio::test]
async fn the_shell_accepts_the_completion_script() {
    let script = run_command(&["completions", "bash"]).await;
    assert_exit(&script, 0, "");
    assert!(join_lines(&script.stdout).contains("complete -F"));
    let mut bash = Command::new("bash");
    bash.arg("-n");
    let read = Program::run_with_input(bash, join_lines(&script.stdout).as_bytes()).await;
    assert_exit(&read, 0, "");
    assert_exit(&run_command(&["completions", "csh"]).await, 2, "csh");
}

#[tokio::test]
async fn an_unreachable_registry_is_reported() {
    // Port 1 (tcpmux) has no server, and only root can start one there.
    let url = "http://127.0.0.1:1";
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    for arguments in [
        &["register", "agents.example.com"][..],
        &["domain", "show", "agents.example.com"],
        &["domain", "list"],
        &["search", "book"],
        &["show", id],
        &["send", id, "hello"],
        &["review", "list"],
        &["review", "approve", id, "--reason", "good"],
        &["agent", "suspend", id, "--reason", "bad"],
        &["token", "list"],
    ] {
        let mut command = registry_command(arguments);
        command.args(["--registry", url]);
        assert_exit(&Program::run(command).await, 2, url);
    }
}
