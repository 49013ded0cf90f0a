//! Exit codes of all commands in one table: 0 done, 1 negative result, 2 wrong usage or a failure; and with `--json` a
//! document on standard output in every case.

use serde_json::Value;

use super::{file, run_command};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};
use crate::support::setup::RegistrySetup;

const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// The JSON documents on standard output: one per line, or one in total.
fn documents(finished: &FinishedProgram) -> Vec<Value> {
    let lines = finished.stdout.iter();
    let each: Result<Vec<Value>, _> = lines.map(|line| serde_json::from_str(line)).collect();
    let all = || serde_json::from_str(&join_lines(&finished.stdout)).map(|document| vec![document]);
    each.or_else(|_| all())
        .unwrap_or_else(|error| panic!("no JSON: {error}: {finished:#?}"))
}

/// Checks the exit code of a command with `--json`, and without it if that changes nothing.
async fn assert_exit_code(make: impl Fn() -> tokio::process::Command, code: i32) {
    if code != 0 {
        let finished = Program::run(make()).await;
        assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
        let printed = finished.stderr.len() + finished.stdout.len();
        assert!(printed > 0, "nothing is printed: {finished:#?}");
        if code == 2 {
            let last = finished.stderr.last().unwrap();
            assert!(last.starts_with("a2a-registry: "), "{finished:#?}");
        }
    }
    let mut command = make();
    command.arg("--json");
    let finished = Program::run(command).await;
    assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
    let documents = documents(&finished);
    assert!(!documents.is_empty(), "no document: {finished:#?}");
    if code == 2 {
        let problem = &documents[0];
        let line = finished.stderr.last().unwrap();
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(!detail.is_empty() && line.contains(detail), "{finished:#?}");
        assert!(problem["title"].is_string(), "{problem}");
    }
}

