//! The work of five people in a real browser, by mouse and by keyboard, with script and without: a curator, a
//! publisher, an auditor, an admin and a reader. Each journey begins at the front page, signed out, and has a bound on
//! what is pressed and filled in.

use std::cell::Cell;

use a2a_registry_api::Review;
use reqwest::Method;
use serde_json::{Value, json};
use thirtyfour::{By, Key, TypingData};

use crate::page_journeys::PageVisitor;
use crate::pages::demo;
use crate::policy_pages::PageSession;
use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};
use crate::work_pages::{open_reviews, register_waiting};

const CARD: &str = "/card.json";

/// Presses of the Tab key until an element must have the focus.
const MAX_TABS: usize = 200;

/// A test of each journey for each way to go it.
macro_rules! in_every_way {
    ($($journey:ident),+ $(,)?) => {$(
        mod $journey {
            use super::Way;

            #[tokio::test]
            async fn by_mouse() {
                super::$journey(Way { by_keyboard: false, with_script: true }).await;
            }

            #[tokio::test]
            async fn by_mouse_without_script() {
                super::$journey(Way { by_keyboard: false, with_script: false }).await;
            }

            #[tokio::test]
            async fn by_keyboard() {
                super::$journey(Way { by_keyboard: true, with_script: true }).await;
            }

            #[tokio::test]
            async fn by_keyboard_without_script() {
                super::$journey(Way { by_keyboard: true, with_script: false }).await;
            }
        }
    )+};
}

in_every_way!(
    a_curator_empties_a_queue_of_sixty,
    a_publisher_goes_from_registration_to_deprecation,
    an_auditor_answers_who_approved_which_content_when,
    an_admin_makes_the_first_publisher_and_ends_a_leaver,
    a_reader_finds_tries_and_saves,
);

#[derive(Debug, Clone, Copy)]
struct Way {
    by_keyboard: bool,
    with_script: bool,
}

/// Maximum cost of a journey.
struct CostLimit {
    /// Clicks by mouse.
    clicks: usize,
    /// Links, buttons and boxes by keyboard, with the keys of the queue of reviews.
    key_presses: usize,
    /// Fields that are filled in, and lists from which something is chosen.
    fields: usize,
}

/// Somebody on the pages of a registry, and the cost of the journey so far.
struct Person {
    visitor: PageVisitor,
    way: Way,
    presses: Cell<usize>,
    fields: Cell<usize>,
}

impl Person {
    async fn open(url: &str, way: Way) -> Self {
        Self {
            visitor: PageVisitor::open(url, way.with_script).await,
            way,
            presses: Cell::new(0),
            fields: Cell::new(0),
        }
    }

    /// From the front page to the account.
    async fn sign_in(&self, token: &str) {
        self.visitor.visit("/").await;
        self.navigate("/sign-in").await;
        self.fill("#token", token).await;
        self.send("#sign-in button").await;
        self.visitor.find("#sign-out").await;
    }

    fn count_press(&self) {
        self.presses.set(self.presses.get() + 1);
    }

    fn count_field(&self) {
        self.fields.set(self.fields.get() + 1);
    }

    /// Goes on by the Tab key until the first matching element has the focus.
    async fn focus(&self, selector: &str) {
        let wanted = self.visitor.find(selector).await;
        let page = self.visitor.browser.page();
        for _ in 0..MAX_TABS {
            if page.active_element().await.unwrap() == wanted {
                return;
            }
            self.send_keys(Key::Tab).await;
        }
        let text = self.visitor.visible_text().await;
        panic!("{selector} is not reached by the Tab key:\n{text}");
    }

    /// Presses keys where the focus is. Keys that are sent to an element would fill a field for a date or a file
    /// instead of leaving it, and are refused by a link that the driver takes for invisible.
    async fn send_keys(&self, keys: impl Into<TypingData>) {
        let chain = self.visitor.browser.page().action_chain();
        chain.send_keys(keys).perform().await.unwrap();
    }

    /// Presses a link, a button or a checkbox.
    async fn press(&self, selector: &str) {
        self.count_press();
        if !self.way.by_keyboard {
            self.visitor.click(selector).await;
            return;
        }
        self.focus(selector).await;
        let tag = self.visitor.find(selector).await.tag_name().await.unwrap();
        let key = match tag.as_str() {
            "input" => TypingData::from(" "),
            _ => TypingData::from(Key::Enter),
        };
        self.send_keys(key).await;
    }

