//! Withdrawing registrations: an account withdraws only its own, one source or all, and the printed line reports the
//! effect.

use serde_json::Value;

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// Runs one command with this token.
async fn run_with(registry: &ServingRegistry, token: &str, arguments: &[&str]) -> FinishedProgram {
    let mut command = registry.anonymous_command(arguments);
    command.args(["--token", token]);
    Program::run(command).await
}

/// Checks that a command failed after its summary, with these words in its last line.
fn refused(finished: &FinishedProgram, words: &str) {
    assert_eq!(finished.status.code(), Some(2), "{finished:#?}");
    let last = finished.stderr.last().map(String::as_str);
    assert!(
        last.is_some_and(|line| line.contains(words)),
        "{finished:#?}"
    );
}

#[tokio::test]
async fn each_account_withdraws_its_own_registrations() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let first = registry.create_token("first", "publisher").await;
    let second = registry.create_token("second", "publisher").await;
    for (token, path, skill) in [
        (&first, "/a.json", "repeat"),
        (&first, "/b.json", "count"),
        (&second, "/c.json", "draw"),
    ] {
        origin.set_reply(path, OriginReply::json(card_json(skill, skill)));
        let registered = run_with(&registry, token, &["register", &origin.url(path)]).await;
        assert_exit(&registered, 0, "");
    }
    let domain = origin.address().to_string();
    let source = |path: &str| origin.url(path);
    let remove = |path: &str| {
        ["domain", "rm", &domain, "--source", &source(path), "--yes"].map(str::to_owned)
    };
    let by_first = async |words: [String; 6]| {
        let words = words.each_ref().map(String::as_str);
        run_with(&registry, &first, &words).await
    };

    for path in ["/c.json", "/nosuch.json"] {
        assert_exit(
            &by_first(remove(path)).await,
            1,
            "you have registered no source",
        );
    }
    let mut unasked = remove("/a.json");
    unasked[5] = "--json".into();
    assert_exit(&by_first(unasked).await, 2, "--yes");
    let taken = by_first(remove("/a.json")).await;
    assert_exit(&taken, 0, "");
    assert_eq!(
        join_lines(&taken.stdout),
        format!("your registration of {} is withdrawn", source("/a.json"))
    );
    assert_exit(
        &by_first(remove("/a.json")).await,
        1,
        "you have registered no source",
    );

    let pending = registry
        .run_admin_command(&["review", "list", "--json"])
        .await;
    let pending: Value = serde_json::from_str(&join_lines(&pending.stdout)).unwrap();
    let pending = pending["reviews"].as_array().unwrap();
    assert_eq!(pending.len(), 2, "{pending:#?}");
    let approve = async |name: &str| {
        let review = pending.iter().find(|review| review["name"] == name);
        let id = review.unwrap()["id"].as_str().unwrap();
        let decided = registry
            .run_admin_command(&["review", "approve", id, "--reason", "known"])
            .await;
        assert_exit(&decided, 0, "");
    };
    approve("count").await;
    refused(
        &by_first(remove("/b.json")).await,
        "provides the card of the approved agent",
    );
    approve("draw").await;
    let whole = ["domain", "rm", &domain, "--yes"];
    refused(
        &run_with(&registry, &first, &whole).await,
        "approved agents",
    );

    // An admin ends the whole domain, and the output says so.
    let removed = registry.run_admin_command(&whole).await;
    assert_exit(&removed, 0, "");
    assert!(
        join_lines(&removed.stdout).contains("is removed"),
        "{removed:#?}"
    );
}

#[tokio::test]
async fn registrations_of_others_stay_and_the_output_says_so() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let first = registry.create_token("first", "publisher").await;
    let second = registry.create_token("second", "publisher").await;
    // Both have registered the first card, so that the domain is still visible once one of them has withdrawn.
    for (token, path) in [
        (&first, "/a.json"),
        (&second, "/a.json"),
        (&second, "/b.json"),
    ] {
        origin.set_reply(path, OriginReply::json(card_json(path, "repeat")));
        let registered = run_with(&registry, token, &["register", &origin.url(path)]).await;
        assert_exit(&registered, 0, "");
    }
    let reviews = registry
        .run_admin_command(&["review", "list", "--json"])
        .await;
    let reviews: Value = serde_json::from_str(&join_lines(&reviews.stdout)).unwrap();
    for review in reviews["reviews"].as_array().unwrap() {
        let id = review["id"].as_str().unwrap();
        let decided = registry
            .run_admin_command(&["review", "approve", id, "--reason", "known"])
            .await;
        assert_exit(&decided, 0, "");
    }
    let domain = origin.address().to_string();
    let source = [
        "domain",
        "rm",
        &domain,
        "--source",
        &origin.url("/a.json"),
        "--yes",
        "--json",
    ];
    let taken = run_with(&registry, &first, &source).await;
    assert_exit(&taken, 0, "");
    let taken: Value = serde_json::from_str(&join_lines(&taken.stdout)).unwrap();
    assert_eq!(taken["removed"], true);
    assert_eq!(taken["source"], origin.url("/a.json"));
    let shown = Program::run(registry.anonymous_command(&["domain", "show", &domain])).await;
    assert_exit(&shown, 0, "");
    for path in ["/a.json", "/b.json"] {
        assert!(
            join_lines(&shown.stdout).contains(&origin.url(path)),
            "{shown:#?}"
        );
    }
}

/// An account that neither owns nor curates a domain cannot know about hidden sources of it: the message claims only
/// what is true in both cases.
#[tokio::test]
async fn a_hidden_source_is_not_reported_as_removed() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let first = registry.create_token("first", "publisher").await;
    let second = registry.create_token("second", "publisher").await;
    let domain = origin.address().to_string();
    let mut outputs = Vec::new();
    for also_second in [true, false] {
        for (token, path) in [(&second, "/b.json"), (&first, "/a.json")] {
            if path == "/b.json" && !also_second {
                continue;
            }
            origin.set_reply(path, OriginReply::json(card_json(path, "repeat")));
            let registered = run_with(&registry, token, &["register", &origin.url(path)]).await;
            assert_exit(&registered, 0, "");
        }
        let whole = ["domain", "rm", &domain, "--yes", "--json"];
        let gone = run_with(&registry, &first, &whole).await;
        assert_exit(&gone, 0, "");
        let by_admin = registry
            .run_admin_command(&["domain", "rm", &domain, "--yes"])
            .await;
        if also_second {
            assert_exit(&by_admin, 0, "");
            assert!(
                join_lines(&by_admin.stdout).contains("is removed"),
                "{by_admin:#?}"
            );
        } else {
            assert_eq!(by_admin.status.code(), Some(1), "{by_admin:#?}");
        }
        outputs.push(join_lines(&gone.stdout));
    }
    assert_eq!(outputs[0], outputs[1]);
    let removal: Value = serde_json::from_str(&outputs[0]).unwrap();
    assert_eq!(removal["removed"], Value::Null);
    assert_eq!(removal["domain"], domain);
}
