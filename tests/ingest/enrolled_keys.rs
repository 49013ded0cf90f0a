//! Enrolling a key: new verdicts on stored versions, and new decisions based on them.

use a2a_registry_core::domains::enrolled_keys::key_withdraw;
use a2a_registry_domain::signature::SignatureState::{Invalid, Unknown, Valid};

use super::signature_verdicts::{
    DOMAIN, JKU, agent_verdict, enrol, findings, foreign, has, signature_states, version_verdicts,
    vouch,
};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::signer::CardSigner;

both_databases!(
    an_enrolled_key_verifies_stored_versions,
    an_enrolled_key_decides_waiting_and_served_cards,
    a_rejected_signature_found_valid_is_decided_again
);

/// Enrolling the key of another domain verifies every stored version again, whatever the earlier verdict; errors are
/// cleared, and reviews that waited for the key are decided. Withdrawing the key does the same.
async fn an_enrolled_key_verifies_stored_versions(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new("https://keys.example.net/keys.json");
    registry.register_domain(DOMAIN).await;
    vouch(&registry).await;
    let first = signer.sign(&card_bytes("Signed", "By another house"));
    registry
        .crawl_domain(DOMAIN, OriginResponse::SignedCard(first, foreign(&signer)))
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    registry.approve_open_review(agent).await;
    let second = signer.sign(&card_bytes("Signed", "By another house, once more"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.clone(), foreign(&signer)),
        )
        .await;
    assert_eq!(signature_states(&registry, agent).await, [Unknown, Unknown]);
    for version in registry.versions(agent).await {
        assert!(version.has_error);
        assert!(has(
            &findings(&registry, agent, Some(&version.digest)).await,
            "signature.foreign_keys",
            "error"
        ));
    }

    enrol(&registry, &signer).await;
    let verdicts = version_verdicts(&registry, agent).await;
    assert_eq!(verdicts.len(), 2);
    for verdict in &verdicts {
        assert_eq!(verdict.state, Valid, "{verdict:?}");
        assert_eq!(verdict.signatures[0].key_from.as_deref(), Some("enrolled"));
    }
    for version in registry.versions(agent).await {
        assert!(!version.has_error, "{}", version.findings);
    }
    // The next fetch gets the same verdict, and adds no version.
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.clone(), foreign(&signer)),
        )
        .await;
    assert_eq!(version_verdicts(&registry, agent).await, verdicts);

    key_withdraw(&registry.app, &registry.admin, DOMAIN, "k1")
        .await
        .unwrap();
    assert_eq!(signature_states(&registry, agent).await, [Unknown, Unknown]);
    registry
        .crawl_domain(DOMAIN, OriginResponse::SignedCard(second, foreign(&signer)))
        .await;
    assert_eq!(signature_states(&registry, agent).await, [Unknown, Unknown]);
    registry.assert_index_matches_database().await;
}

/// A first card that only waited for the missing key is approved when the key is enrolled; a served card whose
/// signature turns out to be invalid is put on hold.
async fn an_enrolled_key_decides_waiting_and_served_cards(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new("https://keys.example.net/keys.json");
    registry.register_domain(DOMAIN).await;
    vouch(&registry).await;
    let bytes = signer.sign(&card_bytes("Signed", "By another house"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(bytes.clone(), foreign(&signer)),
        )
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    assert_eq!(registry.public_card_bytes(agent).await, None);
    enrol(&registry, &signer).await;
    assert_eq!(registry.public_card_bytes(agent).await, Some(bytes.clone()));
    assert!(registry.find_open_review(agent).await.is_none());

    // Another key with the same identifier: the signature that was attributed to it is invalid.
    enrol(&registry, &CardSigner::new(JKU)).await;
    assert_eq!(signature_states(&registry, agent).await, [Invalid]);
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    registry.approve_open_review(agent).await;
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(bytes),
        "a person has approved it"
    );
    registry.assert_index_matches_database().await;
}

/// A card that was rejected for an invalid signature is decided again when an enrolled key shows that it is valid.
async fn a_rejected_signature_found_valid_is_decided_again(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let [signer, wrong] = [CardSigner::new(JKU), CardSigner::new(JKU)];
    registry.register_domain(DOMAIN).await;
    let bytes = signer.sign(&card_bytes("Signed", "With another key of that name"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(bytes.clone(), wrong.fetched_key_set()),
        )
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    assert_eq!(signature_states(&registry, agent).await, [Invalid]);
    registry.reject_open_review(agent).await;
    assert!(registry.find_open_review(agent).await.is_none());
    enrol(&registry, &signer).await;
    assert_eq!(agent_verdict(&registry, agent).await.state, Valid);
    assert!(
        registry.find_open_review(agent).await.is_some(),
        "the agent waits again"
    );
    vouch(&registry).await;
    assert_eq!(registry.public_card_bytes(agent).await, Some(bytes));
    registry.assert_index_matches_database().await;
}
