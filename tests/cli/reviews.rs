//! Reviews on the command line and on their pages: many at once, comments of any kind, reports, and the waiting list.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::client::assert_printed;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

async fn register_pending(registry: &ServingRegistry, name: &str) -> (Origin, String) {
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json(name, "repeat")));
    registry.register(&origin.url("/a.json")).await;
    let review = registry
        .wait_for_open_review(|review| review.name == name)
        .await;
    (origin, review.id.to_string())
}

/// A form as a browser sends it.
fn sent(request: RequestBuilder, site: &str, form: &'static str) -> RequestBuilder {
    request
        .header("sec-fetch-site", site)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
}

#[tokio::test]
async fn all_that_fit_are_decided_after_they_were_shown() {
    let registry = RegistrySetup::new().start().await;
    let (_one, first) = register_pending(&registry, "Echo").await;
    let (_other, second) = register_pending(&registry, "Parrot").await;
    let approve = ["review", "approve", "--all-matching", "--reason", "known"];
    let unasked = registry.run_admin_command(&approve).await;
    assert_eq!(unasked.status.code(), Some(2), "{unasked:?}");
    assert!(join_lines(&unasked.stderr).contains("confirm with --yes"));
    assert!(join_lines(&unasked.stderr).contains(&first), "{unasked:?}");
    let none = [&approve[..], &["--yes", "--domain", "nobody.dev"]].concat();
    assert_exit(
        &registry.run_admin_command(&none).await,
        1,
        "no open review matches",
    );
    let all = [&approve[..], &["--yes", "--change", "first"]].concat();
    let done = registry.run_admin_command(&all).await;
    assert_printed(&done, "Echo");
    assert!(join_lines(&done.stderr).contains(&second), "{done:?}");
    assert_exit(
        &registry.run_admin_command(&["review", "list"]).await,
        1,
        "no review is open",
    );
}

#[tokio::test]
async fn a_hostile_comment_is_text_on_the_page_and_on_the_terminal() {
    let registry = RegistrySetup::new().start().await;
    let (_origin, review) = register_pending(&registry, "Echo").await;
    let hostile = "<script>alert(1)</script>\u{202e}txt.exe";
    let comment = registry
        .run_admin_command(&["review", "comment", &review, hostile])
        .await;
    assert_printed(&comment, "commented as admin");
    let shown = registry
        .run_admin_command(&["review", "show", &review])
        .await;
    assert_printed(&shown, "comment by admin");
    assert!(!join_lines(&shown.stdout).contains('\u{202e}'), "{shown:?}");
    let page = registry.get_as_admin(&format!("/reviews/{review}")).await;
    let page = page.text();
    assert!(
        page.contains("txt.exe") && page.contains("Review of"),
        "{page}"
    );
    assert!(
        !page.contains("<script>alert") && !page.contains('\u{202e}'),
        "{page}"
    );
    let queue = registry.get_as_admin("/reviews").await.text();
    assert!(
        queue.contains(&review) && queue.contains("name=\"pick\""),
        "{queue}"
    );
    // Signed out there is no review, and no queue.
    for path in ["/reviews", "/waiting", &format!("/reviews/{review}")] {
        assert_eq!(registry.get(path).await.status, 303, "{path}");
    }
    let waits = registry.run_admin_command(&["waiting"]).await;
    assert_printed(&waits, &review);
    let assigned = [
        "review",
        "assign",
        &review,
        "--to",
        "admin",
        "--due",
        "2099-01-31",
    ];
    assert_printed(
        &registry.run_admin_command(&assigned).await,
        "is open: 0 of 1 approvals",
    );
    let mine = registry
        .run_admin_command(&["review", "list", "--assignee", "me"])
        .await;
    assert_printed(&mine, &review);
    let page = reqwest::Method::POST;
    let form = "act=approve&digest=sha256%3A0&reason=ok";
    let foreign = registry.admin_request(page.clone(), &format!("/reviews/{review}"));
    let foreign = sent(foreign, "cross-site", form);
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    let without = registry.admin_request(page, &format!("/reviews/{review}"));
    let without = sent(without, "same-origin", form);
    // A form needs a session with its form token; a bearer token is for the API.
    assert_eq!(without.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn anybody_reports_and_an_owner_names_a_sponsor() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let id = registry.publish(&origin.url("/a.json")).await;
    let report = ["agent", "report", &id, "--reason", "It lies."];
    let reported = Program::run(registry.anonymous_command(&report)).await;
    assert_printed(&reported, "curators will decide on it");
    let list = registry
        .run_admin_command(&["review", "list", "--kind", "report"])
        .await;
    assert_printed(&list, "Echo");
    let sponsor = registry
        .run_admin_command(&["agent", "sponsor", &id, "admin"])
        .await;
    assert_printed(&sponsor, "sponsored by admin");
    let nobody = registry
        .run_admin_command(&["agent", "sponsor", &id, "nobody"])
        .await;
    assert_exit(&nobody, 2, "not an enabled account");
    let path = format!("/agents/{id}/report");
    let form = registry.request(reqwest::Method::POST, &path);
    let form = sent(form, "same-origin", "reason=It+lies+again.");
    assert_eq!(form.send().await.unwrap().status(), 202);
}

#[tokio::test]
async fn an_assignment_is_not_made_to_a_review_that_somebody_has_changed() {
    let registry = RegistrySetup::new().start().await;
    let (_origin, review) = register_pending(&registry, "Echo").await;
    let path = format!("/v1/reviews/{review}");
    let seen = registry.get_as_admin(&path).await;
    let tag = seen.headers["etag"].to_str().unwrap().to_owned();
    let assign = async |tag: &str, due: &str| {
        let request = registry.admin_request(reqwest::Method::PATCH, &path);
        let request = request.header("if-match", tag).json(&json!({ "due": due }));
        request.send().await.unwrap()
    };
    let first = assign(&tag, "2099-01-31T00:00:00Z").await;
    assert_eq!(first.status(), 200);
    let newer = first.headers()["etag"].to_str().unwrap().to_owned();
    let late = assign(&tag, "2099-02-01T00:00:00Z").await;
    assert_eq!(late.status(), 412);
    let now: Value = registry.read_as_admin(&path).await;
    assert_eq!(now["due"], "2099-01-31T00:00:00Z");
    // A comment is no change of what is assigned.
    let comment = registry
        .run_admin_command(&["review", "comment", &review, "wait"])
        .await;
    assert_printed(&comment, "commented as admin");
    assert_eq!(assign(&newer, "").await.status(), 200);
}

#[tokio::test]
async fn a_rejected_report_says_beforehand_what_it_does() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let id = registry.publish(&origin.url("/a.json")).await;
    let report = ["agent", "report", &id, "--reason", "It lies."];
    Program::run(registry.anonymous_command(&report)).await;
    let review = registry
        .wait_for_open_review(|review| review.name == "Echo")
        .await;
    let review = review.id.to_string();
    let shown = registry
        .run_admin_command(&["review", "show", &review])
        .await;
    assert_printed(&shown, "`reject` puts the agent on hold (operator)");
    for path in ["/reviews".to_owned(), format!("/reviews/{review}")] {
        let page = registry.get_as_admin(&path).await.text();
        assert!(page.contains("id=\"report-note\""), "{path}: {page}");
    }
    let queue = registry.get_as_admin("/reviews").await.text();
    assert!(queue.contains("/?unmanaged=true"), "{queue}");
}
