//! Tasks of agents on the SDKs: continued, read, listed, followed and cancelled.

use futures::future::join_all;
use serde_json::Value;

use super::streams::{Binding, StreamingAgent};
use crate::support::program::{
    FinishedProgram, Program, after_shell_commands, assert_exit, join_lines, registry_command,
};
use crate::support::sdk::Sdk;

async fn run_command(words: &[&str]) -> FinishedProgram {
    Program::run(registry_command(words)).await
}

/// Runs a command that the program printed, with a shell that finds the program where it is.
async fn typed(command: &str) -> FinishedProgram {
    Program::run(after_shell_commands("true", &{
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", command]);
        shell
    }))
    .await
}

pub(super) async fn a_question_is_answered_with_the_printed_command(streamers: &[StreamingAgent]) {
    join_all(streamers.iter().map(|streamer| async move {
        let StreamingAgent { sdk, card, .. } = streamer;
        let name = streamer.name();
        let asked = run_command(&["send", "--direct", card, "ask me"]).await;
        assert_eq!(asked.status.code(), Some(0), "{name}: {asked:#?}");
        assert_eq!(asked.stdout, ["which one?"], "{name}: {asked:#?}");
        let hint = join_lines(&asked.stderr);
        let (_, command) = hint.split_once("answer with ").unwrap();
        let answered = typed(&command.replace(" TEXT ", " 'the blue one' ")).await;
        assert_eq!(
            answered.status.code(),
            Some(0),
            "{name}: {command}: {answered:#?}"
        );
        assert_eq!(
            join_lines(&answered.stdout),
            sdk.reply_to("the blue one"),
            "{answered:#?}"
        );
    }))
    .await;
}

pub(super) async fn a_task_is_read_listed_followed_and_cancelled(streamers: &[StreamingAgent]) {
    join_all(streamers.iter().map(|streamer| async move {
        let StreamingAgent { card, .. } = streamer;
        let name = streamer.name();
        let sent = Program::start(registry_command([
            "send",
            "--direct",
            card,
            "work for ever",
            "--json",
            "--idle-timeout",
            "2",
        ]));
        let id = sent
            .wait_for_match(|line| task_id(&serde_json::from_str(line).ok()?))
            .await;
        sent.wait_for_line("one").await;

        // After a cancellation, SDK 0.2.16 keeps streams open that have no further event.
        let mut follow = registry_command(["task", "subscribe", "--direct", card, &id]);
        follow.args(["--idle-timeout", "2"]);
        let follower = Program::start(follow);
        follower.wait_for_line("one").await;
        let read = run_command(&["task", "get", "--direct", card, &id]).await;
        assert_eq!(read.status.code(), Some(0), "{name}: {read:#?}");
        assert!(
            join_lines(&read.stderr).contains("is working"),
            "{name}: {read:#?}"
        );

        let listed = run_command(&["task", "list", "--direct", card, "--state", "working"]).await;
        match streamer.lists_tasks() {
            false => assert_exit(&listed, 2, ""),
            true => assert!(join_lines(&listed.stdout).contains(&id), "{listed:#?}"),
        }

        reported(streamer, &id).await;
        let canceled = run_command(&["task", "cancel", "--direct", card, &id]).await;
        // One framework answers before it has cancelled the task.
        let code = i32::from(streamer.sdk == Sdk::Fasta2a);
        assert_eq!(canceled.status.code(), Some(code), "{name}: {canceled:#?}");
        let followed = follower.wait_for_end().await;
        assert_eq!(followed.status.code(), Some(1), "{name}: {followed:#?}");
        assert_eq!(followed.stdout, ["one"], "{name}: {followed:#?}");
        assert!(
            join_lines(&followed.stderr).contains("the task is canceled"),
            "{name}: {followed:#?}"
        );
        let sent = sent.wait_for_end().await;
        assert_eq!(sent.status.code(), Some(1), "{name}: {sent:#?}");

        let missing = run_command(&["task", "get", "--direct", card, "no-such-task"]).await;
        assert_failed(streamer, missing);
    }))
    .await;
}