    /// Presses a link of the navigation.
    async fn navigate(&self, address: &str) {
        if self.way.by_keyboard {
            self.press(&format!(".top nav a[href='{address}']")).await;
        } else {
            self.count_press();
            self.visitor.click_in_navigation(address).await;
        }
    }

    /// Presses a key that the page itself listens to.
    async fn press_key(&self, key: &str) {
        self.count_press();
        self.visitor.type_keys(key).await;
    }

    /// Sends the form of the field that was filled last: by its button, or by Enter in the field.
    async fn send(&self, button: &str) {
        self.count_press();
        match self.way.by_keyboard {
            true => self.visitor.type_keys(Key::Enter).await,
            false => self.visitor.click(button).await,
        }
    }

    /// Types into an empty field.
    async fn fill(&self, selector: &str, text: &str) {
        self.count_field();
        if !self.way.by_keyboard {
            self.visitor.type_into(selector, text).await;
            return;
        }
        self.focus(selector).await;
        self.visitor.type_keys(text).await;
    }

    /// Chooses from a list whose labels are its values.
    async fn choose(&self, selector: &str, value: &str) {
        self.count_field();
        if self.way.by_keyboard {
            self.focus(selector).await;
            self.visitor.type_keys(value).await;
        } else {
            let option = format!("{selector} option[value='{value}']");
            self.visitor.click(&option).await;
        }
        let chosen = self.visitor.find(selector).await.value().await.unwrap();
        assert_eq!(chosen.as_deref(), Some(value));
    }

    async fn count_elements(&self, selector: &str) -> usize {
        let page = self.visitor.browser.page();
        page.find_all(By::Css(selector)).await.unwrap().len()
    }

    /// Ends the journey, which must not have cost more than that.
    async fn finish(self, most: &CostLimit) {
        let limit = match self.way.by_keyboard {
            true => most.key_presses,
            false => most.clicks,
        };
        let (presses, fields) = (self.presses.get(), self.fields.get());
        assert!(presses <= limit, "{:?}: {presses} presses", self.way);
        assert!(fields <= most.fields, "{:?}: {fields} fields", self.way);
        self.visitor.finish("").await;
    }
}

/// Somebody approves the review that is open.
async fn approve_as(registry: &ServingRegistry, account: &str, reason: &str) -> Review {
    let token = registry.create_token(account, "curator").await;
    let review = registry.wait_for_open_review(|_| true).await;
    let path = format!("/v1/reviews/{}:approve", review.id);
    let decision = json!({"digest": review.digest, "reason": reason});
    let approve = registry.request(Method::POST, &path).bearer_auth(&token);
    ApiResponse::send(approve.json(&decision))
        .await
        .expect_status(200);
    review
}

/// One review is found by its tag and rejected, two are picked by hand, and all others are approved in two batches.
async fn a_curator_empties_a_queue_of_sixty(way: Way) {
    let registry = RegistrySetup::new().start().await;
    let _origin = register_waiting(&registry, 60).await;
    let curator = Person::open(&registry.url, way).await;
    let token = registry.create_token("cora", "curator").await;
    curator.sign_in(&token).await;
    curator.navigate("/reviews").await;

    curator.press(".filterbar summary").await;
    curator.fill("#tag", "skill7").await;
    curator.send(".filterbar button").await;
    curator.visitor.find("#tag[value='skill7']").await;
    curator.press(".queue li a").await;
    curator
        .visitor
        .wait_for_texts(&["Review of Agent 7", "Does skill7"])
        .await;
    curator.fill("#reason", "It is not ours.").await;
    curator.press("button[value=reject]").await;
    let rejected = [
        "The card of Agent 7 is rejected",
        "It is not ours.",
        "No review matches.",
    ];
    curator.visitor.wait_for_texts(&rejected).await;

    curator.navigate("/reviews").await;
    curator.visitor.find(".queue input[name=pick]").await;
    let has_keys = way.by_keyboard && way.with_script;
    if has_keys {
        for key in ["j", "x", "j", "j", "k", "x", "a"] {
            curator.press_key(key).await;
        }
    } else {
        for row in ["1", "2"] {
            let box_of_row = format!(".queue li:nth-child({row}) input[name=pick]");
            curator.press(&box_of_row).await;
        }
    }
    assert_eq!(curator.count_elements("input[name=pick]:checked").await, 2);
    curator.fill("#reason", "I know these two.").await;
    curator.press("button[value=approve]").await;
    curator
        .visitor
        .wait_for_texts(&["Results", ": approved"])
        .await;
    let left = open_reviews(&registry, "").await.reviews.len();
    assert_eq!(left, 57);

    curator.press("a[href*='choose=matching']").await;
    curator
        .visitor
        .wait_for_texts(&["57 open reviews match."])
        .await;
    if has_keys {
        curator.press_key("a").await;
    } else if way.by_keyboard {
        curator.press("a[href='#reason']").await;
    }
    curator.fill("#reason", "All are known.").await;
    curator.press("button[value=approve]").await;
    if !way.with_script {
        let progress = ["50 decided", "7 to go"];
        curator.visitor.wait_for_texts(&progress).await;
        curator.press("#continue button").await;
    }
    let empty = [
        "50 reviews were decided in earlier batches.",
        "No review matches. Nothing waits here.",
    ];
    curator.visitor.wait_for_texts(&empty).await;
    assert!(open_reviews(&registry, "").await.reviews.is_empty());
    let most = CostLimit {
        clicks: 14,
        key_presses: 19,
        fields: 5,
    };
    curator.finish(&most).await;
    registry.stop().await;
}

