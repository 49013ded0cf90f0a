//! Navigation through the pages of an agent, a domain and the registration in a real browser, with script and without.

use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::extensions::query::ElementQueryable as _;
use thirtyfour::{By, Key, TypingData, WebElement};
use tokio::process::Command;

use crate::page_quality::SCREENS;
use crate::support::DEADLINE;
use crate::support::browser::Browser;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::poll_until_deadline;
use crate::support::program::{Program, join_lines, registry_command};
use crate::support::serving_registry::start_serving;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};
use crate::support::tls::{Authority, TlsFront};

const CARD: &str = "/.well-known/agent-card.json";

/// Pause between two polls of a browser, which sends no events.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// A browser on the pages of a registry.
pub(crate) struct PageVisitor {
    url: String,
    pub(crate) browser: Browser,
}

impl PageVisitor {
    pub(crate) async fn open(url: &str, with_script: bool) -> Self {
        let browser = Browser::open().await;
        if !with_script {
            browser.disable_scripts().await;
        }
        Self::with_browser(url, browser)
    }

    /// That browser, on the pages of the registry at that URL.
    pub(crate) fn with_browser(url: &str, browser: Browser) -> Self {
        Self {
            url: url.to_owned(),
            browser,
        }
    }

    pub(crate) async fn visit(&self, path: &str) {
        let url = format!("{}{path}", self.url);
        self.browser.page().goto(url).await.unwrap();
    }

    /// The first matching element, once it exists.
    pub(crate) async fn find(&self, selector: &str) -> WebElement {
        let found = self.browser.page().query(By::Css(selector));
        match found.wait(DEADLINE, POLL_PAUSE).first().await {
            Ok(found) => found,
            Err(error) => panic!("{selector}: {error}\n{}", self.visible_text().await),
        }
    }

    pub(crate) async fn click(&self, selector: &str) {
        self.find(selector).await.click().await.unwrap();
    }

    /// Clicks a link of the navigation. The driver takes the content of closed disclosures for invisible, whose style shows
    /// it on wide screens, so the pointer goes to its place.
    pub(crate) async fn click_in_navigation(&self, address: &str) {
        let link = self.find(&format!("nav a[href='{address}']")).await;
        let chain = self.browser.page().action_chain();
        let chain = chain.move_to_element_center(&link).click();
        chain.perform().await.unwrap();
    }

    pub(crate) async fn type_into(&self, selector: &str, text: &str) {
        let field = self.find(selector).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    pub(crate) async fn sign_in(&self, token: &str) {
        self.visit("/sign-in?next=/account").await;
        self.type_into("#token", token).await;
        self.click("#sign-in button").await;
        self.find("#sign-out").await;
    }

    /// Types where the focus is.
    pub(crate) async fn type_keys(&self, keys: impl Into<TypingData>) {
        let focused = self.browser.page().active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    }

    /// Goes on by the Tab key until the element with this id has the focus.
    async fn tab_to(&self, id: &str) {
        for _ in 0..100 {
            let focused = self.browser.page().active_element().await.unwrap();
            let here = focused.attr("id").await.unwrap_or_default();
            if here.is_some_and(|here| here.starts_with(id)) {
                return;
            }
            self.type_keys(Key::Tab + "").await;
        }
        panic!("{id} is not reached:\n{}", self.visible_text().await);
    }

    /// The visible text of the page.
    pub(crate) async fn visible_text(&self) -> String {
        let body = self.browser.page().find(By::Css("body")).await;
        match body {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    /// Waits until all of these words are visible.
    pub(crate) async fn wait_for_texts(&self, words: &[&str]) {
        let found = poll_until_deadline(async || {
            let text = self.visible_text().await;
            words.iter().all(|word| text.contains(word)).then_some(())
        });
        if found.await.is_none() {
            panic!(
                "not all of {words:?} are visible in:\n{}",
                self.visible_text().await
            );
        }
    }

    /// Checks that the page needs no horizontal scrolling, on any of the screens.
    pub(crate) async fn assert_fits_screens(&self) {
        for (width, height) in SCREENS {
            self.browser.emulate_screen_size(width, height).await;
            let script = "return document.documentElement.scrollWidth";
            let needed = self.browser.page().execute(script, Vec::new()).await;
            let needed: u32 = needed.unwrap().convert().unwrap();
            assert!(
                needed <= width,
                "{needed} of {width} pixels:\n{}",
                self.visible_text().await
            );
        }
    }

    /// Ends the visit; the browser has complained of nothing but refused requests with that status.
    pub(crate) async fn finish(self, refused: &str) {
        let complaints = self.browser.take_log_messages().await;
        let expected = |line: &String| !refused.is_empty() && line.contains(refused);
        assert!(complaints.iter().all(expected), "{complaints:?}");
        self.browser.close().await;
    }
}

/// A card at another address, with another skill.
fn changed_card(name: &str) -> String {
    let mut card: Value = serde_json::from_str(&card_json(name, "repeat")).unwrap();
    card["url"] = json!("https://moved.agents.dev/a2a");
    card["skills"][0]["examples"] = json!(["please", "again"]);
    card.to_string()
}

/// From an agent's page to what changed between two versions of its card, and on to another comparison.
async fn a_change_is_read(with_script: bool) {
    let served = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "repeat")));
    let domain = served.register(&origin.url(CARD)).await.domain;
    let hit = served.wait_for_hit("skill=repeat").await;
    origin.set_reply(CARD, OriginReply::json(changed_card("Echo")));
    served.recrawl_and_wait(&domain).await;
    let page = format!("/agents/{}/", hit.summary.id);
    let visitor = PageVisitor::open(&served.url, with_script).await;
    let changed = poll_until_deadline(async || {
        visitor.visit(&page).await;
        let diffs = visitor
            .browser
            .page()
            .find_all(By::Css("#versions a[href*='/diff?']"));
        (diffs.await.unwrap().len() == 1).then_some(())
    });
    assert!(changed.await.is_some(), "{}", visitor.visible_text().await);
    visitor
        .wait_for_texts(&[
            "What it does",
            "State",
            "card fetched",
            "fetches of the card succeeded",
            "unproved",
        ])
        .await;
    if with_script {
        visitor.assert_fits_screens().await;
    }
    visitor.click("#versions a[href*='/diff?']").await;
    visitor
        .wait_for_texts(&[
            "What changed in Echo",
            "/url",
            "critical",
            "https://echo.agents.dev/a2a",
            "https://moved.agents.dev/a2a",
        ])
        .await;
    if with_script {
        visitor.assert_fits_screens().await;
    }
    // The other way round, with the form.
    let newest = visitor
        .find("#to option[selected]")
        .await
        .value()
        .await
        .unwrap()
        .unwrap();
    let option = format!("#from option[value='{newest}']");
    visitor.click(&option).await;
    visitor.click(".compare button").await;
    visitor
        .wait_for_texts(&["Both sides are", "no differences"])
        .await;
    visitor.finish("").await;
    served.stop().await;
}

