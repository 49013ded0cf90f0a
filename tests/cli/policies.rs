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