async fn a_publisher_goes_from_registration_to_deprecation(way: Way) {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "repeat")));
    let publisher = Person::open(&registry.url, way).await;
    let visitor = &publisher.visitor;
    let token = registry.create_token("ann", "publisher").await;
    publisher.sign_in(&token).await;
    publisher.press("#domains a.button").await;
    publisher.fill("#target", &origin.url(CARD)).await;
    publisher.send("#register button").await;
    visitor
        .wait_for_texts(&["Where it stands", "Its agent is waiting for review."])
        .await;
    approve_as(&registry, "cora", "A good start.").await;
    publisher.press("#steps a.button").await;
    visitor.wait_for_texts(&["1 agent is listed."]).await;

    // Who has only registered a host is offered nothing that would be refused.
    publisher.press("#steps a[href^='/agents/']").await;
    visitor.find("#manage").await;
    assert_eq!(
        publisher.count_elements("#manage a[href*='/acts/']").await,
        1
    );
    visitor
        .wait_for_texts(&["To change the agent, prove"])
        .await;
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "rent")));
    publisher.press("#manage a[href$='/acts/fetch']").await;
    publisher.press("#act button").await;
    let change = registry
        .wait_for_open_review(|review| review.previous.is_some())
        .await;
    publisher.press("#steps a[href^='/agents/']").await;
    publisher.press("#versions a[href*='/diff?']").await;
    visitor
        .wait_for_texts(&["What changed in Echo", "Echo is good at rent"])
        .await;
    let approved = approve_as(&registry, "carl", "Better than before.").await;
    assert_eq!(approved.id, change.id);

    // No record can prove an address of this machine, so an admin vouches for its owner.
    let admin = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let vouch = [
        ("account", "ann"),
        ("reason", "a test"),
        ("days", "30"),
        ("confirmed", "yes"),
    ];
    let path = format!("/domains/{}/owner-vouch", origin.address());
    assert_eq!(admin.post(&path, &vouch).await.0, 303);
    publisher.navigate("/waiting").await;
    visitor
        .wait_for_texts(&["Echo: Approved by carl", "Better than before."])
        .await;
    publisher.press("#news a[href^='/agents/']").await;
    publisher.press("#manage a[href$='/acts/deprecate']").await;
    publisher.fill("#reason", "Use the other one.").await;
    publisher.send("#act button").await;
    visitor.find("#deprecated").await;
    visitor
        .wait_for_texts(&["Deprecated", "Use the other one.", "Echo is good at rent"])
        .await;
    let most = CostLimit {
        clicks: 14,
        key_presses: 14,
        fields: 3,
    };
    publisher.finish(&most).await;
    registry.stop().await;
}

