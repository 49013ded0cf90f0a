//! Pending sign-in attempts: several of one browser, and a great many of others.

use futures::StreamExt as _;
use futures::stream;
use reqwest::header::{COOKIE, LOCATION};
use reqwest::redirect::Policy;
use serde_json::{Value, json};

use super::provider_callbacks::CookieBrowser;
use super::{STAFF, with_corp};
use crate::support::identity_provider::{IdentityProvider, with_form};
use crate::support::setup::RegistrySetup;

/// How many cookies with attempts the browser keeps.
fn count_attempt_cookies(browser: &CookieBrowser) -> usize {
    let names = browser.cookies.keys();
    names
        .filter(|name| name.starts_with("__Host-a2a_attempt_"))
        .count()
}

#[tokio::test]
async fn two_tabs_of_a_browser_sign_in_each_by_its_own_attempt() {
    let (_corp, registry) = with_corp().await;
    let mut ann = CookieBrowser::new();
    let one = ann.departure(&registry.url, "/register").await;
    let two = ann.departure(&registry.url, "/waiting").await;
    assert_eq!(count_attempt_cookies(&ann), 2);
    // The one begun first is answered last.
    for (departure, next) in [(&two, "/waiting"), (&one, "/register")] {
        let back = ann.login(departure, "ann").await;
        let answer = ann.get(&back).await;
        assert_eq!(answer.status(), 303);
        assert_eq!(answer.headers()[LOCATION], next);
        assert_eq!(ann.signed_in_as(&registry.url).await.unwrap(), "ann@corp");
    }
    assert_eq!(count_attempt_cookies(&ann), 0);
    let list = registry
        .get_as_admin("/v1/sessions")
        .await
        .expect_status(200);
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "{list}");
    registry.stop().await;
}

#[tokio::test]
async fn of_six_attempts_of_a_browser_the_oldest_makes_way() {
    let (_corp, registry) = with_corp().await;
    let mut ann = CookieBrowser::new();
    let oldest = ann.departure(&registry.url, "/register").await;
    let second = ann.departure(&registry.url, "/register").await;
    for _ in 0..4 {
        ann.departure(&registry.url, "/register").await;
    }
    assert_eq!(count_attempt_cookies(&ann), 5);
    let back = ann.login(&oldest, "ann").await;
    assert_eq!(ann.get(&back).await.status(), 401);
    let back = ann.login(&second, "ann").await;
    assert_eq!(ann.get(&back).await.status(), 303);
    registry.stop().await;
}

/// The sign-ins that somebody with many addresses begins push nobody else's out.
#[tokio::test]
async fn ten_thousand_attempts_from_many_addresses_leave_a_waiting_one_alone() {
    const FLOOD: u32 = 10_001;
    let setup = RegistrySetup::new();
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    corp.set_parts(json!({"people": {"ann": {"preferred_username": "ann", "groups": ["staff"]}}}))
        .await;
    let setup = setup
        .allow_loopback_identity()
        .add_identity_provider("corp", &corp, STAFF)
        .with_config_lines("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]");
    let registry = setup.start_without_proxy().await;
    corp.allow_callback_of(&registry.url, "corp").await;
    let mut ann = CookieBrowser::new();
    let departure = ann.departure(&registry.url, "/register").await;
    let back = ann.login(&departure, "ann").await;

    crate::support::install_tls();
    let client = reqwest::Client::builder().redirect(Policy::none()).build();
    let client = client.unwrap();
    let mut eve = CookieBrowser::new();
    let page = eve.get(&format!("{}/sign-in", registry.url)).await;
    let page = page.text().await.unwrap();
    let token = page.split("name=\"form_token\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    let cookie = format!("__Host-a2a_form={}", eve.cookies["__Host-a2a_form"]);
    let begin = async |number: u32| {
        let address = std::net::Ipv4Addr::from(0x0b00_0000 + number);
        let fields = [("form_token", token), ("next", "/")];
        let request = client
            .post(format!("{}/sign-in/corp", registry.url))
            .header("x-forwarded-for", address.to_string())
            .header(COOKIE, &cookie);
        with_form(request, &fields).send().await.unwrap().status()
    };
    let begun = stream::iter(0..FLOOD).map(begin).buffer_unordered(32);
    let begun: Vec<_> = begun
        .filter(|status| std::future::ready(*status == 200))
        .collect()
        .await;
    assert_eq!(begun.len(), FLOOD as usize);

    assert_eq!(ann.get(&back).await.status(), 303);
    assert_eq!(ann.signed_in_as(&registry.url).await.unwrap(), "ann@corp");
    // Where she comes from is in the event of her session.
    let events = registry
        .get_as_admin("/v1/events?page_size=100")
        .await
        .expect_status(200);
    let all = events["events"].as_array().unwrap();
    let begun = all.iter().find(|event| event["kind"] == "session.begun");
    assert_eq!(begun.unwrap()["data"]["address"], Value::from("127.0.0.1"));
    registry.stop().await;
}
