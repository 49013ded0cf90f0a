//! Targets that must not or cannot be fetched, and origins that do not serve a card.

use serde_json::{Value, json};

use super::{ApprovedAgent, CARD, card};
use crate::support::api::RegistryClient;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::setup::RegistrySetup;

/// Waits until the domain's first source was fetched, and returns the domain.
async fn fetched_domain(api: &RegistryClient, domain: &str) -> Value {
    let path = format!("/v1/domains/{domain}");
    eventually("the source was fetched", || async {
        let domain = api.get_as_admin(&path).await.expect_status(200);
        (!domain["sources"][0]["last_attempt"].is_null()).then_some(domain)
    })
    .await
}

/// The last attempt: of the two at the well-known paths, the one at the first, which says why there is no card.
fn attempt_that_tells_why(domain: &Value) -> &Value {
    let source = &domain["sources"][0];
    let attempt = &source["last_attempt"];
    assert!(attempt["url"].as_str().unwrap().ends_with(CARD), "{source}");
    assert_eq!(source["attempts"][0]["outcome"], "not_found", "{source}");
    attempt
}

/// Targets that can be refused without using the network are refused at once, and leave no data behind.
#[tokio::test]
async fn private_addresses_are_refused() {
    let registry = RegistrySetup::with_default_config().start().await;
    let origin = Origin::start();
    let loopback = origin.url(CARD);
    for (member, target) in [
        ("card_url", loopback.as_str()),
        ("card_url", "https://10.0.0.1/card.json"),
        ("card_url", "https://[::1]/card.json"),
        ("card_url", "https://[::ffff:127.0.0.1]/card.json"),
        ("card_url", "https://2130706433/card.json"),
        ("card_url", "https://0x7f.1/card.json"),
        ("card_url", "https://169.254.169.254/latest/meta-data"),
        ("card_url", "https://localhost/card.json"),
        (
            "card_url",
            "https://user:secret@agents.example.com/card.json",
        ),
        ("card_url", "https://agents.example.com:22/card.json"),
        ("card_url", "file:///etc/passwd"),
        ("card_url", "gopher://agents.example.com/"),
        ("domain", "127.0.0.1"),
        ("domain", "router.local"),
        ("domain", "com"),
    ] {
        let answer = registry
            .api
            .post_as_admin("/v1/domains", &json!({member: target}))
            .await;
        let problem = answer.expect_problem(422, "target-refused");
        let pointer = format!("/{member}");
        assert_eq!(
            problem["errors"][0]["pointer"],
            pointer.as_str(),
            "{target}"
        );
        assert!(!answer.text().contains("secret"), "{problem}");
    }
    let domains = registry
        .api
        .get_as_admin("/v1/domains")
        .await
        .expect_status(200);
    assert_eq!(domains["domains"], json!([]));
    assert!(origin.requests_to(CARD).is_empty());
    registry.stop().await;
}

/// A permitted name that resolves to a private address is a failed attempt.
#[tokio::test]
async fn a_name_with_a_private_address_is_refused() {
    let origin = Origin::start();
    let lines =
        "[crawler]\nallow_names = [\"localhost\"]\nallow_http = true\nallow_ports = \"any\"\n";
    let registry = RegistrySetup::with_default_config()
        .with_config_lines(lines)
        .start()
        .await;
    let url = format!("http://localhost:{}{CARD}", origin.address().port());
    let domain = registry.api.register(&url).await.domain;
    let domain = fetched_domain(&registry.api, &domain).await;
    let attempt = &domain["sources"][0]["last_attempt"];
    assert_eq!(attempt["outcome"], "refused", "{attempt}");
    assert!(attempt["detail"].as_str().unwrap().len() > 10, "{attempt}");
    assert!(origin.requests_to(CARD).is_empty());
    registry.stop().await;
}

/// If no server listens, the attempt reports that, and the domain stays registered until one does.
#[tokio::test]
async fn an_unreachable_host_is_reported() {
    let fixture = ApprovedAgent::new().await;
    let gone = Origin::start();
    let (port, url) = (gone.address().port(), gone.url(CARD));
    drop(gone);
    let domain = fixture.api().register(&url).await.domain;
    let view = fetched_domain(fixture.api(), &domain).await;
    let attempt = &view["sources"][0]["last_attempt"];
    assert_eq!(attempt["outcome"], "unreachable", "{attempt}");
    assert!(attempt["detail"].as_str().unwrap().len() > 10, "{attempt}");
    assert_eq!(attempt["status"], Value::Null);
    assert_eq!(view["agents"], json!([]));
    assert_eq!(fixture.domains().await, 2);
    fixture.is_intact().await;

    let back = Origin::start_on(port);
    back.set_reply(CARD, OriginReply::json(card("Late")));
    let view = fixture.api().recrawl_and_wait(&domain).await;
    assert_eq!(view["agents"].as_array().unwrap().len(), 1);
}

/// A page in place of a card is reported by the attempt, and an existing agent keeps its card.
#[tokio::test]
async fn a_page_instead_of_a_card_is_reported() {
    let fixture = ApprovedAgent::new().await;
    let page = "<!doctype html><title>Welcome</title><h1>It works</h1>";
    let other = Origin::start();
    other.set_reply(CARD, OriginReply::html(page));
    let domain = fixture.api().register(&other.url(CARD)).await.domain;
    let view = fetched_domain(fixture.api(), &domain).await;
    let attempt = attempt_that_tells_why(&view);
    assert_eq!(attempt["outcome"], "not_a_card", "{attempt}");
    assert!(attempt["detail"].as_str().unwrap().len() > 10, "{attempt}");
    assert_eq!(view["agents"], json!([]));

    // Likewise a page with the media type of JSON, and JSON that is no card.
    for reply in [
        OriginReply::html(page),
        OriginReply::json(page.to_owned()),
        OriginReply::json("[]".to_owned()),
        OriginReply::json("{\"hello\": \"world\"}".to_owned()),
    ] {
        fixture.origin.set_reply(CARD, reply);
        let view = fixture.api().recrawl_and_wait(&fixture.domain).await;
        let attempt = attempt_that_tells_why(&view);
        assert_eq!(attempt["outcome"], "not_a_card", "{attempt}");
    }
    let agent = format!("/v1/agents/{}", fixture.agent);
    let agent = fixture.api().get(&agent).await.expect_status(200);
    assert_eq!(agent["liveness"]["state"], "stale");
    eventually("a search shows the agent as stale", || async {
        let found = fixture.api().search("liveness=stale").await;
        (found["total"] == 1).then_some(())
    })
    .await;
    fixture.is_intact().await;
}