async fn an_auditor_answers_who_approved_which_content_when(way: Way) {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "repeat")));
    registry.register(&origin.url(CARD)).await;
    let first = approve_as(&registry, "cora", "The first one is known.").await;
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "rent")));
    registry
        .recrawl_and_wait(&origin.address().to_string())
        .await;
    let second = approve_as(&registry, "carl", "The change is harmless.").await;
    registry.wait_for_hit("skill=rent").await;

    let auditor = Person::open(&registry.url, way).await;
    let visitor = &auditor.visitor;
    let token = registry.create_token("audrey", "auditor").await;
    auditor.sign_in(&token).await;
    auditor.navigate("/").await;
    auditor.fill("#q", "Echo").await;
    auditor.send("form.search button").await;
    auditor.press(".hit h2 a").await;
    visitor
        .wait_for_texts(&["approved by carl", "The change is harmless."])
        .await;

    auditor.press("#agent-events").await;
    auditor.choose("#kind", "agent.approved").await;
    auditor.press(".filterbar button").await;
    let filtered = "#kind option[value='agent.approved'][selected]";
    visitor.find(filtered).await;
    let answer = [
        "by cora",
        "reason: The first one is known.",
        &first.digest,
        "by carl",
        "reason: The change is harmless.",
        &second.digest,
    ];
    visitor.wait_for_texts(&answer).await;
    assert_eq!(auditor.count_elements(".queue time[datetime]").await, 2);

    // The oldest is the last; its review shows the content.
    auditor.choose("#kind", "review.closed").await;
    auditor.press(".filterbar button").await;
    visitor
        .find("#kind option[value='review.closed'][selected]")
        .await;
    auditor.press(".queue li:last-child a").await;
    visitor
        .wait_for_texts(&[
            "Decided by",
            "cora",
            "The first one is known.",
            &first.digest,
        ])
        .await;
    auditor.press("main details.fold summary").await;
    visitor
        .wait_for_texts(&["\"Echo is good at repeat\""])
        .await;
    let most = CostLimit {
        clicks: 10,
        key_presses: 10,
        fields: 4,
    };
    auditor.finish(&most).await;
    registry.stop().await;
}

/// Registers a card as the holder of a token, and waits until its agent is found.
async fn publish_as(registry: &ServingRegistry, token: &str, card_url: &str) {
    let register = registry.request(Method::POST, "/v1/domains");
    let register = register
        .bearer_auth(token)
        .json(&json!({"card_url": card_url}));
    ApiResponse::send(register).await.expect_status(202);
    registry.wait_for_hit("skill=repeat").await;
}

/// A new account gets its first token, and signs in with it. The account of somebody who leaves is disabled, and the
/// new one becomes responsible for the agent that is left.
async fn an_admin_makes_the_first_publisher_and_ends_a_leaver(way: Way) {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "repeat")));
    let lea_token = registry.create_token("lea", "publisher").await;
    publish_as(&registry, &lea_token, &origin.url(CARD)).await;
    let lea = PageSession::sign_in(&registry, &lea_token).await;

    let admin = Person::open(&registry.url, way).await;
    let visitor = &admin.visitor;
    admin.sign_in(ADMIN_TOKEN).await;
    admin.navigate("/admin").await;
    admin.press(".states a[href='/admin/accounts']").await;
    admin.fill("#new-account #name", "pia").await;
    admin.press("#role-publisher").await;
    admin.press("#new-account button").await;
    admin.press("#token button").await;
    let secret = visitor.find("#made code").await.text().await.unwrap();
    let publisher = PageVisitor::open(&registry.url, way.with_script).await;
    publisher.sign_in(secret.trim()).await;
    publisher
        .wait_for_texts(&["pia", "first sign-in", "publisher"])
        .await;
    publisher.finish("").await;

    admin.press(".crumb a[href='/admin/accounts']").await;
    let account: Value = registry.read_as_admin("/v1/accounts/lea").await;
    let link = format!(
        "a[href='/admin/accounts/{}']",
        account["id"].as_str().unwrap()
    );
    admin.press(&link).await;
    admin.press("#end button").await;
    visitor
        .wait_for_texts(&["Disable the account lea?", "What will be lost"])
        .await;
    assert_eq!(lea.get("/account").await.0, 200);
    admin.press("#confirm button").await;
    visitor.wait_for_texts(&["Enable the account"]).await;
    assert_eq!(lea.get("/account").await.0, 303);
    let me = registry.request(Method::GET, "/v1/me");
    let refused = ApiResponse::send(me.bearer_auth(&lea_token)).await;
    refused.expect_problem(401, "unauthenticated");

    admin.press("a[href^='/events?account=']").await;
    admin.press(".queue a[href^='/domains/']").await;
    admin.press("#agents a[href^='/agents/']").await;
    admin.press("#manage a[href$='/acts/sponsor']").await;
    admin.fill("#act #sponsor", "pia").await;
    admin.fill("#reason", "lea has left").await;
    admin.send("#act button").await;
    visitor
        .wait_for_texts(&["Sponsor inside this company: pia"])
        .await;
    let most = CostLimit {
        clicks: 16,
        key_presses: 16,
        fields: 4,
    };
    admin.finish(&most).await;
    registry.stop().await;
}

