//! Signatures of incoming cards: verified with the keys fetched along with them.

use a2a_crawler::ReferencedKeySet;
use a2a_registry_api::Vouch;
use a2a_registry_core::agents::views::agent_findings;
use a2a_registry_core::crawl::derivation::rederive_version_page;
use a2a_registry_core::domains::actions::vouch_for_domain;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::signer::CardSigner;

const DOMAIN: &str = "signing.agents-test.com";
const JKU: &str = "https://signing.agents-test.com/keys.json";

fn away() -> ReferencedKeySet {
    ReferencedKeySet {
        url: JKU.into(),
        is_foreign: false,
        result: Err("the server answered 503".into()),
    }
}

async fn signature_state(registry: &InProcessRegistry, agent: uuid::Uuid) -> String {
    let view = agent_show_checked(&registry.app, &registry.admin, &agent.to_string())
        .await
        .unwrap();
    view.hit.summary.trust.signature.to_string()
}

async fn rules(registry: &InProcessRegistry, agent: uuid::Uuid) -> Vec<String> {
    let list = agent_findings(
        &registry.app,
        &registry.admin,
        &agent.to_string(),
        &Default::default(),
    )
    .await
    .unwrap();
    list.findings
        .into_iter()
        .map(|finding| finding.rule)
        .collect()
}

both_databases!(
    a_signature_with_its_key_is_untrusted,
    temporarily_unreachable_keys_revoke_no_verdict,
    signing_again_is_no_change,
    losing_a_signature_is_critical,
    another_key_with_the_same_identifier_is_noticed,
    a_new_key_with_a_new_card_is_critical,
    keys_on_another_host_need_a_person
);

/// A key on the card's own host verifies, but is not bound to the domain while the domain is unproved.
async fn a_signature_with_its_key_is_untrusted(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    let bytes = signer.sign(&card_bytes("Signed", "Vouched for"));
    registry.register_domain(DOMAIN).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(bytes.clone(), signer.fetched_key_set()),
        )
        .await;
    let agent = registry.agent(DOMAIN).await;
    registry.approve_open_review(agent.id).await;
    assert_eq!(signature_state(&registry, agent.id).await, "untrusted");
    assert_eq!(registry.public_card_bytes(agent.id).await, Some(bytes));
    registry.assert_index_matches_database().await;
}

/// Keys that are unreachable for a while cause no version and no review, and revoke no verdict; once they are reachable
/// the verdict follows, and is reported as an event.
async fn temporarily_unreachable_keys_revoke_no_verdict(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    let bytes = signer.sign(&card_bytes("Signed", "Vouched for"));
    registry.register_domain(DOMAIN).await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::SignedCard(bytes.clone(), away()))
        .await;
    let agent = registry.agent(DOMAIN).await;
    registry.approve_open_review(agent.id).await;
    assert_eq!(signature_state(&registry, agent.id).await, "unknown");
    assert!(
        rules(&registry, agent.id)
            .await
            .contains(&"signature.keys".to_owned())
    );

    for (found, state) in [
        (signer.fetched_key_set(), "untrusted"),
        (away(), "untrusted"),
        (signer.fetched_key_set(), "untrusted"),
    ] {
        registry
            .crawl_domain(DOMAIN, OriginResponse::SignedCard(bytes.clone(), found))
            .await;
        assert_eq!(signature_state(&registry, agent.id).await, state);
        registry.assert_index_matches_database().await;
    }
    assert!(
        !rules(&registry, agent.id)
            .await
            .contains(&"signature.keys".to_owned())
    );
    assert_eq!(registry.versions(agent.id).await.len(), 1);
    assert_eq!(registry.review_states(agent.id).await.len(), 1);
    let events = load_events_after(
        &registry.app,
        &registry.admin,
        &EventFilter::default(),
        &mut 0,
        1000,
    )
    .await
    .unwrap();
    let matching = events.iter().filter(|event| {
        event.kind == EventKind::AgentUpdated && event.data["signature"] == "untrusted"
    });
    assert_eq!(matching.count(), 1);
}

/// A new signature by the same key is the same card; deriving it again keeps its verdict, without a fetch.
async fn signing_again_is_no_change(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    let plain = card_bytes("Signed", "Vouched for");
    registry.register_domain(DOMAIN).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(signer.sign(&plain), signer.fetched_key_set()),
        )
        .await;
    let agent = registry.agent(DOMAIN).await;
    registry.approve_open_review(agent.id).await;
    let again = crate::support::in_process_registry::reorder_members(&signer.sign(&plain));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(again, signer.fetched_key_set()),
        )
        .await;
    assert_eq!(registry.versions(agent.id).await.len(), 1);
    crate::ingest::rederivation::age(&registry, Default::default()).await;
    assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 1);
    assert_eq!(signature_state(&registry, agent.id).await, "untrusted");
}

/// A signature that becomes invalid, is dropped, or is replaced by another key's is a critical change.
async fn losing_a_signature_is_critical(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (signer, other) = (CardSigner::new(JKU), CardSigner::new(JKU));
    let plain = card_bytes("Signed", "Vouched for");
    let bytes = signer.sign(&plain);
    let mut broken: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    broken["signatures"][0]["signature"] = other_signature(&other.sign(&plain));
    for (name, answer) in [
        ("dropped", OriginResponse::Card(plain.clone())),
        (
            "broken",
            OriginResponse::SignedCard(
                serde_json::to_vec(&broken).unwrap(),
                signer.fetched_key_set(),
            ),
        ),
        (
            "foreign",
            OriginResponse::SignedCard(other.sign(&plain), signer.fetched_key_set()),
        ),
    ] {
        let domain = format!("{name}.agents-test.com");
        registry.register_domain(&domain).await;
        registry
            .crawl_domain(
                &domain,
                OriginResponse::SignedCard(bytes.clone(), signer.fetched_key_set()),
            )
            .await;
        let agent = registry.agent(&domain).await;
        registry.approve_open_review(agent.id).await;
        registry.crawl_domain(&domain, answer).await;
        assert_eq!(
            registry.holds(agent.id).await,
            ["critical_change"],
            "{name}"
        );
        assert_eq!(registry.public_card_bytes(agent.id).await, None, "{name}");
        let review = registry.find_open_review(agent.id).await.unwrap();
        assert_eq!(review.change_class.unwrap().as_str(), "critical", "{name}");
    }
    registry.assert_index_matches_database().await;
}

