//! Policies as files on the command line: tried, put in force, read, and taken back.

use serde_json::Value;

use super::client::assert_printed;
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Finished, Program, assert_ended, text};
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
    // The only agent is hidden, and policies fall away.
    let apply = [
        "policy", "apply", &path, "--reason", "a test", "--wait", "--yes",
    ];

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

    let rollback = [
        "policy", "rollback", "0", "--reason", "a test", "--wait", "--yes",
    ];
    assert_printed(&served.run(&rollback).await, "set 2 is in force");
    assert_printed(
        &served
            .run(&["policy", "diff", "--from", "0", "--to", "2"])
            .await,
        "",
    );
}

/// Checks that a command would have asked for confirmation, and did nothing.
#[track_caller]
fn assert_asked(finished: &Finished, words: &str) {
    assert_eq!(finished.status.code(), Some(2), "{finished:#?}");
    let last = finished.stderr.last().unwrap();
    assert!(last.contains(words), "{words}: {finished:#?}");
    assert!(last.ends_with("confirm with --yes"), "{finished:#?}");
}

/// One template alone in a folder takes the permit away that everything was found by: that is refused, or asked about.
#[tokio::test]
async fn a_template_alone_does_not_hide_everything() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    served.publish(&origin.url("/a.json")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let template = async |name: &str| {
        let printed = served.run(&["policy", "template", name]).await;
        let file = folder.path().join(format!("{name}.cedar"));
        std::fs::write(file, text(&printed.stdout)).unwrap();
    };
    let finds = async |arguments: &[&str]| {
        let mut command = served.anonymous(&["search", "Echo"]);
        command.args(arguments);
        Program::run(command).await.status.code() == Some(0)
    };
    let apply = ["policy", "apply", &path, "--reason", "a test", "--wait"];
    template("deny-tag").await;
    let listed = served.run(&["policy", "apply", &path, "--dry-run"]).await;
    assert_ended(&listed, 1, "");
    assert!(
        text(&listed.stdout).contains("remove everybody"),
        "{listed:?}"
    );
    for yes in [&[] as &[&str], &["--yes"]] {
        let refused = served.run(&[&apply[..], yes].concat()).await;
        assert_ended(
            &refused,
            2,
            "no policy of this set permits `discover` (it lacks everybody",
        );
        assert!(finds(&[]).await);
    }
    // Whoever says so is shown who loses what, and asked; a script has to say yes.
    let dark = [&apply[..], &["--allow-no-permit"]].concat();
    let asked = served.run(&dark).await;
    assert_asked(
        &asked,
        "removes everybody of set 0 and hides every agent from everybody but owners, curators, auditors and admins: there is no \
         terminal to ask for confirmation; confirm with --yes",
    );
    assert!(text(&asked.stderr).contains("anonymous loses 1 of 1 agents (discover)"));
    assert!(finds(&[]).await);
    let applied = served.run(&[&dark[..], &["--yes"]].concat()).await;
    assert_printed(&applied, "remove everybody");
    assert_printed(&applied, "set 1 is in force");
    assert!(!finds(&[]).await);

    // Nothing falls away, and nobody but those who are signed in finds it.
    template("everybody").await;
    template("signed-in-only").await;
    assert_printed(&served.run(&apply).await, "set 2 is in force");
    let reader = served.token("rea", "reader").await;
    assert!(!finds(&[]).await);
    assert!(finds(&["--token", &reader]).await);

    // A forbid for everybody takes no policy away, and is asked about as well.
    let hide = "forbid (principal, action, resource) when { resource.trust < 5 };\n";
    std::fs::write(folder.path().join("hide.cedar"), hide).unwrap();
    let asked = served.run(&apply).await;
    assert_asked(&asked, "applying these policies hides every agent");
    assert!(finds(&["--token", &reader]).await);
    let rollback = ["policy", "rollback", "0", "--reason", "a test", "--wait"];
    let asked = served.run(&rollback).await;
    assert_asked(&asked, "removes deny-tag, signed-in-only of set 2: ");
    let back = served.run(&[&rollback[..], &["--yes"]].concat()).await;
    assert_printed(&back, "set 3 is in force");
    assert!(finds(&[]).await);
}