pub(super) async fn an_extended_card_is_shown(streamers: &[StreamingAgent]) {
    join_all(streamers.iter().map(|streamer| async move {
        let name = streamer.name();
        let shown = run_command(&["show", "--direct", &streamer.card, "--extended"]).await;
        match streamer.sdk {
            // Over gRPC the SDK of 0.3 knows its public card only.
            Sdk::Py03 if streamer.binding == Binding::Grpc => {
                assert_eq!(shown.status.code(), Some(0), "{name}: {shown:#?}");
            }
            Sdk::A2aProtocolSkill | Sdk::Py03 | Sdk::Py1 | Sdk::Node => {
                assert_eq!(shown.status.code(), Some(0), "{name}: {shown:#?}");
                let card: Value = serde_json::from_str(&join_lines(&shown.stdout)).unwrap();
                let extended = match streamer.sdk {
                    // It shows its public card to callers that it does not know.
                    Sdk::Node => streamer.sdk.agent_name().to_owned(),
                    sdk => format!("{}, extended", sdk.agent_name()),
                };
                assert_eq!(card["name"], extended, "{name}: {card}");
            }
            // They have none, and say so over gRPC by the public one.
            _ if shown.status.success() => assert_eq!(streamer.binding, Binding::Grpc, "{name}"),
            _ => assert_failed(streamer, shown),
        }
    }))
    .await;
}

/// Asserts that a command failed in one line, after the warning about an assumed address.
fn assert_failed(streamer: &StreamingAgent, mut finished: FinishedProgram) {
    if streamer.sdk == Sdk::PromptKit {
        finished.stderr.remove(0);
    }
    assert_exit(&finished, 2, "");
}

/// Sets, shows, lists and removes where an agent reports a task.
async fn reported(streamer: &StreamingAgent, id: &str) {
    let (name, card) = (streamer.name(), streamer.card.as_str());
    let push = async |verb: &str, more: &[&str]| {
        let words = ["task", "push", verb, "--direct", card, id];
        let mut words = words.to_vec();
        words.extend(more);
        words.push("--json");
        run_command(&words).await
    };
    let hook = "http://127.0.0.1:9/hook";
    let set = push(
        "set",
        &["--id", "mine", "--url", hook, "--push-token", "s3cret"],
    )
    .await;
    if matches!(streamer.sdk, Sdk::Fasta2a | Sdk::PromptKit) {
        // They report to nobody, as their cards say.
        assert_eq!(set.status.code(), Some(2), "{name}: {set:#?}");
        return;
    }
    assert_eq!(set.status.code(), Some(0), "{name}: {set:#?}");
    let set: Value = serde_json::from_str(&set.stdout[0]).unwrap();
    assert_eq!(set["url"], hook, "{name}: {set}");
    let config = set["id"].as_str().unwrap_or("mine").to_owned();
    let got = push("get", &[&config]).await;
    assert_eq!(got.status.code(), Some(0), "{name}: {got:#?}");
    assert!(join_lines(&got.stdout).contains(hook), "{name}: {got:#?}");

    let listed = push("list", &[]).await;
    let deleted = push("delete", &[&config]).await;
    // 0.1 has neither, and one SDK of 0.3 has them over JSON-RPC only.
    let has_some = streamer.sdk == Sdk::Py03 && streamer.binding != Binding::JsonRpc;
    if streamer.sdk == Sdk::OwnV01 || has_some {
        assert_eq!(listed.status.code(), Some(2), "{name}: {listed:#?}");
        assert_eq!(deleted.status.code(), Some(2), "{name}: {deleted:#?}");
        return;
    }
    assert_eq!(listed.status.code(), Some(0), "{name}: {listed:#?}");
    assert!(
        join_lines(&listed.stdout).contains(hook),
        "{name}: {listed:#?}"
    );
    assert_eq!(deleted.status.code(), Some(0), "{name}: {deleted:#?}");
    let empty = push("list", &[]).await;
    assert_eq!(empty.status.code(), Some(1), "{name}: {empty:#?}");
}

fn task_id(event: &Value) -> Option<String> {
    // Events of 0.1 have no kind, and name their task by its own id; those of PromptKit have none either.
    let id = match event["kind"].as_str() {
        Some("task") => event.get("id"),
        Some(_) => None,
        None => event
            .pointer("/task/id")
            .or_else(|| event.get("id"))
            .or_else(|| event.get("taskId")),
    };
    id?.as_str().map(str::to_owned)
}