/// Without script there is no console, and the page shows how to call the agent instead.
async fn a_reader_finds_tries_and_saves(way: Way) {
    let demo = demo().await;
    let client = RegistryClient::new(&demo.url);
    let body = json!({"account": "rea", "role": "reader", "name": "a test"});
    let create = client
        .request(Method::POST, "/v1/tokens")
        .bearer_auth(&demo.token);
    let created = ApiResponse::send(create.json(&body))
        .await
        .expect_status(201);

    let reader = Person::open(&demo.url, way).await;
    let visitor = &reader.visitor;
    reader.sign_in(created["secret"].as_str().unwrap()).await;
    reader.navigate("/").await;
    reader.fill("#q", "trip").await;
    reader.send("form.search button").await;
    reader.press(".hit h2 a").await;
    visitor.wait_for_texts(&["Trip Planner", "Call it"]).await;
    if way.with_script {
        visitor.find("#console[data-ready]").await;
        reader
            .fill("#console-text", "Plan three days in Rome")
            .await;
        if way.by_keyboard {
            reader.count_press();
            visitor.type_keys(Key::Control + Key::Enter).await;
        } else {
            reader.press("#console-send").await;
        }
        visitor.wait_for_texts(&["Colosseum"]).await;
    } else {
        let text = visitor.visible_text().await;
        assert!(!text.contains("Talk to it"), "{text}");
    }
    reader.count_press();
    visitor.browser.page().back().await.unwrap();
    reader.press("#save summary").await;
    reader.press("#save button").await;
    visitor.find("#searches li").await;
    reader.press("#searches li a").await;
    visitor.find(".hit").await;
    visitor.wait_for_texts(&["Trip Planner"]).await;
    let most = CostLimit {
        clicks: 10,
        key_presses: 10,
        fields: 3,
    };
    reader.finish(&most).await;
}

/// Keeps the timer of the next batch until the test ends it, so that the test needs no time.
const HOLD_BATCH_TIMER: &str = "{
    const pause = 1500;
    const [start, end] = [window.setTimeout, window.clearTimeout];
    window.heldTimers = new Map();
    window.setTimeout = (call, wait, ...given) => {
        if (wait !== pause) {
            return start.call(window, call, wait, ...given);
        }
        const id = -1 - window.heldTimers.size;
        window.heldTimers.set(id, call);
        return id;
    };
    window.clearTimeout = (id) => {
        window.heldTimers.delete(id);
        end.call(window, id);
    };
}";

async fn wait_for_held_timers(visitor: &PageVisitor, count: u64) {
    eventually("that many timers are held", || async {
        let script = "return window.heldTimers.size";
        let held = visitor.browser.page().execute(script, Vec::new()).await;
        // A page that has just been left has no answer.
        let held = held.ok()?.json().as_u64();
        (held == Some(count)).then_some(())
    })
    .await;
}

/// The next batch of decisions does not begin after the person has gone to the form.
async fn a_batch_is_stopped(by_keyboard: bool) {
    let registry = RegistrySetup::new().start().await;
    let _origin = register_waiting(&registry, 51).await;
    let way = Way {
        by_keyboard,
        with_script: true,
    };
    let curator = Person::open(&registry.url, way).await;
    let visitor = &curator.visitor;
    visitor
        .browser
        .run_before_page_scripts(HOLD_BATCH_TIMER)
        .await;
    visitor.sign_in(ADMIN_TOKEN).await;
    visitor.visit("/reviews?choose=matching").await;
    visitor.type_into("#reason", "All are known.").await;
    visitor.click("button[value=approve]").await;
    visitor.wait_for_texts(&["50 decided", "1 to go"]).await;
    wait_for_held_timers(visitor, 1).await;
    if !by_keyboard {
        visitor.check_and_capture("review-progress").await;
    }
    match by_keyboard {
        true => curator.focus("#continue #reason").await,
        false => visitor.click("#continue #reason").await,
    }
    wait_for_held_timers(visitor, 0).await;
    curator.press("#continue a.button").await;
    visitor.find(".queue input[name=pick]").await;
    assert_eq!(curator.count_elements(".queue li").await, 1);
    assert_eq!(open_reviews(&registry, "").await.reviews.len(), 1);
    visitor.wait_for_texts(&["Open 1"]).await;
    curator.visitor.finish("").await;
    registry.stop().await;
}

#[tokio::test]
async fn a_batch_is_stopped_by_mouse() {
    a_batch_is_stopped(false).await;
}

#[tokio::test]
async fn a_batch_is_stopped_by_keyboard() {
    a_batch_is_stopped(true).await;
}
