//! Two people in two browsers: one breaks the glass on the page of a review, without script, and the other confirms it.

use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Value, json};
use thirtyfour::extensions::query::ElementQueryable as _;
use thirtyfour::{By, WebElement};

use crate::page_quality::{AXE, axe, pictures};
use crate::support::DEADLINE;
use crate::support::browser::Browser;
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::setup::{ADMIN, Setup};
use crate::support::waiting::poll_until_deadline;

/// Pause between two polls of a browser, which sends no events.
const POLL_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A person who is signed in.
pub(crate) struct Person {
    url: String,
    pub(crate) browser: Browser,
}

impl Person {
    pub(crate) async fn signed_in(url: &str, token: &str, with_script: bool) -> Self {
        let browser = Browser::open().await;
        if !with_script {
            browser.without_script().await;
        }
        let person = Self {
            url: url.to_owned(),
            browser,
        };
        person.visit("/sign-in").await;
        let field = person.find("#token").await;
        field.send_keys(token).await.unwrap();
        person.click("#sign-in button").await;
        person.find("#sessions, nav a[href='/account']").await;
        person
    }

    pub(crate) async fn visit(&self, path: &str) {
        let url = format!("{}{path}", self.url);
        self.browser.page().goto(url).await.unwrap();
    }

    pub(crate) async fn find(&self, selector: &str) -> WebElement {
        let found = self.browser.page().query(By::Css(selector));
        let found = found.wait(DEADLINE, POLL_PAUSE).first().await;
        match found {
            Ok(found) => found,
            Err(error) => panic!("{selector}: {error}\n{}", self.text().await),
        }
    }

    pub(crate) async fn click(&self, selector: &str) {
        self.find(selector).await.click().await.unwrap();
    }

    async fn text(&self) -> String {
        match self.browser.page().find(By::Css("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    /// Waits until all of these words are visible.
    pub(crate) async fn sees(&self, words: &[&str]) {
        let seen = poll_until_deadline(async || {
            let text = self.text().await;
            words.iter().all(|word| text.contains(word)).then_some(())
        });
        assert!(seen.await.is_some(), "{words:?}:\n{}", self.text().await);
    }

    /// Checks the page that is open with axe, on a phone and on a desktop, in light and dark, and takes its pictures.
    async fn is_sound(&self, name: &str) {
        for theme in ["light", "dark"] {
            self.browser.theme(theme).await;
            for (width, height) in [(390, 844), (1280, 800)] {
                self.browser.resize(width, height).await;
                let page = self.browser.page();
                let needed =
                    page.execute("return document.documentElement.scrollWidth", Vec::new());
                let needed: u32 = needed.await.unwrap().convert().unwrap();
                assert!(needed <= width, "{name}: {needed} of {width} pixels");
                page.execute(axe(), Vec::new()).await.unwrap();
                let found = page.execute_async(AXE, Vec::new()).await.unwrap();
                assert_eq!(*found.json(), json!([]), "{name} at {width}, {theme}");
                let file: PathBuf = pictures().join(format!("{name}-{width}-{theme}.png"));
                self.browser.picture(&file).await;
            }
        }
        self.browser.resize(1280, 900).await;
    }
}

#[tokio::test]
async fn one_person_breaks_the_glass_and_another_confirms_it() {
    let served = Setup::new()
        .configure("[governance]\nfour_eyes = true")
        .start()
        .await;
    let ann = served.token("ann", "curator").await;
    let origin = Origin::start();
    origin.answer("/card.json", OriginReply::json(card("Echo", "repeat")));
    served.register(&origin.url("/card.json")).await;
    let review = served.open_review(|_| true).await;

    // The admin has registered the agent: four eyes must decide, and the page offers the glass.
    let admin = Person::signed_in(&served.url, ADMIN, false).await;
    admin.visit(&format!("/reviews/{}", review.id)).await;
    admin.sees(&["Under four-eyes", "Break the glass"]).await;
    admin.click("#break > summary").await;
    let reason = admin.find("#break-reason").await;
    reason.send_keys("the old one leaks <b>").await.unwrap();
    admin.click("#break button").await;
    admin
        .sees(&[
            "Break-glass",
            "admin has approved this alone",
            "the old one leaks <b>",
        ])
        .await;
    admin.visit(&format!("/agents/{}/", review.agent)).await;
    admin
        .sees(&["Break-glass", "admin has approved this card alone"])
        .await;

    // The other one finds it in the queue, sees who and why, and confirms it.
    let other = Person::signed_in(&served.url, &ann, true).await;
    other.visit(&format!("/agents/{}/", review.agent)).await;
    other.is_sound("agent-break-glass").await;
    other.visit("/reviews?kind=break_glass").await;
    other.sees(&["break-glass"]).await;
    let path = served.request(Method::GET, "/v1/reviews?kind=break_glass&state=open");
    let list: Value = path
        .bearer_auth(&ann)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let confirmation = list["reviews"][0]["id"].as_str().unwrap().to_owned();
    other.visit(&format!("/reviews/{confirmation}")).await;
    other.sees(&["Without a confirmation by others"]).await;
    other.is_sound("review-break-glass").await;
    let reason = other.find("#reason").await;
    reason.send_keys("it is what we wanted").await.unwrap();
    other.click("#decide button[value='approve']").await;
    other.sees(&["approved", "it is what we wanted"]).await;
    other.visit(&format!("/agents/{}/", review.agent)).await;
    other.sees(&["Echo"]).await;
    assert!(!other.text().await.contains("Break-glass"));
    assert!(other.browser.complaints().await.is_empty());
    admin.browser.close().await;
    other.browser.close().await;
    served.stop().await;
}
