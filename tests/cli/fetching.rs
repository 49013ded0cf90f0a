//! Fetching by `register`, `lint` and `send`: cards at well-known paths, at base URLs and in catalogs.

use a2a_registry_api::{DomainView, Lookup};
use a2a_registry_domain::coverage::Coverage;
use serde_json::json;

use super::client::assert_printed;
use crate::policy_pages::PageSession;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{assert_exit, join_lines};
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

const CARD: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

/// Object stores answer 403 for a file that is missing.
#[tokio::test]
async fn the_older_path_is_found_behind_a_403() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::status(403));
    origin.set_reply(OLD, OriginReply::json(card_json("Bucket", "store")));
    let said = registry
        .run_admin_command(&["register", &origin.url("")])
        .await;
    assert_printed(&said, "found Bucket");
}

/// Whoever registers the older path by itself knows where the card is, and the newer one is not asked.
#[tokio::test]
async fn the_older_path_registered_by_itself_is_fetched_itself() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::status(503));
    origin.set_reply(OLD, OriginReply::json(card_json("Elder", "remember")));
    let said = registry
        .run_admin_command(&["register", &origin.url(OLD)])
        .await;
    assert_printed(&said, "found Elder");
    assert!(origin.requests_to(CARD).is_empty());
}

/// What is wrong with the card is said wherever the domain is shown, and not only that the other path has none.
#[tokio::test]
async fn a_broken_card_is_reported_although_the_other_path_has_none() {
    let registry = RegistrySetup::new().start().await;
    let admin = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let utf16: Vec<u8> = card_json("Wide", "w")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let trailing = card_json("Comma", "c").replacen('{', "{\n\"x\": 1,,", 1);
    for (reply, reason) in [
        (OriginReply::json(trailing), "line 2"),
        (OriginReply::json("[]"), "something that is not a card"),
        (OriginReply::json("{}"), "something that is not a card"),
        (OriginReply::html("<p>Shop</p>"), "an HTML page"),
        (OriginReply::json(utf16), "something that is not a card"),
        (
            OriginReply::json(b"{\"name\": \"Caf\xe9\"}".to_vec()),
            "something that is not a card",
        ),
        (
            OriginReply::json(b"\x1f\x8b\x08\x00\x00\x00".to_vec()),
            "something that is not a card",
        ),
    ] {
        let origin = Origin::start();
        origin.set_reply(CARD, reply);
        let said = registry
            .run_admin_command(&["register", &origin.url("")])
            .await;
        assert_exit(&said, 1, "");
        let host = origin.address().to_string();
        let shown = registry.run_admin_command(&["domain", "show", &host]).await;
        let page = admin.get(&format!("/domains/{host}")).await.1;
        let view: DomainView = registry.read_as_admin(&format!("/v1/domains/{host}")).await;
        let last = view.sources[0].last_attempt.clone().unwrap();
        assert_eq!(last.outcome, "not_a_card");
        for told in [
            &join_lines(&said.stdout),
            &join_lines(&shown.stdout),
            &page,
            &last.detail,
        ] {
            assert!(told.contains(reason), "{reason}: {told}");
            assert!(told.contains(&origin.url(CARD)), "{told}");
            assert!(told.contains(&origin.url(OLD)), "{told}");
            assert!(told.contains("404"), "{told}");
        }
    }
}

/// A base URL, as every SDK takes it, leads to the card under it by every door.
#[tokio::test]
async fn a_base_url_leads_to_the_card_under_it() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let path = format!("/agents/one{CARD}");
    let (base, card_url) = (origin.url("/agents/one"), origin.url(&path));
    origin.set_reply("/agents/one", OriginReply::html("<p>One</p>"));
    origin.set_reply(&path, OriginReply::json(card_json("One", "first")));
    assert_printed(
        &registry.run_admin_command(&["register", &base]).await,
        "found One",
    );
    let host = origin.address().to_string();
    let view: DomainView = registry.read_as_admin(&format!("/v1/domains/{host}")).await;
    assert_eq!(view.sources.len(), 1, "not the well-known path of the host");
    assert_eq!(view.sources[0].kind.as_str(), "url");
    assert_eq!(view.sources[0].card_url.as_ref(), Some(&card_url));
    assert_printed(
        &registry.run_admin_command(&["domain", "show", &host]).await,
        &card_url,
    );
    let id = registry.wait_for_hit("q=first").await.summary.id;
    for name in [&base, &card_url, &host] {
        assert_printed(&registry.run_admin_command(&["show", name]).await, "One");
    }
    for name in [&base, &card_url, &host, &origin.url(""), &origin.url("/")] {
        let found: Lookup = registry
            .read_as_admin(&format!("/v1/agents:lookup?url={name}"))
            .await;
        assert_eq!(found.agents[0].summary.id, id, "{name}");
    }

    let before = origin.requests_to(&path).len();
    assert_exit(&registry.run_admin_command(&["lint", &base]).await, 0, "");
    // The answer of the host itself is no card, and says more than that nothing is under it.
    let none = registry
        .run_admin_command(&["lint", &origin.url("/agents")])
        .await;
    assert_exit(&none, 2, "404");
    let unused = ["send", "--direct", &base, "hi", "--binding", "GRPC"];
    assert_exit(&registry.run_admin_command(&unused).await, 2, "GRPC");
    assert_eq!(origin.requests_to(&path).len(), before + 2);
}

/// A catalog that is registered by its URL brings its agents, and what of it was skipped is named with the reason.
#[tokio::test]
async fn a_catalog_is_registered_by_its_url() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let entry = |name: &str, url: &str| json!({"identifier": name, "mediaType": "application/a2a-agent-card+json", "url": url});
    let catalog = json!({"entries": [
        entry("urn:air:a.example:agents:near", "near.json"),
        entry("urn:air:a.example:agents:far", "https://elsewhere.example/far.json"),
        {"identifier": "urn:air:a.example:tools:clock", "type": "application/mcp-server-card+json", "url": "clock.json"},
    ]});
    origin.set_reply("/lists/all.json", OriginReply::json(catalog.to_string()));
    origin.set_reply(
        "/lists/near.json",
        OriginReply::json(card_json("Near", "near")),
    );
    let said = registry
        .run_admin_command(&["register", &origin.url("/lists/all.json")])
        .await;
    assert_printed(&said, "found Near");
    let host = origin.address().to_string();
    let shown = registry.run_admin_command(&["domain", "show", &host]).await;
    let view: DomainView = registry.read_as_admin(&format!("/v1/domains/{host}")).await;
    let near = origin.url("/lists/near.json");
    let near = view.sources.iter().find(|source| source.url == near);
    assert_eq!(near.unwrap().coverage, Coverage::Nomination);
    for told in [
        "far.json is not on the scheme, host and port",
        "urn:air:a.example:tools:clock is not an A2A agent card",
    ] {
        assert_printed(&said, told);
        assert_printed(&shown, told);
    }
}
