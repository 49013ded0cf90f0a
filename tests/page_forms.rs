//! Forms of pages in a real browser: Enter in a reason decides nothing, destructive actions ask for confirmation, and
//! a decision reports which card stays served, with script and without.

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page_journeys::PageVisitor;
use crate::page_quality::{AXE, LOOKS, axe, pictures};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::registry_command;
use crate::support::serving_registry::{ServingRegistry, start_serving};
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

const CARD: &str = "/.well-known/agent-card.json";

impl PageVisitor {
    /// Presses Enter in a field. The browser has finished loading whatever this leads to before it takes the next command.
    async fn enters(&self, selector: &str) {
        let field = self.find(selector).await;
        field.send_keys(Key::Enter + "").await.unwrap();
    }

    /// What stands in a field of the page that is open.
    async fn value(&self, selector: &str) -> String {
        let field = self.find(selector).await;
        field.value().await.unwrap().unwrap_or_default()
    }

    /// Checks the page that is open with axe on every screen, and takes its pictures.
    pub(crate) async fn check_and_capture(&self, name: &str) {
        for (width, height, theme) in LOOKS {
            self.browser.set_color_scheme(theme).await;
            self.browser.emulate_screen_size(width, height).await;
            let page = self.browser.page();
            page.execute(axe(), Vec::new()).await.unwrap();
            let found = page.execute_async(AXE, Vec::new()).await.unwrap();
            assert_eq!(*found.json(), json!([]), "{name} at {width}, {theme}");
            let file = pictures().join(format!("{name}-{width}-{theme}.png"));
            self.browser.capture_full_page(&file).await;
        }
        self.assert_fits_screens().await;
        self.browser.set_color_scheme("light").await;
    }
}

/// The state of a review.
async fn state(registry: &ServingRegistry, review: &str) -> String {
    let review: Value = registry
        .read_as_admin(&format!("/v1/reviews/{review}"))
        .await;
    review["state"].as_str().unwrap().to_owned()
}

/// Enter in the reason of a decision, or at the box of a review, decides nothing, in one review and in the form for many;
/// Enter in a form with one button presses it.
async fn enter_decides_nothing(with_script: bool) {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Flight Booker", "book")));
    registry.register(&origin.url(CARD)).await;
    let review = registry.wait_for_open_review(|_| true).await.id.to_string();
    let page = format!("/reviews/{review}");
    let curator = PageVisitor::open(&registry.url, with_script).await;
    curator.sign_in(ADMIN_TOKEN).await;

    curator.visit(&page).await;
    curator.type_into("#assignee", "admin").await;
    curator.enters("#assignee").await;
    curator.wait_for_texts(&["assigned to admin"]).await;

    curator.type_into("#reason", "Let me think").await;
    curator.enters("#reason").await;
    assert_eq!(curator.value("#reason").await, "Let me think");
    assert_eq!(state(&registry, &review).await, "open");
    curator.visit("/reviews?choose=all").await;
    curator.type_into("#reason", "Let me think again").await;
    curator.enters("#reason").await;
    assert_eq!(curator.value("#reason").await, "Let me think again");
    curator.enters("input[name=pick]").await;
    assert_eq!(curator.value("#reason").await, "Let me think again");
    assert_eq!(state(&registry, &review).await, "open");

    // The buttons decide, and say what is served.
    curator.click("button[value=approve]").await;
    curator
        .wait_for_texts(&["Flight Booker: approved; this card is served"])
        .await;
    origin.set_reply(CARD, OriginReply::json(card_json("Flight Booker", "rent")));
    registry
        .recrawl_and_wait(&origin.address().to_string())
        .await;
    let change = registry
        .wait_for_open_review(|one| one.previous.is_some())
        .await;
    curator.visit(&format!("/reviews/{}", change.id)).await;
    curator.type_into("#reason", "Not yet").await;
    curator.enters("#reason").await;
    assert_eq!(state(&registry, &change.id.to_string()).await, "open");
    curator.click("button[value=reject]").await;
    let before = change.previous.unwrap();
    let said = format!(
        "The changed card of Flight Booker is rejected; the card approved before stays listed ({before})."
    );
    curator.wait_for_texts(&[said.as_str()]).await;
    if with_script {
        curator.check_and_capture("review-rejected").await;
    }
    curator.finish("").await;
    registry.stop().await;
}

