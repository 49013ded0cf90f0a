//! Policies as files on the command line: tried, put in force, read, and rolled back.

use serde_json::Value;

use super::client::assert_printed;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, assert_exit, join_lines};
use crate::support::setup::RegistrySetup;

#[tokio::test]
async fn policies_are_files_that_are_tried_and_put_in_force() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let agent = registry.publish(&origin.url("/a.json")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let open = "permit (principal, action, resource);\n";
    write("everybody.cedar", open);
    write(
        "quiet.cedar",
        "forbid (principal, action, resource)\nwhen { resource.skills.contains(\"repeat\") };\n",
    );
    // The only agent is hidden, and policies fall away.
    let apply = [
        "policy", "apply", &path, "--reason", "a test", "--wait", "--yes",
    ];

    let unknown = registry
        .run_admin_command(&["policy", "apply", &path])
        .await;
    assert_eq!(
        unknown.status.code(),
        Some(2),
        "a reason is needed: {unknown:?}"
    );
    let tried = registry
        .run_admin_command(&["policy", "apply", &path, "--dry-run"])
        .await;
    assert_eq!(tried.status.code(), Some(1), "{tried:?}");
    assert!(join_lines(&tried.stdout).contains("add quiet"), "{tried:?}");
    let none = registry.run_admin_command(&["policy", "history"]).await;
    assert_exit(&none, 1, "no policy set was created");

    assert_printed(
        &registry.run_admin_command(&apply).await,
        "set 1 is in force",
    );
    let search = Program::run(registry.anonymous_command(&["search", "Echo"])).await;
    assert_eq!(search.status.code(), Some(1), "{search:?}");
    let decide = ["policy", "decide", &agent, "--json"];
    let decided = registry.run_admin_command(&decide).await;
    assert_eq!(decided.status.code(), Some(1), "{decided:?}");
    let decided: Value = serde_json::from_str(&join_lines(&decided.stdout)).unwrap();
    assert_eq!(decided["policies"], serde_json::json!(["quiet"]));
    let hidden = Program::run(registry.anonymous_command(&decide[..3])).await;
    assert_exit(&hidden, 1, "is not registered");
    assert_printed(
        &registry.run_admin_command(&apply).await,
        "set 1 already has these policies",
    );
    assert_printed(
        &registry.run_admin_command(&["policy", "show"]).await,
        "# quiet",
    );
    assert_printed(
        &registry.run_admin_command(&["policy", "history"]).await,
        "a test",
    );

    // What is broken is told with its place, and nothing changes.
    write(
        "quiet.cedar",
        "forbid (principal, action, resource)\nwhen { resource.colour == 1 };\n",
    );
    let broken = registry.run_admin_command(&apply).await;
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    assert!(
        join_lines(&broken.stderr).contains("quiet:2:"),
        "{broken:?}"
    );

    std::fs::remove_file(folder.path().join("quiet.cedar")).unwrap();
    assert_printed(
        &registry.run_admin_command(&apply).await,
        "set 2 is in force",
    );
    let search = Program::run(registry.anonymous_command(&["search", "Echo"])).await;
    assert_printed(&search, "Echo");
    let allowed = Program::run(registry.anonymous_command(&decide[..3])).await;
    assert_printed(&allowed, "allowed by set 2");
}

/// A policy is read, tried and tested before it decides, and a waiver lifts it for one agent.
#[tokio::test]
async fn policies_are_tried_before_they_decide_and_waived_afterwards() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let agent = registry.publish(&origin.url("/a.json")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("everybody.cedar", "permit (principal, action, resource);\n");
    let templates = registry.run_admin_command(&["policy", "template"]).await;
    assert_printed(&templates, "deny-tag");
    let template = join_lines(
        &registry
            .run_admin_command(&["policy", "template", "deny-tag"])
            .await
            .stdout,
    );
    write(
        "no-repeats.cedar",
        &template.replace("experimental", "repeat"),
    );

    let preview = registry
        .run_admin_command(&["policy", "preview", &path])
        .await;
    assert_printed(&preview, "add no-repeats");
    assert!(join_lines(&preview.stdout).contains(&agent), "{preview:?}");
    let cases = folder.path().join("cases.toml");
    let case = format!(
        "[[cases]]\naction = \"admit\"\nresource = \"{agent}\"\nexpect = \"deny\"\nbecause = \"no-repeats\"\n"
    );
    std::fs::write(&cases, case).unwrap();
    let cases = cases.to_str().unwrap();
    let test = ["policy", "test", cases, "--policies", &path];
    assert_printed(&registry.run_admin_command(&test).await, "ok ");
    let without = registry.run_admin_command(&test[..3]).await;
    assert_eq!(without.status.code(), Some(1), "{without:?}");
    assert!(join_lines(&without.stdout).contains("WRONG"), "{without:?}");
    let broken = folder.path().join("broken.toml");
    std::fs::write(&broken, "[[cases]]\naction = 1\n").unwrap();
    let broken = registry
        .run_admin_command(&["policy", "test", broken.to_str().unwrap()])
        .await;
    assert_exit(&broken, 2, "line 2");
    let differ = registry.run_admin_command(&["policy", "diff", &path]).await;
    assert_eq!(differ.status.code(), Some(1), "{differ:?}");
    assert!(
        join_lines(&differ.stdout).contains("# no-repeats\n+ "),
        "{differ:?}"
    );

    let mut feed = registry.open_event_stream(0).await;
    let apply = ["policy", "apply", &path, "--reason", "a test", "--wait"];
    assert_printed(
        &registry.run_admin_command(&apply).await,
        "set 1 is in force",
    );
    feed.wait_for("agent.held").await;
    let shown = registry
        .run_admin_command(&["show", &agent, "--json"])
        .await;
    let shown: Value = serde_json::from_str(&join_lines(&shown.stdout)).unwrap();
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
    let granted = registry.run_admin_command(&grant).await;
    let granted: Value = serde_json::from_str(&join_lines(&granted.stdout)).unwrap();
    assert_printed(
        &registry.run_admin_command(&["waiver", "list"]).await,
        "in force",
    );
    let found = Program::run(registry.anonymous_command(&["search", "Echo"])).await;
    assert_printed(&found, "Echo");
    let endless = registry
        .run_admin_command(&[&grant[..6], &["--reason", "x"]].concat())
        .await;
    assert_eq!(endless.status.code(), Some(2), "{endless:?}");
    let id = granted["id"].as_str().unwrap();
    assert_printed(
        &registry.run_admin_command(&["waiver", "end", id]).await,
        "has ended",
    );
    assert_exit(
        &registry.run_admin_command(&["waiver", "list"]).await,
        1,
        "no policy is waived",
    );
    let dry_run = registry
        .run_admin_command(&["policy", "dry-run", "no-repeats"])
        .await;
    assert_exit(&dry_run, 1, "is not on a dry run");

    let rollback = [
        "policy", "rollback", "0", "--reason", "a test", "--wait", "--yes",
    ];
    assert_printed(
        &registry.run_admin_command(&rollback).await,
        "set 2 is in force",
    );
    assert_printed(
        &registry
            .run_admin_command(&["policy", "diff", "--from", "0", "--to", "2"])
            .await,
        "",
    );
}

