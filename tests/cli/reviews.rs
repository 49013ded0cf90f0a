//! Reviews on the command line and on their pages: many at once, comments of whatever kind, reports, and what waits.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::client::assert_printed;
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_ended, text};
use crate::support::serving::ServingRegistry;
use crate::support::setup::Setup;

async fn waiting(served: &ServingRegistry, name: &str) -> (Origin, String) {
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card(name, "repeat")));
    served.register(&origin.url("/a.json")).await;
    let review = served.open_review(|review| review.name == name).await;
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
    let served = Setup::new().start().await;
    let (_one, first) = waiting(&served, "Echo").await;
    let (_other, second) = waiting(&served, "Parrot").await;
    let approve = ["review", "approve", "--all-matching", "--reason", "known"];
    let unasked = served.run(&approve).await;
    assert_eq!(unasked.status.code(), Some(2), "{unasked:?}");
    assert!(text(&unasked.stderr).contains("confirm with --yes"));
    assert!(text(&unasked.stderr).contains(&first), "{unasked:?}");
    let none = [&approve[..], &["--yes", "--domain", "nobody.dev"]].concat();
    assert_ended(&served.run(&none).await, 1, "no open review fits");
    let all = [&approve[..], &["--yes", "--change", "first"]].concat();
    let done = served.run(&all).await;
    assert_printed(&done, "Echo");
    assert!(text(&done.stderr).contains(&second), "{done:?}");
    assert_ended(
        &served.run(&["review", "list"]).await,
        1,
        "no review is open",
    );
}

#[tokio::test]
async fn a_hostile_comment_is_text_on_the_page_and_on_the_terminal() {
    let served = Setup::new().start().await;
    let (_origin, review) = waiting(&served, "Echo").await;
    let hostile = "<script>alert(1)</script>\u{202e}txt.exe";
    let comment = served.run(&["review", "comment", &review, hostile]).await;
    assert_printed(&comment, "commented as admin");
    let shown = served.run(&["review", "show", &review]).await;
    assert_printed(&shown, "comment by admin");
    assert!(!text(&shown.stdout).contains('\u{202e}'), "{shown:?}");
    let page = served.admin(&format!("/reviews/{review}")).await;
    let page = page.text();
    assert!(
        page.contains("txt.exe") && page.contains("Review of"),
        "{page}"
    );
    assert!(
        !page.contains("<script>alert") && !page.contains('\u{202e}'),
        "{page}"
    );
    let queue = served.admin("/reviews").await.text();
    assert!(
        queue.contains(&review) && queue.contains("name=\"pick\""),
        "{queue}"
    );
    // Signed out there is no review, and no queue.
    for path in ["/reviews", "/waiting", &format!("/reviews/{review}")] {
        assert_eq!(served.get(path).await.status, 303, "{path}");
    }
    let waits = served.run(&["waiting"]).await;
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
    assert_printed(&served.run(&assigned).await, "is open: 0 of 1 approvals");
    let mine = served.run(&["review", "list", "--assignee", "me"]).await;
    assert_printed(&mine, &review);
    let page = reqwest::Method::POST;
    let form = "act=approve&digest=sha256%3A0&reason=ok";
    let foreign = served.as_admin(page.clone(), &format!("/reviews/{review}"));
    let foreign = sent(foreign, "cross-site", form);
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    let without = served.as_admin(page, &format!("/reviews/{review}"));
    let without = sent(without, "same-origin", form);
    // A form needs a session with its form token; a bearer token is for the API.
    assert_eq!(without.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn anybody_reports_and_an_owner_names_a_sponsor() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    let id = served.publish(&origin.url("/a.json")).await;
    let report = ["agent", "report", &id, "--reason", "It lies."];
    let reported = Program::run(served.anonymous(&report)).await;
    assert_printed(&reported, "curators decide what follows");
    let list = served.run(&["review", "list", "--kind", "report"]).await;
    assert_printed(&list, "Echo");
    let sponsor = served.run(&["agent", "sponsor", &id, "admin"]).await;
    assert_printed(&sponsor, "sponsored by admin");
    let nobody = served.run(&["agent", "sponsor", &id, "nobody"]).await;
    assert_ended(&nobody, 2, "no account");
    let path = format!("/agents/{id}/report");
    let form = served.request(reqwest::Method::POST, &path);
    let form = sent(form, "same-origin", "reason=It+lies+again.");
    assert_eq!(form.send().await.unwrap().status(), 202);
}

#[tokio::test]
async fn an_assignment_is_not_made_to_a_review_that_somebody_has_changed() {
    let served = Setup::new().start().await;
    let (_origin, review) = waiting(&served, "Echo").await;
    let path = format!("/v1/reviews/{review}");
    let seen = served.admin(&path).await;
    let tag = seen.headers["etag"].to_str().unwrap().to_owned();
    let assign = async |tag: &str, due: &str| {
        let request = served.as_admin(reqwest::Method::PATCH, &path);
        let request = request.header("if-match", tag).json(&json!({ "due": due }));
        request.send().await.unwrap()
    };
    let first = assign(&tag, "2099-01-31T00:00:00Z").await;
    assert_eq!(first.status(), 200);
    let newer = first.headers()["etag"].to_str().unwrap().to_owned();
    let late = assign(&tag, "2099-02-01T00:00:00Z").await;
    assert_eq!(late.status(), 412);
    let now: Value = served.read(&path).await;
    assert_eq!(now["due"], "2099-01-31T00:00:00Z");
    // A comment is no change of what is assigned.
    let comment = served.run(&["review", "comment", &review, "wait"]).await;
    assert_printed(&comment, "commented as admin");
    assert_eq!(assign(&newer, "").await.status(), 200);
}

#[tokio::test]
async fn a_rejected_report_says_beforehand_what_it_does() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    let id = served.publish(&origin.url("/a.json")).await;
    let report = ["agent", "report", &id, "--reason", "It lies."];
    Program::run(served.anonymous(&report)).await;
    let review = served.open_review(|review| review.name == "Echo").await;
    let review = review.id.to_string();
    let shown = served.run(&["review", "show", &review]).await;
    assert_printed(&shown, "`reject` puts the agent on hold (operator)");
    for path in ["/reviews".to_owned(), format!("/reviews/{review}")] {
        let page = served.admin(&path).await.text();
        assert!(page.contains("id=\"report-note\""), "{path}: {page}");
    }
    let queue = served.admin("/reviews").await.text();
    assert!(queue.contains("/?unmanaged=true"), "{queue}");
}