#[tokio::test]
async fn enter_in_a_reason_decides_nothing() {
    enter_decides_nothing(true).await;
}

#[tokio::test]
async fn enter_in_a_reason_decides_nothing_without_script() {
    enter_decides_nothing(false).await;
}

/// A token, a collection and the last way in: each is asked about first, and can be kept.
async fn a_click_asks_first(with_script: bool) {
    let registry = RegistrySetup::new().start().await;
    let admin = PageVisitor::open(&registry.url, with_script).await;
    admin.sign_in(ADMIN_TOKEN).await;
    admin.type_into("#name", "ci").await;
    admin.click("#scope-read").await;
    admin.click("#new-token button").await;
    admin.find("#made").await;
    let revoke = "button[aria-label^='Revoke the token ci']";
    admin.click(revoke).await;
    admin
        .wait_for_texts(&[
            "Revoke the token ci?",
            "What will be lost",
            "The token ci (a2ar_",
        ])
        .await;
    if with_script {
        admin.check_and_capture("confirm-token").await;
    }
    admin.click("a[href='/account'].button").await;
    admin.click(revoke).await;
    admin.click("#confirm button").await;
    admin.find("#tokens").await;
    assert!(!admin.visible_text().await.contains("Revoke the token ci?"));
    assert!(!admin.visible_text().await.contains("ci a2ar_"));

    let content = json!({"filter": "tag:travel", "description": "", "owners": []});
    let put = registry.admin_request(reqwest::Method::PUT, "/v1/collections/trips");
    assert_eq!(put.json(&content).send().await.unwrap().status(), 200);
    admin.visit("/collections/trips").await;
    admin.click("#delete button").await;
    admin
        .wait_for_texts(&["Delete the collection trips?", "tag:travel", "everyone"])
        .await;
    if with_script {
        admin.check_and_capture("confirm-collection").await;
    }
    assert_eq!(registry.get("/v1/collections/trips").await.status, 200);
    admin.click("#confirm button").await;
    admin.wait_for_texts(&["No collection is visible"]).await;

    // The token that the session was begun with is the last way in.
    admin.visit("/account").await;
    admin.click("#tokens li button").await;
    admin
        .wait_for_texts(&["The session that was started with it.", "signed out"])
        .await;
    admin.click("#confirm button").await;
    admin
        .wait_for_texts(&["This is the last admin access", "Create another token"])
        .await;
    if with_script {
        admin.check_and_capture("last-way-in").await;
    }
    admin.visit("/account").await;
    admin.find("#tokens li button").await;
    admin.finish("status of 409").await;
    registry.stop().await;
}

#[tokio::test]
async fn what_one_click_destroys_asks_first() {
    a_click_asks_first(true).await;
}

#[tokio::test]
async fn what_one_click_destroys_asks_first_without_script() {
    a_click_asks_first(false).await;
}

