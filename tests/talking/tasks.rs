//! Tasks of agents on the SDKs: continued, read, listed, followed and cancelled.

use futures::future::join_all;
use serde_json::Value;

use super::streams::{Streamer, streamers};
use crate::support::program::{Finished, Program, after, assert_ended, registry, text};
use crate::support::sdk::Sdk;

async fn run(words: &[&str]) -> Finished {
    Program::run(registry(words)).await
}

/// Runs a command that the program printed, with a shell that finds the program where it is.
async fn typed(command: &str) -> Finished {
    Program::run(after("true", &{
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", command]);
        shell
    }))
    .await
}

#[tokio::test]
async fn a_question_is_answered_with_the_printed_command() {
    join_all(streamers().await.iter().map(|streamer| async move {
        let Streamer { sdk, card, .. } = streamer;
        let asked = run(&["send", "--direct", card, "ask me"]).await;
        assert_eq!(asked.status.code(), Some(0), "{sdk:?}: {asked:#?}");
        assert_eq!(asked.stdout, ["which one?"], "{sdk:?}: {asked:#?}");
        let hint = text(&asked.stderr);
        let (_, command) = hint.split_once("answer with ").unwrap();
        let answered = typed(&command.replace(" TEXT ", " 'the blue one' ")).await;
        assert_eq!(
            answered.status.code(),
            Some(0),
            "{sdk:?}: {command}: {answered:#?}"
        );
        assert_eq!(
            text(&answered.stdout),
            sdk.answer_to("the blue one"),
            "{answered:#?}"
        );
    }))
    .await;
}

#[tokio::test]
async fn a_task_is_read_listed_followed_and_cancelled() {
    join_all(streamers().await.iter().map(|streamer| async move {
        let Streamer { sdk, card, .. } = streamer;
        let sent = Program::start(registry([
            "send",
            "--direct",
            card,
            "work for ever",
            "--json",
            "--idle-timeout",
            "2",
        ]));
        let id = sent
            .find(|line| task_id(&serde_json::from_str(line).ok()?))
            .await;
        sent.line("one").await;

        // After a cancellation, SDK 0.2.16 keeps streams open that have no further event.
        let mut follow = registry(["task", "subscribe", "--direct", card, &id]);
        follow.args(["--idle-timeout", "2"]);
        let follower = Program::start(follow);
        follower.line("one").await;
        let read = run(&["task", "get", "--direct", card, &id]).await;
        assert_eq!(read.status.code(), Some(0), "{sdk:?}: {read:#?}");
        assert!(
            text(&read.stderr).contains("is working"),
            "{sdk:?}: {read:#?}"
        );

        let listed = run(&["task", "list", "--direct", card, "--state", "working"]).await;
        match sdk {
            Sdk::Py02 | Sdk::Py03 => assert_ended(&listed, 2, ""),
            Sdk::Py1 | Sdk::Node => assert!(text(&listed.stdout).contains(&id), "{listed:#?}"),
        }

        let canceled = run(&["task", "cancel", "--direct", card, &id]).await;
        assert_eq!(canceled.status.code(), Some(0), "{sdk:?}: {canceled:#?}");
        let followed = follower.finish().await;
        assert_eq!(followed.status.code(), Some(1), "{sdk:?}: {followed:#?}");
        assert_eq!(followed.stdout, ["one"], "{sdk:?}: {followed:#?}");
        assert!(
            text(&followed.stderr).contains("the task is canceled"),
            "{sdk:?}: {followed:#?}"
        );
        let sent = sent.finish().await;
        assert_eq!(sent.status.code(), Some(1), "{sdk:?}: {sent:#?}");

        let missing = run(&["task", "get", "--direct", card, "no-such-task"]).await;
        assert_ended(&missing, 2, "");
    }))
    .await;
}

fn task_id(event: &Value) -> Option<String> {
    let id = match event["kind"].as_str() {
        Some("task") => event.get("id"),
        _ => event.pointer("/task/id"),
    };
    id?.as_str().map(str::to_owned)
}
