//! `demo`: the printed commands work as printed, and no files stay behind.

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::api::RegistryClient;
use crate::support::polling::eventually;
use crate::support::program::{
    FinishedProgram, Program, allow_model, join_lines, registry_command,
};
use crate::support::serving_registry::{StatusLine, start_serving};
use crate::support::setup::ADMIN_TOKEN;

/// A demonstration whose temporary files are in a folder of its own.
fn demo(folder: &TempDir) -> Command {
    let mut command = registry_command(["demo", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", folder.path());
    command
}

/// The printed command with that name, as printed.
async fn printed_command(demo: &Program, name: &str) -> String {
    let name = format!(" {name} ");
    demo.wait_for_match(|line| {
        let command = line.strip_prefix("  ")?;
        command.contains(&name).then(|| command.to_owned())
    })
    .await
}

/// Runs a line like a reader would: in a shell, without the environment of the tests.
async fn typed(line: &str) -> FinishedProgram {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("A2A_REGISTRY") {
            shell.env_remove(name);
        }
    }
    Program::run(shell).await
}

fn leftovers(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn the_three_commands_work_as_printed() {
    let folder = TempDir::new().unwrap();
    let demo = Program::start(demo(&folder));
    let search = printed_command(&demo, "search").await;
    let (_, url) = search.split_once(" --registry ").unwrap();
    let (url, _) = url.split_once(' ').unwrap();
    assert_eq!(leftovers(&folder).len(), 1, "{:?}", leftovers(&folder));

    for (command, expected) in [
        ("search", ["Trip Planner", "JSONRPC 1.0, HTTP+JSON 1.0"]),
        (
            "show",
            [
                "Trip Planner",
                "interface HTTP+JSON 1.0 at http://127.0.0.1:",
            ],
        ),
        ("send", ["Berlin (BER) to Lisbon (LIS)", "Cheapest: "]),
    ] {
        let line = printed_command(&demo, command).await;
        assert!(line.contains(url), "{line} must name {url}");
        let finished = typed(&line).await;
        assert_eq!(finished.status.code(), Some(0), "{line}: {finished:#?}");
        for expected in expected {
            let said = join_lines(&finished.stdout);
            assert!(said.contains(expected), "{line}: {finished:#?}");
        }
    }

    for (agent, speaks) in [
        ("Ledger Converter", "JSONRPC 0.2"),
        ("Recipe Scaler", "JSONRPC 0.3"),
        ("Trip Planner", "HTTP+JSON 1.0"),
    ] {
        let found = Program::run(registry_command(["search", "--registry", url, agent])).await;
        let said = join_lines(&found.stdout);
        assert!(said.contains(agent) && said.contains(speaks), "{found:#?}");
    }

    let id = i32::try_from(demo.id()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
    let finished = demo.wait_for_end().await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(leftovers(&folder), Vec::<String>::new());
}

/// A question is answered by its meaning with nothing installed: the only word that it shares with a card is on that
/// of another agent.
#[tokio::test]
async fn a_question_is_answered_by_its_meaning() {
    let folder = TempDir::new().unwrap();
    let mut command = demo(&folder);
    allow_model(&mut command);
    command.env("A2A_REGISTRY_BOOTSTRAP_TOKEN", ADMIN_TOKEN);
    let demo = Program::start(command);
    let question = "brings cash along when I travel abroad";
    let line = demo.wait_for_line(question).await;
    let (_, url) = line.split_once(" --registry ").unwrap();
    let (url, _) = url.split_once(' ').unwrap();
    let api = RegistryClient::new(url);
    api.wait_for_vectors("all-MiniLM-L6-v2", 6).await;

    let finished = typed(&line).await;
    assert_eq!(finished.status.code(), Some(0), "{line}: {finished:#?}");
    let said = join_lines(&finished.stdout);
    let [first, second] = ["Ledger Converter", "Trip Planner"].map(|name| said.find(name));
    assert!(first.is_some(), "{said}");
    assert!(second.is_none() || first < second, "{said}");
    let about = api.get("/about").await.text();
    assert!(
        about.contains("by words and by meaning, with the model all-MiniLM-L6-v2"),
        "{about}"
    );
    assert_eq!(demo.terminate().await.status.code(), Some(0));
    assert_eq!(leftovers(&folder), Vec::<String>::new());
}

/// With `--json`, one line has the URLs. Its token is the admin's, and the demonstration ends on SIGTERM as on Ctrl-C.
#[tokio::test]
async fn the_printed_token_is_the_admins() {
    let folder = TempDir::new().unwrap();
    let (demo, status_line) = start_serving(demo(&folder)).await;
    let (url, token) = (status_line.url(), status_line.admin_token().unwrap());
    let list = ["token", "list", "--registry", url, "--token", token];
    let listed = Program::run(registry_command(list)).await;
    assert_eq!(listed.status.code(), Some(0), "{listed:#?}");
    let refused = Program::run(registry_command(&list[..4])).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:#?}");
    let finished = demo.terminate().await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    let lines: Vec<StatusLine> = finished
        .stdout
        .iter()
        .filter_map(|line| StatusLine::parse(line))
        .collect();
    assert_eq!(lines, [status_line, StatusLine::Stopped], "{finished:#?}");
    assert_eq!(finished.stdout.len(), 2, "{finished:#?}");
    assert_eq!(leftovers(&folder), Vec::<String>::new());
}

/// What was killed while it was being made is not taken for a demonstration; a complete one starts again.
#[tokio::test]
async fn a_killed_demonstration_is_not_complete() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let with_data = || {
        let mut command = demo(&folder);
        command.env("A2A_REGISTRY_BOOTSTRAP_TOKEN", ADMIN_TOKEN);
        command.arg("--data-dir").arg(&data);
        command
    };
    let unfinished = data.join("demo-unfinished");
    let killed = Program::start(with_data());
    eventually("the content is being made", || async {
        unfinished.exists().then_some(())
    })
    .await;
    killed.kill().await;
    let again = Program::run(with_data()).await;
    assert_eq!(again.status.code(), Some(2), "{again:#?}");
    let said = join_lines(&again.stderr);
    assert!(said.contains("ended before it was complete"), "{said}");

    std::fs::remove_dir_all(&data).unwrap();
    for _ in 0..2 {
        let demo = Program::start(with_data());
        demo.wait_for_line("admin token: ").await;
        assert!(!unfinished.exists());
        assert_eq!(demo.terminate().await.status.code(), Some(0));
    }
}