#[tokio::test]
async fn every_command_follows_the_exit_code_rule() {
    let served = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let talk = origin.url("/talk");
    let text_of = |name: &str| card_json(name, name).replace("https://echo.agents.dev/a2a", &talk);
    for name in ["one", "two", "three"] {
        origin.set_reply(&format!("/{name}.json"), OriginReply::json(text_of(name)));
    }
    let answer = serde_json::json!({
        "jsonrpc": "2.0", "id": 1,
        "result": {"kind": "message", "role": "agent", "messageId": "m",
                   "parts": [{"kind": "text", "text": "well"}]}
    });
    origin.set_reply("/talk", OriginReply::json(answer.to_string()));
    let host = origin.address().to_string();
    let urls = ["/one.json", "/two.json", "/three.json", "/missing.json"].map(|at| origin.url(at));
    let [one, two, three, missing] = urls.each_ref().map(String::as_str);
    let (_folder, good) = file(&text_of("one"));
    let (_other, broken) =
        file(&text_of("one").replace("\"version\": \"1.0.0\"", "\"version\": {}"));

    assert_exit_code(|| served.admin_command(&["domain", "list"]), 1).await;
    assert_exit_code(|| served.admin_command(&["review", "list"]), 1).await;
    assert_exit_code(|| served.admin_command(&["search"]), 1).await;
    for (arguments, code) in [
        (&["register", one][..], 0),
        (&["register", two, three], 0),
        (&["register", missing], 1),
        (&["register", "no such name"], 1),
        (&["register"], 2),
        (&["register", "-f", "/no/file"], 2),
    ] {
        assert_exit_code(|| served.admin_command(arguments), code).await;
    }
    let reviews: Value = served.read_as_admin("/v1/reviews?state=open").await;
    let review = |name: &str| {
        let mut reviews = reviews["reviews"].as_array().unwrap().iter();
        let found = reviews.find(|review| review["name"] == name).unwrap();
        (
            found["id"].as_str().unwrap().to_owned(),
            found["agent"].as_str().unwrap().to_owned(),
        )
    };
    let ((first, _), (second, rejected)) = (review("one"), review("two"));
    let reason = ["--reason", "a test"];
    let with = |words: &[&str]| -> Vec<String> {
        words
            .iter()
            .chain(&reason)
            .map(|word| (*word).to_owned())
            .collect()
    };
    let rows: Vec<(Vec<String>, i32)> = [
        (vec!["review", "list"], 0),
        (vec!["review", "list", "--state", "lost"], 2),
        (vec!["review", "show", &first], 0),
        (vec!["review", "show", NOBODY], 1),
        (vec!["review", "show", "x"], 2),
        (vec!["token", "list"], 0),
        (vec!["token", "list", "--limit", "0"], 2),
        (
            vec!["token", "create", "--account", "ann", "--role", "curator"],
            0,
        ),
        (vec!["token", "create"], 2),
        (vec!["token", "revoke", NOBODY], 1),
        (vec!["token", "revoke", "x"], 2),
        (vec!["session", "list"], 1),
        (vec!["session", "list", "--limit", "0"], 2),
        (vec!["session", "revoke", NOBODY], 1),
        (vec!["session", "revoke", "x"], 2),
        (vec!["export"], 0),
        (vec!["import", "/no/file"], 2),
        (vec!["import"], 2),
        (vec!["domain", "list"], 0),
        (vec!["domain", "list", "--page-token", "x"], 2),
        (vec!["domain", "show", &host], 0),
        (vec!["domain", "show", "nosuch.example"], 1),
        (vec!["domain", "show"], 2),
        (vec!["domain", "recrawl", &host], 0),
        (vec!["domain", "recrawl", "nosuch.example"], 1),
        (vec!["domain", "recrawl"], 2),
        (
            vec!["domain", "set", &host, "--contact", "mailto:ops@agents.dev"],
            0,
        ),
        (vec!["domain", "set", "nosuch.example", "--contact", ""], 1),
        (vec!["domain", "set", &host, "--contact", "x"], 2),
        (vec!["domain", "verify", "nosuch.example"], 1),
        (vec!["domain", "verify"], 2),
        (
            vec!["domain", "transfer", "nosuch.example", "--account", "ann"],
            1,
        ),
        (vec!["domain", "transfer", &host], 2),
        (
            vec!["domain", "key", "nosuch.example", "k1", "--withdraw"],
            1,
        ),
        (vec!["domain", "key", &host, "k1", "--jwk", "/no/file"], 2),
        (vec!["domain", "rm", "nosuch.example", "--yes"], 1),
        (vec!["domain", "rm", &host], 2),
        (vec!["lint", &good], 0),
        (vec!["lint", &broken], 1),
        (vec!["lint", "/no/file"], 2),
        (vec!["openapi"], 0),
        (vec!["openapi", "x"], 2),
        (vec!["completions", "csh"], 2),
        (vec!["man", "/no/folder"], 2),
        (vec!["serve", "--roles", "cook"], 2),
        (vec!["demo", "--listen", "x"], 2),
        (vec!["sign", "/no/file", "--key", "/no/key"], 2),
        (vec!["model", "install", "/no/model"], 2),
        (vec!["model", "status", "--config", "/no/file"], 2),
        (vec!["migrate", "--config", "/no/file"], 2),
        (vec!["doctor", "--fly"], 2),
        (vec!["token", "reset-admin", "--config", "/no/file"], 2),
        (vec!["reindex"], 0),
        (vec!["reindex", "--fly"], 2),
        (vec!["fly"], 2),
    ]
    .into_iter()
    .map(|(words, code)| (words.into_iter().map(str::to_owned).collect(), code))
    .chain([
        (with(&["review", "approve", &first]), 0),
        (with(&["review", "approve", NOBODY]), 1),
        (with(&["review", "approve", &first]), 2),
        (with(&["review", "reject", &second]), 0),
        (with(&["review", "reject", NOBODY]), 1),
        (with(&["review", "reject", "x"]), 2),
        (with(&["domain", "vouch", &host]), 0),
        (with(&["domain", "vouch", "nosuch.example"]), 1),
        (vec!["domain".into(), "vouch".into(), host.clone()], 2),
        (with(&["domain", "vouch", &host, "--owner", "nosuch"]), 2),
        (
            with(&["domain", "vouch", &host, "--owner", "a", "--account", "a"]),
            2,
        ),
        (
            with(&["domain", "vouch", &host, "--owner", "a", "--expires", "366"]),
            2,
        ),
        (with(&["domain", "vouch", &host, "--expires", "30"]), 2),
        (with(&["domain", "vouch", &host, "--end-owner"]), 2),
        (with(&["domain", "new-generation", "nosuch.example"]), 1),
        (with(&["domain", "new-generation"]), 2),
    ])
    .collect();
    for (arguments, code) in &rows {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_exit_code(|| served.admin_command(&words), *code).await;
    }

    let agent = served.wait_for_hit("q=one").await.summary.id.to_string();
    for (words, code) in [
        (vec!["search", "one"], 0),
        (vec!["search", "nothing-like-it"], 1),
        (vec!["search", "--sort", "backwards"], 2),
        (vec!["show", &agent], 0),
        (vec!["show", &agent, "--card"], 0),
        (vec!["show", &agent, "--versions"], 0),
        (vec!["show", &agent, "--findings"], 0),
        (vec!["show", &agent, "--diff"], 0),
        (vec!["show", NOBODY], 1),
        (vec!["show", missing], 1),
        (vec!["show", "two words"], 1),
        (vec!["show", "a/b"], 2),
        (vec!["send", one, "hello"], 0),
        (vec!["send", NOBODY, "hello"], 1),
        (vec!["send", missing, "hello"], 1),
        (vec!["send", &rejected, "hello", "--strict"], 1),
        (vec!["send", &agent], 2),
    ] {
        assert_exit_code(|| served.admin_command(&words), code).await;
    }
    for (words, code) in [
        (with(&["agent", "suspend", &agent]), 0),
        (with(&["agent", "suspend", NOBODY]), 1),
        (with(&["agent", "resume", &agent]), 0),
        (with(&["agent", "resume", &agent]), 2),
        (with(&["agent", "resume", NOBODY]), 1),
        (with(&["agent", "undeprecate", &agent]), 2),
        (with(&["agent", "deprecate", &agent]), 0),
        (with(&["agent", "deprecate", &agent]), 2),
        (with(&["agent", "deprecate", missing]), 1),
        (with(&["agent", "undeprecate", &agent]), 0),
        (with(&["agent", "undeprecate", NOBODY]), 1),
        (with(&["agent", "retire", &agent]), 2),
        (with(&["agent", "retire", missing, "--yes"]), 1),
        (with(&["agent", "retire", &agent, "--yes"]), 0),
        (vec!["agent".into(), "suspend".into(), agent.clone()], 2),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_exit_code(|| served.admin_command(&words), code).await;
    }
    assert_exit_code(
        || served.admin_command(&["domain", "rm", &host, "--yes"]),
        0,
    )
    .await;
    // No server listens there: every client command fails in the same way.
    for words in [
        vec!["search"],
        vec!["show", NOBODY],
        vec!["domain", "list"],
        vec!["review", "list"],
        vec!["token", "list"],
        vec!["register", "agents.example.com"],
    ] {
        let away = || {
            let mut command = registry_command(&words);
            command.args(["--registry", "http://127.0.0.1:1"]);
            command
        };
        assert_exit_code(away, 2).await;
    }
}

/// The rule is part of the help text.
#[tokio::test]
async fn the_exit_code_rule_is_in_the_help() {
    let help = run_command(&["--help"]).await;
    assert_exit(&help, 0, "");
    for said in ["Exit codes: 0 done", "problem document"] {
        assert!(
            join_lines(&help.stdout).replace('\n', " ").contains(said),
            "{help:#?}"
        );
    }
}
