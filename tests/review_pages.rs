//! The pages of reviews, signed in as a browser is, without a browser: filters stay, a refused form keeps what was typed, and
//! only what can be done is offered.

use a2a_registry_api::Review;

use crate::policy_pages::{Session, assert_shows};
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving::ServingRegistry;
use crate::support::setup::{ADMIN, Setup};

/// A card that waits for its review.
async fn waiting(served: &ServingRegistry) -> (Origin, Review) {
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    served.register(&origin.url("/a.json")).await;
    let review = served.open_review(|_| true).await;
    (origin, review)
}

#[tokio::test]
async fn the_form_for_many_reviews_keeps_its_filters_and_what_it_was_given() {
    let served = Setup::new().start().await;
    let (_origin, review) = waiting(&served).await;
    let curator = Session::in_with(&served, ADMIN).await;
    let here = "/reviews?state=all&kind=admission";
    let action = "action=\"/reviews?state=all&#38;kind=admission\" method=\"post\"";
    let shown = curator.get(&format!("{here}&domain=&choose=all")).await;
    assert_shows(&shown, 200, &[action, "Choose all on this page"]);

    let reason = ("reason", "<b>known</b>");
    let none = curator.post(here, &[("verdict", "approve"), reason]).await;
    let kept = "value=\"&#60;b&#62;known&#60;/b&#62;\"";
    assert_shows(&none, 400, &[action, "Choose a review first.", kept]);
    let pick = format!("{} {}", review.id, review.digest);
    let verdict = ("verdict", "approve");
    let blank = [("pick", pick.as_str()), verdict, ("reason", " ")];
    let blank = curator.post(here, &blank).await;
    let chosen = format!("value=\"{pick}\" checked");
    assert_shows(&blank, 400, &[action, "A reason has 1 to", &chosen]);

    let decision = [("pick", pick.as_str()), verdict, reason];
    let decided = curator.post(here, &decision).await;
    let words = [
        "<h2>Results</h2>",
        "Echo: approved",
        "<option value=\"all\" selected",
    ];
    assert_shows(&decided, 200, &words);
    // Nothing is open any more.
    assert!(!decided.1.contains("Choose all"), "{}", decided.1);
    assert!(!decided.1.contains("id=\"reason\""), "{}", decided.1);
    let again = curator.post(here, &decision).await;
    let words = ["not decided", "Echo: This review is approved"];
    assert_shows(&again, 200, &words);
    served.stop().await;
}