#[tokio::test]
async fn a_person_reads_what_changed() {
    a_change_is_read(true).await;
}

#[tokio::test]
async fn a_person_reads_what_changed_without_script() {
    a_change_is_read(false).await;
}

/// From the front page to a session, a registration without a shell, the account page, and out again.
async fn somebody_signs_in_and_registers(with_script: bool) {
    let served = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "repeat")));
    let visitor = PageVisitor::open(&served.url, with_script).await;
    visitor.visit("/").await;
    visitor.click_in_navigation("/sign-in").await;
    visitor.type_into("#token", "a2ar_not-a-token").await;
    visitor.click("#sign-in button").await;
    visitor
        .wait_for_texts(&["This token is unknown or has expired"])
        .await;
    visitor.visit("/account").await;
    visitor.type_into("#token", ADMIN_TOKEN).await;
    visitor.click("#sign-in button").await;
    visitor
        .wait_for_texts(&[
            "Who you are",
            "curator, admin",
            "this one",
            "not registered",
        ])
        .await;
    if with_script {
        visitor.assert_fits_screens().await;
    }
    visitor.click("#domains a.button").await;
    visitor.type_into("#target", &origin.url(CARD)).await;
    visitor.click("#register button").await;
    visitor
        .wait_for_texts(&["Where it stands", "Echo", "waiting"])
        .await;
    visitor.visit("/account").await;
    visitor
        .wait_for_texts(&[&origin.address().to_string(), "waiting for review", "Echo"])
        .await;
    visitor.type_into("#name", "for a pipeline").await;
    visitor.click("#scope-register").await;
    visitor.click("#new-token button").await;
    visitor
        .wait_for_texts(&["Token for a pipeline", "a2ar_", "shown only once"])
        .await;
    if with_script {
        visitor.assert_fits_screens().await;
    }
    visitor.click("#sign-out button").await;
    visitor.find("nav a[href='/sign-in']").await;
    visitor.visit("/account").await;
    visitor.find("#sign-in").await;
    visitor.finish("401").await;
    served.stop().await;
}

#[tokio::test]
async fn a_person_signs_in_and_registers() {
    somebody_signs_in_and_registers(true).await;
}

#[tokio::test]
async fn a_person_signs_in_and_registers_without_script() {
    somebody_signs_in_and_registers(false).await;
}