/// Another key with the same identifier on the same host: the card is unchanged, and still it is on hold until an
/// approver accepts the key, which then replaces the old one.
async fn another_key_with_the_same_identifier_is_noticed(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let [first, second] = [CardSigner::new(JKU), CardSigner::new(JKU)];
    let bytes = card_bytes("Signing", "By a key it is known by");
    let agent = registry.register_approved_card(DOMAIN, &bytes).await.id;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(first.sign(&bytes), first.fetched_key_set()),
        )
        .await;
    registry.approve_open_review(agent).await;
    assert_eq!(signature_state(&registry, agent).await, "untrusted");
    let pinned = registry.agent(DOMAIN).await.pins;
    assert!(!pinned.is_empty());
    // A new signature by the same key, as SDKs make at every start, changes nothing.
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(first.sign(&bytes), first.fetched_key_set()),
        )
        .await;
    assert!(registry.holds(agent).await.is_empty());

    let versions = registry.versions(agent).await.len();
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.sign(&bytes), second.fetched_key_set()),
        )
        .await;
    assert_eq!(registry.versions(agent).await.len(), versions);
    assert_eq!(registry.holds(agent).await, ["key_changed"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    registry.assert_index_matches_database().await;
    // The hold is not lifted by time, nor while the keys are unreachable.
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.sign(&bytes), away()),
        )
        .await;
    assert_eq!(registry.holds(agent).await, ["key_changed"]);
    let act = a2a_registry_api::Act {
        reason: "rolled over".into(),
        hold: Some(Hold::KeyChanged),
    };
    agent_resume(&registry.app, &registry.admin, &agent.to_string(), &act)
        .await
        .unwrap();
    assert!(registry.holds(agent).await.is_empty());
    assert_ne!(registry.agent(DOMAIN).await.pins, pinned);
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.sign(&bytes), second.fetched_key_set()),
        )
        .await;
    assert!(registry.holds(agent).await.is_empty());
    // The first key would now count as another key again.
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(first.sign(&bytes), first.fetched_key_set()),
        )
        .await;
    assert_eq!(registry.holds(agent).await, ["key_changed"]);
    registry.assert_index_matches_database().await;
}

/// A new key together with a new card is a critical change, and approving it accepts the key.
async fn a_new_key_with_a_new_card_is_critical(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let [first, second] = [CardSigner::new(JKU), CardSigner::new(JKU)];
    let old = card_bytes("Signing", "One text");
    let new = card_bytes("Signing", "One text more");
    registry.register_domain(DOMAIN).await;
    registry
        .run_due_visits(|_| OriginResponse::SignedCard(first.sign(&old), first.fetched_key_set()))
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    registry.approve_open_review(agent).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.sign(&new), second.fetched_key_set()),
        )
        .await;
    let mut holds = registry.holds(agent).await;
    holds.sort_unstable();
    assert_eq!(holds, ["critical_change", "key_changed"]);
    let review = registry.find_open_review(agent).await.unwrap();
    assert_eq!(review.change_class.unwrap().as_str(), "critical");
    registry.approve_open_review(agent).await;
    assert!(registry.holds(agent).await.is_empty());
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.sign(&new), second.fetched_key_set()),
        )
        .await;
    assert!(registry.holds(agent).await.is_empty());
    registry.assert_index_matches_database().await;
}

/// Keys on another host are reported, and no rule approves the card without a person, even if an admin vouches for its
/// domain.
async fn keys_on_another_host_need_a_person(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_domain(DOMAIN).await;
    let vouch = Vouch {
        reason: "seen".into(),
        ..Vouch::default()
    };
    vouch_for_domain(&registry.app, &registry.admin, DOMAIN, &vouch)
        .await
        .unwrap();
    let foreign = ReferencedKeySet {
        is_foreign: true,
        ..away()
    };
    let bytes = CardSigner::new("https://keys.example.net/keys.json")
        .sign(&card_bytes("Signed", "By whom?"));
    registry
        .crawl_domain(DOMAIN, OriginResponse::SignedCard(bytes, foreign))
        .await;
    let agent = registry.agent(DOMAIN).await;
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
    assert!(registry.find_open_review(agent.id).await.is_some());
    assert!(
        rules(&registry, agent.id)
            .await
            .contains(&"signature.foreign_keys".to_owned())
    );
    let events = load_events_after(
        &registry.app,
        &registry.admin,
        &EventFilter::default(),
        &mut 0,
        1000,
    )
    .await
    .unwrap();
    let matching: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::AgentForeignKeys)
        .collect();
    assert_eq!(matching.len(), 1);
    assert_eq!(matching[0].data["key_sets"], serde_json::json!([JKU]));
    registry.assert_index_matches_database().await;
}

fn other_signature(bytes: &[u8]) -> serde_json::Value {
    let card: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    card["signatures"][0]["signature"].clone()
}
