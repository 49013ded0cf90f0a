//! Enrolling a key: new verdicts on stored versions, and new decisions based on them.

use a2a_registry_core::domains::keys::key_withdraw;
use a2a_registry_domain::signature::SignatureState::{Invalid, Unknown, Valid};

use super::verdicts::{
    DOMAIN, JKU, enrol, findings, foreign, has, of_agent, of_versions, states, vouch,
};
use crate::support::both_databases;
use crate::support::signer::Signer;
use crate::support::stage::{OriginAnswer, Stage, card};

both_databases!(
    an_enrolled_key_verifies_stored_versions,
    an_enrolled_key_decides_waiting_and_served_cards,
    a_rejected_signature_found_valid_is_decided_again
);

/// Enrolling the key of another domain verifies every stored version again, whatever the earlier verdict; errors are
/// cleared, and reviews that waited for the key are decided. Withdrawing the key does the same.
async fn an_enrolled_key_verifies_stored_versions(url: &str) {
    let stage = Stage::new(url).await;
    let signer = Signer::new("https://keys.example.net/keys.json");
    stage.register(DOMAIN).await;
    vouch(&stage).await;
    let first = signer.sign(&card("Signed", "By another house"));
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(first, foreign(&signer)))
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    stage.approve(agent).await;
    let second = signer.sign(&card("Signed", "By another house, once more"));
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(second.clone(), foreign(&signer)),
        )
        .await;
    assert_eq!(states(&stage, agent).await, [Unknown, Unknown]);
    for version in stage.versions(agent).await {
        assert!(version.has_error);
        assert!(has(
            &findings(&stage, agent, Some(&version.digest)).await,
            "signature.foreign_keys",
            "error"
        ));
    }

    enrol(&stage, &signer).await;
    let verdicts = of_versions(&stage, agent).await;
    assert_eq!(verdicts.len(), 2);
    for verdict in &verdicts {
        assert_eq!(verdict.state, Valid, "{verdict:?}");
        assert_eq!(verdict.signatures[0].key_from.as_deref(), Some("enrolled"));
    }
    for version in stage.versions(agent).await {
        assert!(!version.has_error, "{}", version.findings);
    }
    // The next fetch gets the same verdict, and adds no version.
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(second.clone(), foreign(&signer)),
        )
        .await;
    assert_eq!(of_versions(&stage, agent).await, verdicts);

    key_withdraw(&stage.app, &stage.admin, DOMAIN, "k1")
        .await
        .unwrap();
    assert_eq!(states(&stage, agent).await, [Unknown, Unknown]);
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(second, foreign(&signer)))
        .await;
    assert_eq!(states(&stage, agent).await, [Unknown, Unknown]);
    stage.index_equals_database().await;
}

/// A first card that only waited for the missing key is approved when the key is enrolled; a served card whose
/// signature turns out to be invalid is put on hold.
async fn an_enrolled_key_decides_waiting_and_served_cards(url: &str) {
    let stage = Stage::new(url).await;
    let signer = Signer::new("https://keys.example.net/keys.json");
    stage.register(DOMAIN).await;
    vouch(&stage).await;
    let bytes = signer.sign(&card("Signed", "By another house"));
    stage
        .crawl(
            DOMAIN,
            OriginAnswer::Signed(bytes.clone(), foreign(&signer)),
        )
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    assert_eq!(stage.served(agent).await, None);
    enrol(&stage, &signer).await;
    assert_eq!(stage.served(agent).await, Some(bytes.clone()));
    assert!(stage.open_review(agent).await.is_none());

    // Another key with the same identifier: the signature that was attributed to it is invalid.
    enrol(&stage, &Signer::new(JKU)).await;
    assert_eq!(states(&stage, agent).await, [Invalid]);
    assert_eq!(stage.holds(agent).await, ["critical_change"]);
    assert_eq!(stage.served(agent).await, None);
    stage.approve(agent).await;
    assert_eq!(
        stage.served(agent).await,
        Some(bytes),
        "a person has approved it"
    );
    stage.index_equals_database().await;
}

/// A card that was rejected for an invalid signature is decided again when an enrolled key shows that it is valid.
async fn a_rejected_signature_found_valid_is_decided_again(url: &str) {
    let stage = Stage::new(url).await;
    let [signer, wrong] = [Signer::new(JKU), Signer::new(JKU)];
    stage.register(DOMAIN).await;
    let bytes = signer.sign(&card("Signed", "With another key of that name"));
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(bytes.clone(), wrong.found()))
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    assert_eq!(states(&stage, agent).await, [Invalid]);
    stage.reject(agent).await;
    assert!(stage.open_review(agent).await.is_none());
    enrol(&stage, &signer).await;
    assert_eq!(of_agent(&stage, agent).await.state, Valid);
    assert!(
        stage.open_review(agent).await.is_some(),
        "the agent waits again"
    );
    vouch(&stage).await;
    assert_eq!(stage.served(agent).await, Some(bytes));
    stage.index_equals_database().await;
}
