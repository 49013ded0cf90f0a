//! Signatures of incoming cards: verified with the keys fetched along with them.

use a2a_crawler::FetchedKeySet;
use a2a_registry_api::Vouch;
use a2a_registry_core::agents::views::agent_findings;
use a2a_registry_core::crawl::derivation::derive_again;
use a2a_registry_core::domains::acts::domain_vouch;
use a2a_registry_core::events::list::events_after;
use a2a_registry_core::reviews::resuming::agent_resume;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;

use crate::support::both_databases;
use crate::support::shown::agent_show;
use crate::support::signer::Signer;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAIN: &str = "signing.agents-test.com";
const JKU: &str = "https://signing.agents-test.com/keys.json";

fn away() -> FetchedKeySet {
    FetchedKeySet {
        url: JKU.into(),
        foreign: false,
        answer: Err("the server answered 503".into()),
    }
}

async fn signature(stage: &Stage, agent: uuid::Uuid) -> String {
    let view = agent_show(&stage.app, &stage.admin, &agent.to_string())
        .await
        .unwrap();
    view.hit.summary.trust.signature.to_string()
}

async fn rules(stage: &Stage, agent: uuid::Uuid) -> Vec<String> {
    let list = agent_findings(
        &stage.app,
        &stage.admin,
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
    let stage = Stage::new(url).await;
    let signer = Signer::new(JKU);
    let bytes = signer.sign(&card("Signed", "Vouched for"));
    stage.register(DOMAIN).await;
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(bytes.clone(), signer.found()))
        .await;
    let agent = stage.agent(DOMAIN).await;
    stage.approve(agent.id).await;
    assert_eq!(signature(&stage, agent.id).await, "untrusted");
    assert_eq!(stage.served(agent.id).await, Some(bytes));
    stage.index_equals_database().await;
}

/// Keys that are unreachable for a while cause no version and no review, and revoke no verdict; once they are reachable
/// the verdict follows, and is reported as an event.
async fn temporarily_unreachable_keys_revoke_no_verdict(url: &str) {
    let stage = Stage::new(url).await;
    let signer = Signer::new(JKU);
    let bytes = signer.sign(&card("Signed", "Vouched for"));
    stage.register(DOMAIN).await;
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(bytes.clone(), away()))
        .await;
    let agent = stage.agent(DOMAIN).await;
    stage.approve(agent.id).await;
    assert_eq!(signature(&stage, agent.id).await, "unknown");
    assert!(
        rules(&stage, agent.id)
            .await
            .contains(&"signature.keys".to_owned())
    );

    for (found, state) in [
        (signer.found(), "untrusted"),
        (away(), "untrusted"),
        (signer.found(), "untrusted"),
    ] {
        stage
            .crawl(DOMAIN, OriginAnswer::Signed(bytes.clone(), found))
            .await;
        assert_eq!(signature(&stage, agent.id).await, state);
        stage.index_equals_database().await;
    }
    assert!(
        !rules(&stage, agent.id)
            .await
            .contains(&"signature.keys".to_owned())
    );
    assert_eq!(stage.versions(agent.id).await.len(), 1);
    assert_eq!(stage.reviews(agent.id).await.len(), 1);
    let events = events_after(&stage.app, &stage.admin, &mut 0, 1000)
        .await
        .unwrap();
    let matching = events.iter().filter(|event| {
        event.kind == EventKind::AgentUpdated && event.data["signature"] == "untrusted"
    });
    assert_eq!(matching.count(), 1);
}

/// A new signature by the same key is the same card; deriving it again keeps its verdict, without a fetch.
async fn signing_again_is_no_change(url: &str) {
    let stage = Stage::new(url).await;
    let signer = Signer::new(JKU);
    let plain = card("Signed", "Vouched for");
    stage.register(DOMAIN).await;
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(signer.sign(&plain), signer.found()),
        )
        .await;
    let agent = stage.agent(DOMAIN).await;
    stage.approve(agent.id).await;
    let again = crate::support::stage::reordered(&signer.sign(&plain));
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(again, signer.found()))
        .await;
    assert_eq!(stage.versions(agent.id).await.len(), 1);
    crate::ingest::derivation::age(&stage, Default::default()).await;
    assert_eq!(derive_again(&stage.app).await.unwrap(), 1);
    assert_eq!(signature(&stage, agent.id).await, "untrusted");
}

/// A signature that becomes invalid, is dropped, or is replaced by another key's is a critical change.
async fn losing_a_signature_is_critical(url: &str) {
    let stage = Stage::new(url).await;
    let (signer, other) = (Signer::new(JKU), Signer::new(JKU));
    let plain = card("Signed", "Vouched for");
    let bytes = signer.sign(&plain);
    let mut broken: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    broken["signatures"][0]["signature"] = other_signature(&other.sign(&plain));
    for (name, answer) in [
        ("dropped", OriginAnswer::Card(plain.clone())),
        (
            "broken",
            OriginAnswer::Signed(serde_json::to_vec(&broken).unwrap(), signer.found()),
        ),
        (
            "foreign",
            OriginAnswer::Signed(other.sign(&plain), signer.found()),
        ),
    ] {
        let domain = format!("{name}.agents-test.com");
        stage.register(&domain).await;
        stage
            .crawl(&domain, OriginAnswer::Signed(bytes.clone(), signer.found()))
            .await;
        let agent = stage.agent(&domain).await;
        stage.approve(agent.id).await;
        stage.crawl(&domain, answer).await;
        assert_eq!(stage.holds(agent.id).await, ["critical_change"], "{name}");
        assert_eq!(stage.served(agent.id).await, None, "{name}");
        let review = stage.open_review(agent.id).await.unwrap();
        assert_eq!(review.change_class.unwrap().as_str(), "critical", "{name}");
    }
    stage.index_equals_database().await;
}

