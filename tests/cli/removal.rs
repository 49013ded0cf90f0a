//! Withdrawing registrations: each account its own, one source or all, and the printed line reports the real effect.

use serde_json::Value;

use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Finished, Program, assert_ended, text};
use crate::support::serving::ServingRegistry;
use crate::support::setup::Setup;

/// Runs one command with this token.
async fn run_with(served: &ServingRegistry, token: &str, arguments: &[&str]) -> Finished {
    let mut command = served.anonymous(arguments);
    command.args(["--token", token]);
    Program::run(command).await
}

/// Checks that a command failed after its summary, with these words in its last line.
fn refused(finished: &Finished, words: &str) {
    assert_eq!(finished.status.code(), Some(2), "{finished:#?}");
    let last = finished.stderr.last().map(String::as_str);
    assert!(
        last.is_some_and(|line| line.contains(words)),
        "{finished:#?}"
    );
}

#[tokio::test]
async fn each_account_withdraws_its_own_registrations() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    let first = served.token("first", "publisher").await;
    let second = served.token("second", "publisher").await;
    for (token, path, skill) in [
        (&first, "/a.json", "repeat"),
        (&first, "/b.json", "count"),
        (&second, "/c.json", "draw"),
    ] {
        origin.answer(path, OriginReply::json(card(skill, skill)));
        let registered = run_with(&served, token, &["register", &origin.url(path)]).await;
        assert_ended(&registered, 0, "");
    }
    let domain = origin.address().to_string();
    let source = |path: &str| origin.url(path);
    let remove = |path: &str| {
        ["domain", "rm", &domain, "--source", &source(path), "--yes"].map(str::to_owned)
    };
    let by_first = async |words: [String; 6]| {
        let words = words.each_ref().map(String::as_str);
        run_with(&served, &first, &words).await
    };

    for path in ["/c.json", "/nosuch.json"] {
        assert_ended(
            &by_first(remove(path)).await,
            1,
            "you have registered no source",
        );
    }
    let mut unasked = remove("/a.json");
    unasked[5] = "--json".into();
    assert_ended(&by_first(unasked).await, 2, "--yes");
    let taken = by_first(remove("/a.json")).await;
    assert_ended(&taken, 0, "");
    assert_eq!(
        text(&taken.stdout),
        format!("your registration of {} is withdrawn", source("/a.json"))
    );
    assert_ended(
        &by_first(remove("/a.json")).await,
        1,
        "you have registered no source",
    );

    let pending = served.run(&["review", "list", "--json"]).await;
    let pending: Value = serde_json::from_str(&text(&pending.stdout)).unwrap();
    let pending = pending["reviews"].as_array().unwrap();
    assert_eq!(pending.len(), 2, "{pending:#?}");
    let approve = async |name: &str| {
        let review = pending.iter().find(|review| review["name"] == name);
        let id = review.unwrap()["id"].as_str().unwrap();
        let decided = served
            .run(&["review", "approve", id, "--reason", "known"])
            .await;
        assert_ended(&decided, 0, "");
    };
    approve("count").await;
    refused(
        &by_first(remove("/b.json")).await,
        "gives the card of the approved agent",
    );
    approve("draw").await;
    let whole = ["domain", "rm", &domain, "--yes"];
    refused(&run_with(&served, &first, &whole).await, "approved agents");

    // An admin ends the whole domain, and the output says so.
    let removed = served.run(&whole).await;
    assert_ended(&removed, 0, "");
    assert!(text(&removed.stdout).contains("is removed"), "{removed:#?}");
}

#[tokio::test]
async fn registrations_of_others_stay_and_the_output_says_so() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    let first = served.token("first", "publisher").await;
    let second = served.token("second", "publisher").await;
    // Both have registered the first card, so that the domain is still visible once one of them has withdrawn.
    for (token, path) in [
        (&first, "/a.json"),
        (&second, "/a.json"),
        (&second, "/b.json"),
    ] {
        origin.answer(path, OriginReply::json(card(path, "repeat")));
        let registered = run_with(&served, token, &["register", &origin.url(path)]).await;
        assert_ended(&registered, 0, "");
    }
    let reviews = served.run(&["review", "list", "--json"]).await;
    let reviews: Value = serde_json::from_str(&text(&reviews.stdout)).unwrap();
    for review in reviews["reviews"].as_array().unwrap() {
        let id = review["id"].as_str().unwrap();
        let decided = served
            .run(&["review", "approve", id, "--reason", "known"])
            .await;
        assert_ended(&decided, 0, "");
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
    let taken = run_with(&served, &first, &source).await;
    assert_ended(&taken, 0, "");
    let taken: Value = serde_json::from_str(&text(&taken.stdout)).unwrap();
    assert_eq!(taken["removed"], true);
    assert_eq!(taken["source"], origin.url("/a.json"));
    let shown = Program::run(served.anonymous(&["domain", "show", &domain])).await;
    assert_ended(&shown, 0, "");
    for path in ["/a.json", "/b.json"] {
        assert!(
            text(&shown.stdout).contains(&origin.url(path)),
            "{shown:#?}"
        );
    }
}

/// An account that neither owns nor curates a domain cannot know about hidden sources of it: the message claims only
/// what is true in both cases.
#[tokio::test]
async fn a_hidden_source_is_not_reported_as_removed() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    let first = served.token("first", "publisher").await;
    let second = served.token("second", "publisher").await;
    let domain = origin.address().to_string();
    let mut outputs = Vec::new();
    for also_second in [true, false] {
        for (token, path) in [(&second, "/b.json"), (&first, "/a.json")] {
            if path == "/b.json" && !also_second {
                continue;
            }
            origin.answer(path, OriginReply::json(card(path, "repeat")));
            let registered = run_with(&served, token, &["register", &origin.url(path)]).await;
            assert_ended(&registered, 0, "");
        }
        let whole = ["domain", "rm", &domain, "--yes", "--json"];
        let gone = run_with(&served, &first, &whole).await;
        assert_ended(&gone, 0, "");
        let by_admin = served.run(&["domain", "rm", &domain, "--yes"]).await;
        if also_second {
            assert_ended(&by_admin, 0, "");
            assert!(
                text(&by_admin.stdout).contains("is removed"),
                "{by_admin:#?}"
            );
        } else {
            assert_eq!(by_admin.status.code(), Some(1), "{by_admin:#?}");
        }
        outputs.push(text(&gone.stdout));
    }
    assert_eq!(outputs[0], outputs[1]);
    let removal: Value = serde_json::from_str(&outputs[0]).unwrap();
    assert_eq!(removal["removed"], Value::Null);
    assert_eq!(removal["domain"], domain);
}