/// Runs a line like a reader would: in a shell, without the environment of the tests.
async fn typed(line: &str) -> String {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("A2A") {
            shell.env_remove(name);
        }
    }
    let finished = Program::run(shell).await;
    assert!(finished.status.success(), "{line}\n{finished:?}");
    join_lines(&finished.stdout)
}

/// The button copies the curl snippet, and the copy runs as pasted against the sample agent.
#[tokio::test]
async fn a_copied_snippet_runs_as_pasted() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = registry_command(["demo", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", folder.path());
    let (_program, status_line) = start_serving(command).await;
    let visitor = PageVisitor::open(status_line.url(), true).await;
    visitor.browser.allow_clipboard().await;
    visitor.visit("/?q=trip").await;
    visitor.click(".hit h2 a").await;
    visitor.wait_for_texts(&["Trip Planner", "Call it"]).await;
    visitor.click("#panel-curl .copy").await;
    visitor.wait_for_texts(&["Copied"]).await;
    let read = "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)));";
    let copied = visitor.browser.page().execute_async(read, Vec::new()).await;
    let copied: String = copied.unwrap().convert().unwrap();
    let shown = visitor.find("#panel-curl code").await.text().await.unwrap();
    assert_eq!(copied.trim(), shown.trim());
    let answer: Value = serde_json::from_str(&typed(&copied).await).unwrap();
    let result = &answer["result"];
    assert!(
        result["task"].is_object() || result["message"].is_object(),
        "{answer}"
    );
    visitor.finish("").await;
}

/// A domain is registered with the form, and its page leads to the review that its card waits for.
async fn a_domain_is_registered(with_script: bool) {
    let setup = RegistrySetup::with_default_config();
    let authority = Authority::new("the tests' own");
    let trusted = setup.scratch_folder().join("authority.pem");
    std::fs::write(&trusted, authority.pem()).unwrap();
    let served = setup
        .with_config_lines(&format!(
            "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_ports = \"any\"\nextra_ca = [{trusted:?}]"
        ))
        .start()
        .await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo <b>", "repeat")));
    // A domain is fetched over TLS alone.
    let identity = authority.identity("127.0.0.1");
    let front = TlsFront::bind(([127, 0, 0, 1], 0).into(), identity, &origin).await;
    let front = front.unwrap();
    let domain = front.url("").replace("https://", "");
    let visitor = PageVisitor::open(&served.url, with_script).await;
    visitor.visit("/register").await;
    if with_script {
        visitor.type_into("#target", "agents example").await;
        visitor.wait_for_texts(&["This contains a space."]).await;
        visitor
            .type_into("#target", &format!("{domain}/agents"))
            .await;
        visitor.wait_for_texts(&["This has a path"]).await;
        visitor.assert_fits_screens().await;
    }
    // The response waits some seconds for the first crawl; sending the form again registers nothing twice.
    let waiting = poll_until_deadline(async || {
        visitor.visit("/register").await;
        visitor.type_into("#target", &domain).await;
        visitor.type_into("#token", ADMIN_TOKEN).await;
        visitor.click("#register button").await;
        visitor.wait_for_texts(&["Where it stands"]).await;
        let text = visitor.visible_text().await;
        let told = [
            "Its agent is waiting for review",
            "Places where nothing is published",
        ];
        told.iter().all(|told| text.contains(told)).then_some(text)
    });
    let Some(text) = waiting.await else {
        panic!("it waits for no review:\n{}", visitor.visible_text().await);
    };
    for told in [
        "Registered",
        "Card fetched",
        "next",
        "Domain proved",
        &domain,
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(
        !text.contains("ai-catalog.json"),
        "what is absent is folded: {text}"
    );
    visitor.click(".absent > summary").await;
    visitor.wait_for_texts(&["ai-catalog.json"]).await;
    if with_script {
        visitor.assert_fits_screens().await;
    }
    visitor.finish("").await;
    served.stop().await;
}

#[tokio::test]
async fn a_person_registers_a_domain_up_to_its_review() {
    a_domain_is_registered(true).await;
}

#[tokio::test]
async fn a_person_registers_a_domain_up_to_its_review_without_script() {
    a_domain_is_registered(false).await;
}

/// A pasted card is linted; what is not JSON and what is no card says so, and nothing is registered.
async fn a_card_is_linted(with_script: bool) {
    let served = RegistrySetup::new().start().await;
    let visitor = PageVisitor::open(&served.url, with_script).await;
    visitor.visit("/register").await;
    let pasted = "{\"name\": \"Echo\", \"url\": \"http://localhost:9000\"}";
    visitor.type_into("#card", pasted).await;
    visitor.click("#lint button").await;
    visitor
        .wait_for_texts(&[
            "Read as the card of Echo",
            "endpoint.private",
            "line 1, column",
        ])
        .await;
    let kept = visitor.find("#card").await.value().await.unwrap();
    assert_eq!(kept.as_deref(), Some(pasted));
    if with_script {
        visitor.assert_fits_screens().await;
        visitor.type_into("#card", "{\"name\": ").await;
        visitor.wait_for_texts(&["This is not JSON"]).await;
    }
    for (text, told) in [("{\"name\": ", "not JSON"), ("[]", "not an agent card")] {
        visitor.type_into("#card", text).await;
        visitor.click("#lint button").await;
        let problem = visitor.find("#lint-problem").await;
        let said = poll_until_deadline(async || {
            let said = visitor.find("#lint-problem").await.text().await.ok()?;
            said.contains(told).then_some(said)
        });
        assert!(said.await.is_some(), "{told}: {:?}", problem.text().await);
    }
    assert_eq!(served.search("").await["total"], 0);
    // The browser rightly logs the two refused requests.
    visitor.finish("/register/lint").await;
    served.stop().await;
}

#[tokio::test]
async fn a_person_lints_a_card() {
    a_card_is_linted(true).await;
}

#[tokio::test]
async fn a_person_lints_a_card_without_script() {
    a_card_is_linted(false).await;
}

/// A publisher registers a card on the page; a curator rejects it, and approves the next one, by the keyboard alone; the
/// publisher reads decision and reason among what waits, and finds the agent listed.
async fn two_people_decide_on_a_card(with_script: bool) {
    let served = RegistrySetup::new()
        .with_config_lines("[governance]\nfour_eyes = true")
        .start()
        .await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Echo", "repeat")));
    let publisher = PageVisitor::open(&served.url, with_script).await;
    let curator = PageVisitor::open(&served.url, with_script).await;
    publisher
        .sign_in(&served.create_token("ann", "publisher").await)
        .await;
    curator
        .sign_in(&served.create_token("ben", "curator").await)
        .await;

    publisher.visit("/register").await;
    publisher.type_into("#target", &origin.url(CARD)).await;
    publisher.click("#register button").await;
    publisher
        .wait_for_texts(&[
            "Where it stands",
            "Its agent is waiting for review",
            "To the review",
        ])
        .await;
    publisher.click("#steps a[href^='/reviews/']").await;
    publisher.wait_for_texts(&["Review of Echo", "open"]).await;
    assert!(
        !publisher.visible_text().await.contains("Approve"),
        "its own"
    );

    curator.visit("/waiting").await;
    curator.wait_for_texts(&["Review", "Echo"]).await;
    curator.visit("/reviews").await;
    curator.wait_for_texts(&["Echo"]).await;
    curator.tab_to("pick-").await;
    curator.type_keys(" ").await;
    curator.tab_to("reason").await;
    curator.type_keys("Its examples say nothing.").await;
    curator.type_keys(Key::Tab + "").await;
    curator.type_keys(Key::Tab + "").await;
    curator.type_keys(Key::Enter + "").await;
    curator.wait_for_texts(&["Results", "Echo: rejected"]).await;

    publisher.visit("/waiting").await;
    publisher
        .wait_for_texts(&["Echo: Rejected by ben", "Its examples say nothing."])
        .await;
    publisher
        .visit(&format!("/domains/{}", origin.address()))
        .await;
    publisher.wait_for_texts(&["was rejected"]).await;

    origin.set_reply(CARD, OriginReply::json(changed_card("Echo")));
    let recrawl = format!("/v1/domains/{}:recrawl", origin.address());
    served
        .post_as_admin(&recrawl, &json!({}))
        .await
        .expect_status(202);
    served
        .wait_for_open_review(|review| review.name == "Echo")
        .await;
    curator.visit("/reviews?choose=all").await;
    curator.wait_for_texts(&["Echo"]).await;
    curator.tab_to("reason").await;
    curator.type_keys("Better.").await;
    curator.type_keys(Key::Tab + "").await;
    curator.type_keys(Key::Enter + "").await;
    curator.wait_for_texts(&["Results", "Echo: approved"]).await;
    publisher.click("a.button[href^='/domains/']").await;
    publisher
        .wait_for_texts(&["1 agent is listed.", "To the agent"])
        .await;
    publisher.click("#steps a[href^='/agents/']").await;
    publisher.find("article.agent").await;
    publisher.finish("").await;
    curator.finish("").await;
    served.stop().await;
}

#[tokio::test]
async fn a_publisher_and_a_curator_decide_on_a_card() {
    two_people_decide_on_a_card(true).await;
}

#[tokio::test]
async fn a_publisher_and_a_curator_decide_on_a_card_without_script() {
    two_people_decide_on_a_card(false).await;
}
