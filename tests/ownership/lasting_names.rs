//! Lasting names: names that agents keep for ever, once their domain is proved (docs/publish/prove.md#lasting-names).

use std::collections::BTreeMap;

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::{Registration, Vouch};
use a2a_registry_core::agents::lifecycle_actions::agent_retire;
use a2a_registry_core::domains::actions::vouch_for_domain;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_store::entity::source;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{
    CatalogExtent, InProcessRegistry, OriginResponse, card_bytes, source_card_url,
};

const TRAVEL: &str = "urn:air:travel.agents-test.com:agents:travel";

/// The URNs of the domain's agents, by the URLs of their cards.
async fn urns(registry: &InProcessRegistry) -> BTreeMap<String, Option<String>> {
    let agents = registry.agents().await;
    agents
        .into_iter()
        .map(|agent| (agent.slot, agent.urn))
        .collect()
}

async fn register_card(setup: &OwnershipSetup, owner: &Caller, path: &str) -> String {
    let url = format!("https://{DOMAIN}{path}");
    let what = Registration {
        card_url: Some(url.clone()),
        ..Registration::default()
    };
    register_domain(&setup.registry.app, owner, &what)
        .await
        .unwrap();
    url
}

both_databases!(
    a_proof_names_agents_for_good,
    no_two_agents_have_one_name,
    a_catalog_names_its_agents
);

/// A proof names the agents of a domain; the name stays when the proof or the card is gone, and leads to the agent.
async fn a_proof_names_agents_for_good(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    let registry = &setup.registry;
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    let vouch = Vouch {
        reason: "a partner".into(),
        ..Vouch::default()
    };
    vouch_for_domain(&registry.app, &registry.admin, DOMAIN, &vouch)
        .await
        .unwrap();
    assert_eq!(
        registry.agent(DOMAIN).await.urn,
        None,
        "a voucher gives no name"
    );

    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let named = registry.agent(DOMAIN).await;
    assert_eq!(named.urn.as_deref(), Some(TRAVEL));
    registry.assert_index_matches_database().await;
    let shown = agent_show_checked(&registry.app, &Caller::default(), TRAVEL)
        .await
        .unwrap();
    assert_eq!(
        (shown.hit.summary.id, shown.hit.summary.urn.as_deref()),
        (named.id, Some(TRAVEL))
    );

    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Voyages", "Books flights")),
        )
        .await;
    assert_eq!(registry.agent(DOMAIN).await.urn.as_deref(), Some(TRAVEL));
    setup.remove(STANDING);
    for _ in 0..5 {
        setup.next_day().await;
    }
    assert_eq!(registry.agent(DOMAIN).await.urn.as_deref(), Some(TRAVEL));
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    assert_eq!(registry.agent(DOMAIN).await.urn.as_deref(), Some(TRAVEL));
}

/// Agents with the same name are numbered, also those added after the proof; a retired agent keeps its name.
async fn no_two_agents_have_one_name(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, first) = setup.prove_with_agent().await;
    let registry = &setup.registry;
    let a = register_card(&setup, &owner, "/a.json").await;
    let b = register_card(&setup, &owner, "/b.json").await;
    // Both are new in one visit.
    let answer = |source: &source::Model| match source_card_url(source) {
        url if url == a => OriginResponse::Card(card_bytes("Travel", "Books trains")),
        url if url == b => OriginResponse::Card(card_bytes("TRAVEL!", "Books ships")),
        _ => OriginResponse::Card(card_bytes("Travel", "Books flights")),
    };
    registry.crawl_domain_with(DOMAIN, answer).await;
    let numbered = |number: u32| Some(format!("{TRAVEL}-{number}"));
    let named = urns(registry).await;
    assert_eq!(named["well-known"].as_deref(), Some(TRAVEL));
    assert_eq!((&named[&a], &named[&b]), (&numbered(2), &numbered(3)));

    let why = a2a_registry_api::Act {
        reason: "replaced".into(),
        hold: None,
    };
    let ended = registry
        .agents()
        .await
        .into_iter()
        .find(|agent| agent.slot == a)
        .unwrap();
    agent_retire(&registry.app, &owner, &ended.id.to_string(), &why)
        .await
        .unwrap();
    let again = register_card(&setup, &owner, "/a.json").await;
    registry.crawl_domain_with(DOMAIN, answer).await;
    let living = registry.agents().await;
    let anew = living
        .iter()
        .find(|agent| agent.slot == again && agent.id != ended.id)
        .unwrap();
    assert_eq!(anew.urn, numbered(4));
    assert_ne!(anew.id, first);
    registry.assert_index_matches_database().await;
}

/// An identifier in the domain's own catalog is the agent's name if it names this publisher.
async fn a_catalog_names_its_agents(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    let registry = &setup.registry;
    let own = format!("urn:air:{DOMAIN}:fleet:Own_1");
    let entries = [
        (own.clone(), format!("https://{DOMAIN}/own.json")),
        (
            "urn:air:elsewhere.agents-test.com:x".into(),
            format!("https://{DOMAIN}/other.json"),
        ),
    ];
    let answer = |source: &source::Model| match source.kind.as_str() {
        "ard" => OriginResponse::Catalog(entries.to_vec(), CatalogExtent::Complete),
        "ai_catalog" | "well_known" => OriginResponse::Failure(NotFound),
        _ => OriginResponse::Card(card_bytes(&format!("At {}", source.url), "Books flights")),
    };
    registry.crawl_domain_with(DOMAIN, answer).await;
    registry.crawl_domain_with(DOMAIN, answer).await;
    assert!(
        urns(registry).await.values().all(Option::is_none),
        "nothing is proved yet"
    );
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let named = urns(registry).await;
    assert_eq!(
        named[&format!("entry {own}")].as_deref(),
        Some(own.as_str())
    );
    let other = named["entry urn:air:elsewhere.agents-test.com:x"]
        .as_deref()
        .unwrap();
    let minted = format!("urn:air:{DOMAIN}:agents:at-https-travel-agents-test-com-other-json");
    assert_eq!(other, minted);
    assert_eq!(named.len(), 2);
}
