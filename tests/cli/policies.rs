//! Policies as files on the command line: tried, put in force, read, and taken back.

use serde_json::Value;

use super::client::assert_printed;
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_ended, text};
use crate::support::setup::Setup;

#[tokio::test]
async fn policies_are_files_that_are_tried_and_put_in_force() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    let agent = served.publish(&origin.url("/a.json")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let open = "permit (principal, action, resource);\n";
    write("everybody.cedar", open);
    write(
        "quiet.cedar",
        "forbid (principal, action, resource)\nwhen { resource.skills.contains(\"repeat\") };\n",
    );
    let apply = ["policy", "apply", &path, "--reason", "a test", "--wait"];

    let unknown = served.run(&["policy", "apply", &path]).await;
    assert_eq!(
        unknown.status.code(),
        Some(2),
        "a reason is needed: {unknown:?}"
    );
    let tried = served.run(&["policy", "apply", &path, "--dry-run"]).await;
    assert_eq!(tried.status.code(), Some(1), "{tried:?}");
    assert!(text(&tried.stdout).contains("add quiet"), "{tried:?}");
    let none = served.run(&["policy", "history"]).await;
    assert_ended(&none, 1, "no policy set was made");

    assert_printed(&served.run(&apply).await, "set 1 is in force");
    let search = Program::run(served.anonymous(&["search", "Echo"])).await;
    assert_eq!(search.status.code(), Some(1), "{search:?}");
    let decide = ["policy", "decide", &agent, "--json"];
    let decided = served.run(&decide).await;
    assert_eq!(decided.status.code(), Some(1), "{decided:?}");
    let decided: Value = serde_json::from_str(&text(&decided.stdout)).unwrap();
    assert_eq!(decided["policies"], serde_json::json!(["quiet"]));
    let hidden = Program::run(served.anonymous(&decide[..3])).await;
    assert_ended(&hidden, 1, "is not registered");
    assert_printed(
        &served.run(&apply).await,
        "set 1 has these policies already",
    );
    assert_printed(&served.run(&["policy", "show"]).await, "# quiet");
    assert_printed(&served.run(&["policy", "history"]).await, "a test");

    // What is broken is told with its place, and nothing changes.
    write(
        "quiet.cedar",
        "forbid (principal, action, resource)\nwhen { resource.colour == 1 };\n",
    );
    let broken = served.run(&apply).await;
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    assert!(text(&broken.stderr).contains("quiet:2:"), "{broken:?}");

    std::fs::remove_file(folder.path().join("quiet.cedar")).unwrap();
    assert_printed(&served.run(&apply).await, "set 2 is in force");
    let search = Program::run(served.anonymous(&["search", "Echo"])).await;
    assert_printed(&search, "Echo");
    let allowed = Program::run(served.anonymous(&decide[..3])).await;
    assert_printed(&allowed, "allowed by set 2");
}

/// A policy is read, tried and tested before it decides, and a waiver lifts it for one agent.
#[tokio::test]
async fn policies_are_tried_before_they_decide_and_waived_afterwards() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    let agent = served.publish(&origin.url("/a.json")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("everybody.cedar", "permit (principal, action, resource);\n");
    let templates = served.run(&["policy", "template"]).await;
    assert_printed(&templates, "deny-tag");
    let template = text(&served.run(&["policy", "template", "deny-tag"]).await.stdout);
    write(
        "no-repeats.cedar",
        &template.replace("experimental", "repeat"),
    );

    let preview = served.run(&["policy", "preview", &path]).await;
    assert_printed(&preview, "add no-repeats");
    assert!(text(&preview.stdout).contains(&agent), "{preview:?}");
    let cases = folder.path().join("cases.toml");
    let case = format!(
        "[[cases]]\naction = \"admit\"\nresource = \"{agent}\"\nexpect = \"deny\"\nbecause = \"no-repeats\"\n"
    );
    std::fs::write(&cases, case).unwrap();
    let cases = cases.to_str().unwrap();
    let test = ["policy", "test", cases, "--policies", &path];
    assert_printed(&served.run(&test).await, "ok ");
    let without = served.run(&test[..3]).await;
    assert_eq!(without.status.code(), Some(1), "{without:?}");
    assert!(text(&without.stdout).contains("WRONG"), "{without:?}");
    let broken = folder.path().join("broken.toml");
    std::fs::write(&broken, "[[cases]]\naction = 1\n").unwrap();
    let broken = served
        .run(&["policy", "test", broken.to_str().unwrap()])
        .await;
    assert_ended(&broken, 2, "line 2");
    let differ = served.run(&["policy", "diff", &path]).await;
    assert_eq!(differ.status.code(), Some(1), "{differ:?}");
    assert!(
        text(&differ.stdout).contains("# no-repeats\n+ "),
        "{differ:?}"
    );

    let mut feed = served.events(0).await;
    let apply = ["policy", "apply", &path, "--reason", "a test", "--wait"];
    assert_printed(&served.run(&apply).await, "set 1 is in force");
    feed.until("agent.held").await;
    let shown = served.run(&["show", &agent, "--json"]).await;
    let shown: Value = serde_json::from_str(&text(&shown.stdout)).unwrap();
    let digest = shown["card_digest"].as_str().unwrap();
    let grant = [
        "waiver",
        "grant",
        "no-repeats",
        &agent,
        "--digest",
        digest,
        "--expires",
        "30",
        "--reason",
        "a test",
        "--json",
    ];
    let granted = served.run(&grant).await;
    let granted: Value = serde_json::from_str(&text(&granted.stdout)).unwrap();
    assert_printed(&served.run(&["waiver", "list"]).await, "in force");
    let found = Program::run(served.anonymous(&["search", "Echo"])).await;
    assert_printed(&found, "Echo");
    let endless = served
        .run(&[&grant[..6], &["--reason", "x"]].concat())
        .await;
    assert_eq!(endless.status.code(), Some(2), "{endless:?}");
    let id = granted["id"].as_str().unwrap();
    assert_printed(&served.run(&["waiver", "end", id]).await, "has ended");
    assert_ended(
        &served.run(&["waiver", "list"]).await,
        1,
        "no policy is waived",
    );
    let dry_run = served.run(&["policy", "dry-run", "no-repeats"]).await;
    assert_ended(&dry_run, 1, "is not on a dry run");

    let rollback = ["policy", "rollback", "0", "--reason", "a test", "--wait"];
    assert_printed(&served.run(&rollback).await, "set 2 is in force");
    assert_printed(
        &served
            .run(&["policy", "diff", "--from", "0", "--to", "2"])
            .await,
        "",
    );
}
