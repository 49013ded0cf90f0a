//! The pages of reviews, with a browser's session but without a browser: filters stay, a rejected form keeps its
//! input, and only possible actions are offered.

use a2a_registry_api::Review;
use a2a_registry_api::limits::MAX_COMMENT;

use crate::policy_pages::{PageSession, assert_shows};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// A card that waits for its review.
async fn waiting(registry: &ServingRegistry) -> (Origin, Review) {
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.register(&origin.url("/a.json")).await;
    let review = registry.wait_for_open_review(|_| true).await;
    (origin, review)
}

#[tokio::test]
async fn the_form_for_many_reviews_keeps_its_filters_and_what_it_was_given() {
    let registry = RegistrySetup::new().start().await;
    let (_origin, review) = waiting(&registry).await;
    let curator = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let here = "/reviews?state=all&kind=admission";
    let action = "action=\"/reviews?state=all&#38;kind=admission\" method=\"post\"";
    let shown = curator.get(&format!("{here}&domain=&choose=all")).await;
    assert_shows(&shown, 200, &[action, "Choose all on this page"]);

    let reason = ("reason", "<b>known</b>");
    let none = curator.post(here, &[("verdict", "approve"), reason]).await;
    let kept = "value=\"&#60;b&#62;known&#60;/b&#62;\"";
    assert_shows(&none, 400, &[action, "Select a review first.", kept]);
    let pick = format!("{} {}", review.id, review.digest);
    let verdict = ("verdict", "approve");
    let blank = [("pick", pick.as_str()), verdict, ("reason", " ")];
    let blank = curator.post(here, &blank).await;
    let chosen = format!("value=\"{pick}\" checked");
    assert_shows(&blank, 400, &[action, "A reason must have 1 to", &chosen]);

    let decision = [("pick", pick.as_str()), verdict, reason];
    let decided = curator.post(here, &decision).await;
    let words = [
        "<h2>Results</h2>",
        "Echo: approved",
        "name=\"state\" value=\"all\"",
    ];
    assert_shows(&decided, 200, &words);
    // Nothing is open any more.
    assert!(!decided.1.contains("Choose all"), "{}", decided.1);
    assert!(!decided.1.contains("id=\"reason\""), "{}", decided.1);
    let again = curator.post(here, &decision).await;
    let words = ["not decided", "Echo: This review is approved"];
    assert_shows(&again, 200, &words);
    registry.stop().await;
}

#[tokio::test]
async fn a_refused_form_of_a_review_keeps_what_was_typed() {
    let registry = RegistrySetup::new().start().await;
    let (_origin, review) = waiting(&registry).await;
    let curator = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let page = format!("/reviews/{}", review.id);
    let nobody = [
        ("act", "assign"),
        ("assignee", "nobody"),
        ("due", "2099-01-31"),
    ];
    let refused = curator.post(&page, &nobody).await;
    let words = [
        "The assignee is not an account.",
        "value=\"nobody\"",
        "value=\"2099-01-31\"",
        "Review of <bdi>Echo</bdi>",
    ];
    assert_shows(&refused, 409, &words);
    let other = [
        ("act", "approve"),
        ("digest", "sha256:0"),
        ("reason", "seen <b>"),
    ];
    let refused = curator.post(&page, &other).await;
    let words = ["not about the digest given", "value=\"seen &#60;b&#62;\""];
    assert_shows(&refused, 409, &words);
    let long = format!("<i>{}", "x".repeat(MAX_COMMENT));
    let comment = [("act", "comment"), ("text", long.as_str())];
    let refused = curator.post(&page, &comment).await;
    assert_shows(
        &refused,
        400,
        &["A comment must have 1 to", ">&#60;i&#62;xxx"],
    );
    registry.stop().await;
}

#[tokio::test]
async fn a_review_offers_to_take_back_an_own_approval_only_and_is_due_while_it_is_open() {
    let registry = RegistrySetup::new()
        .with_config_lines("[governance.deciders]\nfirst = 2")
        .start()
        .await;
    let (_origin, review) = waiting(&registry).await;
    let ann = registry.create_token("ann", "curator").await;
    let ann = PageSession::sign_in(&registry, &ann).await;
    let page = format!("/reviews/{}", review.id);
    let due = [
        ("act", "assign"),
        ("assignee", "ann"),
        ("due", "2099-01-31"),
    ];
    assert_eq!(ann.post(&page, &due).await.0, 303);
    let before = ann.get(&page).await;
    assert_shows(&before, 200, &["value=\"approve\"", ", due <time"]);
    assert!(!before.1.contains("Withdraw my approval"), "{}", before.1);
    let reason = ("reason", "known");
    let approve = [
        ("act", "approve"),
        ("digest", review.digest.as_str()),
        reason,
    ];
    assert_eq!(ann.post(&page, &approve).await.0, 303);
    let approved = ann.get(&page).await;
    assert_shows(&approved, 200, &["Withdraw my approval"]);
    assert_eq!(ann.post(&page, &[("act", "withdraw")]).await.0, 303);
    let after = ann.get(&page).await;
    assert!(!after.1.contains("Withdraw my approval"), "{}", after.1);
    let reject = [("act", "reject"), approve[1], reason];
    assert_eq!(ann.post(&page, &reject).await.0, 303);
    for path in [page.as_str(), "/reviews?state=all"] {
        let closed = ann.get(path).await;
        assert_shows(&closed, 200, &["rejected"]);
        assert!(!closed.1.contains(", due <time"), "{path}: {}", closed.1);
    }
    registry.stop().await;
}
