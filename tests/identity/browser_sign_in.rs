//! Signing in with the provider in a real browser, with script and without.

use serde_json::json;

use super::with_corp;
use crate::page_journeys::PageVisitor;
use crate::page_quality::{AXE, LOOKS, axe, pictures};

impl PageVisitor {
    /// Checks the page that is open with axe-core on every screen, and takes its pictures.
    async fn is_sound(&self, name: &str) {
        let axe = axe();
        for (width, height, theme) in LOOKS {
            self.browser.set_color_scheme(theme).await;
            self.browser.emulate_screen_size(width, height).await;
            let page = self.browser.page();
            page.execute(axe.as_str(), Vec::new()).await.unwrap();
            let objections = page.execute_async(AXE, Vec::new()).await.unwrap();
            assert_eq!(*objections.json(), json!([]), "{name}");
            let file = pictures().join(format!("{name}-{width}-{theme}.png"));
            self.browser.capture_full_page(&file).await;
        }
    }
}

async fn somebody_signs_in(with_script: bool) {
    let (corp, registry) = with_corp().await;
    let visitor = PageVisitor::open(&registry.url, with_script).await;
    visitor.visit("/waiting").await;
    visitor
        .wait_for_texts(&["Sign in with corp", "Token"])
        .await;
    if with_script {
        visitor.assert_fits_screens().await;
        visitor.is_sound("sign-in-provider").await;
    }
    visitor.click("#sign-in-corp button").await;
    visitor.type_into("input[name=login]", "ann").await;
    visitor.type_into("input[name=password]", "whatever").await;
    visitor.click("button[type=submit]").await;
    // Back where it began.
    visitor.wait_for_texts(&["Waiting for you"]).await;
    let name = visitor.find("nav .who").await.prop("textContent").await;
    assert_eq!(name.unwrap().as_deref(), Some("ann@corp"));
    visitor.visit("/account").await;
    visitor
        .wait_for_texts(&[
            "ann@corp",
            "reader, curator",
            "staff",
            &format!("from {}", corp.issuer),
            "Signed in with corp",
            "this one",
        ])
        .await;
    if with_script {
        visitor.assert_fits_screens().await;
        visitor.is_sound("account-provider").await;
    }
    visitor.click("#sign-out button").await;
    visitor.find("nav a[href='/sign-in']").await;
    visitor.visit("/account").await;
    visitor.wait_for_texts(&["Sign in with corp"]).await;
    // Who is still known to the provider is asked for nothing there.
    visitor.click("#sign-in-corp button").await;
    visitor.wait_for_texts(&["Who you are", "ann@corp"]).await;
    // The provider's own page wants a font and an icon that nobody has here.
    let complaints = visitor.browser.take_log_messages().await;
    let ours = complaints
        .iter()
        .filter(|line| line.contains(&registry.url));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&String>::new());
    visitor.finish("").await;
    registry.stop().await;
}

#[tokio::test]
async fn a_person_signs_in_with_the_provider() {
    somebody_signs_in(true).await;
}

#[tokio::test]
async fn a_person_signs_in_with_the_provider_without_script() {
    somebody_signs_in(false).await;
}