/// Checks that a command would have asked for confirmation, and did nothing.
#[track_caller]
fn assert_asked(finished: &FinishedProgram, words: &str) {
    assert_eq!(finished.status.code(), Some(2), "{finished:#?}");
    let last = finished.stderr.last().unwrap();
    assert!(last.contains(words), "{words}: {finished:#?}");
    assert!(last.ends_with("confirm with --yes"), "{finished:#?}");
}

/// One template alone in a folder takes the permit away that everything was found by: that is refused, or asked about.
#[tokio::test]
async fn a_template_alone_does_not_hide_everything() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.publish(&origin.url("/a.json")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let template = async |name: &str| {
        let printed = registry
            .run_admin_command(&["policy", "template", name])
            .await;
        let file = folder.path().join(format!("{name}.cedar"));
        std::fs::write(file, join_lines(&printed.stdout)).unwrap();
    };
    let finds = async |arguments: &[&str]| {
        let mut command = registry.anonymous_command(&["search", "Echo"]);
        command.args(arguments);
        Program::run(command).await.status.code() == Some(0)
    };
    let apply = ["policy", "apply", &path, "--reason", "a test", "--wait"];
    template("deny-tag").await;
    let listed = registry
        .run_admin_command(&["policy", "apply", &path, "--dry-run"])
        .await;
    assert_exit(&listed, 1, "");
    assert!(
        join_lines(&listed.stdout).contains("remove everybody"),
        "{listed:?}"
    );
    for yes in [&[] as &[&str], &["--yes"]] {
        let refused = registry
            .run_admin_command(&[&apply[..], yes].concat())
            .await;
        assert_exit(
            &refused,
            2,
            "no policy of this set permits `discover` (it lacks everybody",
        );
        assert!(finds(&[]).await);
    }
    // Whoever says so is shown who loses what, and asked; a script has to say yes.
    let dark = [&apply[..], &["--allow-no-permit"]].concat();
    let asked = registry.run_admin_command(&dark).await;
    assert_asked(
        &asked,
        "removes everybody of set 0 and hides every agent from everyone but owners, curators, auditors and admins: there is no \
         terminal to ask for confirmation; confirm with --yes",
    );
    assert!(join_lines(&asked.stderr).contains("anonymous loses 1 of 1 agents (discover)"));
    assert!(finds(&[]).await);
    let applied = registry
        .run_admin_command(&[&dark[..], &["--yes"]].concat())
        .await;
    assert_printed(&applied, "remove everybody");
    assert_printed(&applied, "set 1 is in force");
    assert!(!finds(&[]).await);

    // Nothing falls away, and nobody but those who are signed in finds it.
    template("everybody").await;
    template("signed-in-only").await;
    assert_printed(
        &registry.run_admin_command(&apply).await,
        "set 2 is in force",
    );
    let reader = registry.create_token("rea", "reader").await;
    assert!(!finds(&[]).await);
    assert!(finds(&["--token", &reader]).await);

    // A forbid for everybody takes no policy away, and is asked about as well.
    let hide = "forbid (principal, action, resource) when { resource.trust < 5 };\n";
    std::fs::write(folder.path().join("hide.cedar"), hide).unwrap();
    let asked = registry.run_admin_command(&apply).await;
    assert_asked(&asked, "applying these policies hides every agent");
    assert!(finds(&["--token", &reader]).await);
    let rollback = ["policy", "rollback", "0", "--reason", "a test", "--wait"];
    let asked = registry.run_admin_command(&rollback).await;
    assert_asked(&asked, "removes deny-tag, signed-in-only of set 2: ");
    let back = registry
        .run_admin_command(&[&rollback[..], &["--yes"]].concat())
        .await;
    assert_printed(&back, "set 3 is in force");
    assert!(finds(&[]).await);
}