/// Another key with the same identifier on the same host: the card is unchanged, and still it is on hold until an
/// approver accepts the key, which then replaces the old one.
async fn another_key_with_the_same_identifier_is_noticed(url: &str) {
    let stage = Stage::new(url).await;
    let [first, second] = [Signer::new(JKU), Signer::new(JKU)];
    let bytes = card("Signing", "By a key it is known by");
    let agent = stage.publish_approved(DOMAIN, &bytes).await.id;
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(first.sign(&bytes), first.found()),
        )
        .await;
    stage.approve(agent).await;
    assert_eq!(signature(&stage, agent).await, "untrusted");
    let pinned = stage.agent(DOMAIN).await.pins;
    assert!(!pinned.is_empty());
    // A new signature by the same key, as SDKs make at every start, changes nothing.
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(first.sign(&bytes), first.found()),
        )
        .await;
    assert!(stage.holds(agent).await.is_empty());

    let versions = stage.versions(agent).await.len();
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(second.sign(&bytes), second.found()),
        )
        .await;
    assert_eq!(stage.versions(agent).await.len(), versions);
    assert_eq!(stage.holds(agent).await, ["key_changed"]);
    assert_eq!(stage.served(agent).await, None);
    stage.index_equals_database().await;
    // The hold is not lifted by time, nor while the keys are unreachable.
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(second.sign(&bytes), away()))
        .await;
    assert_eq!(stage.holds(agent).await, ["key_changed"]);
    let act = a2a_registry_api::Act {
        reason: "rolled over".into(),
        hold: Some(Hold::KeyChanged),
    };
    agent_resume(&stage.app, &stage.admin, &agent.to_string(), &act)
        .await
        .unwrap();
    assert!(stage.holds(agent).await.is_empty());
    assert_ne!(stage.agent(DOMAIN).await.pins, pinned);
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(second.sign(&bytes), second.found()),
        )
        .await;
    assert!(stage.holds(agent).await.is_empty());
    // The first key would now count as another key again.
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(first.sign(&bytes), first.found()),
        )
        .await;
    assert_eq!(stage.holds(agent).await, ["key_changed"]);
    stage.index_equals_database().await;
}

/// A new key together with a new card is a critical change, and approving it accepts the key.
async fn a_new_key_with_a_new_card_is_critical(url: &str) {
    let stage = Stage::new(url).await;
    let [first, second] = [Signer::new(JKU), Signer::new(JKU)];
    let old = card("Signing", "One text");
    let new = card("Signing", "One text more");
    stage.register(DOMAIN).await;
    stage
        .visit(|_| OriginAnswer::Signed(first.sign(&old), first.found()))
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    stage.approve(agent).await;
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(second.sign(&new), second.found()),
        )
        .await;
    let mut holds = stage.holds(agent).await;
    holds.sort_unstable();
    assert_eq!(holds, ["critical_change", "key_changed"]);
    let review = stage.open_review(agent).await.unwrap();
    assert_eq!(review.change_class.unwrap().as_str(), "critical");
    stage.approve(agent).await;
    assert!(stage.holds(agent).await.is_empty());
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(second.sign(&new), second.found()),
        )
        .await;
    assert!(stage.holds(agent).await.is_empty());
    stage.index_equals_database().await;
}

/// Keys on another host are reported, and no rule approves the card without a person, even if an admin vouches for its
/// domain.
async fn keys_on_another_host_need_a_person(url: &str) {
    let stage = Stage::new(url).await;
    stage.register(DOMAIN).await;
    let vouch = Vouch {
        reason: "seen".into(),
        ..Vouch::default()
    };
    domain_vouch(&stage.app, &stage.admin, DOMAIN, &vouch)
        .await
        .unwrap();
    let foreign = FetchedKeySet {
        foreign: true,
        ..away()
    };
    let bytes = Signer::new("https://keys.example.net/keys.json").sign(&card("Signed", "By whom?"));
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(bytes, foreign))
        .await;
    let agent = stage.agent(DOMAIN).await;
    assert_eq!(stage.served(agent.id).await, None);
    assert!(stage.open_review(agent.id).await.is_some());
    assert!(
        rules(&stage, agent.id)
            .await
            .contains(&"signature.foreign_keys".to_owned())
    );
    let events = events_after(&stage.app, &stage.admin, &mut 0, 1000)
        .await
        .unwrap();
    let matching: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::AgentForeignKeys)
        .collect();
    assert_eq!(matching.len(), 1);
    assert_eq!(matching[0].data["key_sets"], serde_json::json!([JKU]));
    stage.index_equals_database().await;
}

fn other_signature(bytes: &[u8]) -> serde_json::Value {
    let card: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    card["signatures"][0]["signature"].clone()
}