/// The page of a sign-in link says who signs in, and its button signs in.
#[tokio::test]
async fn a_sign_in_link_asks_before_it_signs_in() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = registry_command(["demo", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", folder.path());
    let (program, status_line) = start_serving(command).await;
    let shown: Value = program
        .wait_for_match(|line| serde_json::from_str(line).ok())
        .await;
    let mut accounts = shown["accounts"].as_array().unwrap().iter();
    let publisher = accounts.find(|account| account["name"] == "publisher");
    let link = publisher.unwrap()["sign_in"].as_str().unwrap();
    let visitor = PageVisitor::open(status_line.url(), true).await;
    visitor.browser.page().goto(link).await.unwrap();
    visitor.wait_for_texts(&["Sign in as publisher"]).await;
    visitor.check_and_capture("sign-in-link").await;
    visitor.click("#sign-in-link button").await;
    visitor.find(".top nav a.who").await;
    visitor.finish("").await;
}

/// What a visitor reads who is signed out, apart from the id of the request.
async fn signed_out(registry: &ServingRegistry, path: &str) -> String {
    let answer = registry.get(path).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.text()
}

/// Where every agent is internal, who is signed out reads that nothing is public, and how to sign in: the same bytes as in
/// a registry without agents.
#[tokio::test]
async fn a_registry_whose_agents_are_internal_offers_signing_in() {
    let empty = RegistrySetup::new().approve_all().start().await;
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Flight Booker", "book")));
    let agent = registry.publish(&origin.url(CARD)).await;
    let patch = registry.admin_request(reqwest::Method::PATCH, &format!("/v1/agents/{agent}"));
    let internal = patch.json(&json!({"visibility": "internal"})).send().await;
    assert_eq!(internal.unwrap().status(), 200);
    for path in ["/", "/?q=", "/?q=book", "/?tag=travel"] {
        let hidden = signed_out(&registry, path).await;
        assert_eq!(hidden, signed_out(&empty, path).await, "{path}");
        for told in ["Nothing is public here", "href=\"/sign-in\""] {
            assert!(hidden.contains(told), "{told} at {path}: {hidden}");
        }
        assert!(!hidden.contains("listed yet"), "{path}: {hidden}");
    }
    let visitor = PageVisitor::open(&registry.url, true).await;
    visitor.visit("/").await;
    visitor.check_and_capture("nothing-public").await;
    visitor.click("#empty a[href='/sign-in']").await;
    visitor.type_into("#token", ADMIN_TOKEN).await;
    visitor.click("#sign-in button").await;
    visitor.visit("/").await;
    visitor.wait_for_texts(&["1 agent", "Flight Booker"]).await;
    visitor.finish("").await;

    let reader = PageVisitor::open(&empty.url, true).await;
    reader
        .sign_in(&empty.create_token("rea", "reader").await)
        .await;
    reader.visit("/?q=").await;
    reader
        .wait_for_texts(&[
            "No agent is listed for you yet",
            "register agents.example.com",
        ])
        .await;
    reader.check_and_capture("nothing-for-you").await;
    reader.finish("").await;
    registry.stop().await;
    empty.stop().await;
}

/// The page of a domain that cannot be proved has no impossible next step, shows code as code, and names a waiting agent.
#[tokio::test]
async fn a_domain_that_cannot_be_proved_is_told_what_can_be_done() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Flight Booker", "book")));
    registry.register(&origin.url(CARD)).await;
    let review = registry.wait_for_open_review(|_| true).await;
    let page = format!("/domains/{}", origin.address());
    let admin = PageVisitor::open(&registry.url, true).await;
    admin.sign_in(ADMIN_TOKEN).await;
    admin.visit(&page).await;
    admin
        .wait_for_texts(&[
            "Domain proved not possible",
            "Reviewed and listed next",
            "Agent \"Flight Booker\" waits for its first approval",
        ])
        .await;
    let text = admin.visible_text().await;
    assert!(!text.contains('`'), "{text}");
    let named = format!("Agent {}", review.agent);
    assert!(!text.contains(&named), "{text}");
    admin.check_and_capture("domain-unprovable").await;
    let path = format!("/v1/reviews/{}:approve", review.id);
    let decision = json!({"digest": review.digest, "reason": "known"});
    registry
        .post_as_admin(&path, &decision)
        .await
        .expect_status(200);
    admin.visit(&page).await;
    admin.wait_for_texts(&["1 agent is listed."]).await;
    let steps = admin.find("#steps").await.text().await.unwrap();
    assert!(!steps.contains(" next"), "{steps}");
    admin.finish("").await;
    registry.stop().await;
}
