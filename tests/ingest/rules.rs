//! Rules that change between two starts (docs/govern/policies.md#admit-cards-without-a-review).

use std::collections::BTreeSet;

use a2a_registry_api::Registration;
use a2a_registry_core::config::Config;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::lifecycle::Lifecycle;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const DOMAIN: &str = "ruled.agents-test.com";

fn pattern(text: &str) -> Vec<DomainPattern> {
    vec![DomainPattern(text.into())]
}

both_databases!(
    a_denial_takes_effect_and_ends_at_the_next_start,
    cards_published_under_denial_are_reviewed_afterwards,
    approvals_by_approve_all_are_revoked_with_it,
    waiting_reviews_are_decided_by_new_rules
);

/// A domain that is denied at the next start is on hold, and shown again once it is no longer denied; others are
/// unaffected.
async fn a_denial_takes_effect_and_ends_at_the_next_start(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ours = registry
        .register_approved_card(DOMAIN, &card_bytes("Denied", "For a while"))
        .await;
    let other = registry
        .register_approved_card("other-test.com", &card_bytes("Other", "Never"))
        .await;
    registry.assert_index_matches_database().await;
    let registry = registry
        .restart(|config| config.governance.deny_domains = pattern("*.agents-test.com"))
        .await;
    assert_eq!(registry.holds(ours.id).await, ["denied"]);
    assert_eq!(registry.public_card_bytes(ours.id).await, None);
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([other.id])
    );
    let what = Registration {
        domain: Some(DOMAIN.into()),
        ..Registration::default()
    };
    let refused = register_domain(&registry.app, &registry.admin, &what)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::DomainDenied);

    let registry = registry.restart(|_| ()).await;
    assert_eq!(registry.holds(ours.id).await, ["denied"]);
    let registry = registry
        .restart(|config| config.governance.deny_domains.clear())
        .await;
    assert!(registry.holds(ours.id).await.is_empty());
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([ours.id, other.id])
    );
}

/// Cards that a denied domain published meanwhile are reviewed once it is no longer denied: a first card as well as a
/// change.
async fn cards_published_under_denial_are_reviewed_afterwards(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let old = card_bytes("Denied", "Before");
    let known = registry.register_approved_card(DOMAIN, &old).await;
    registry.register_domain("new.agents-test.com").await;
    let registry = registry
        .restart(|config| config.governance.deny_domains = pattern("*.agents-test.com"))
        .await;
    let new = card_bytes("Denied", "Meanwhile");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(new.clone()))
        .await;
    registry
        .crawl_domain(
            "new.agents-test.com",
            OriginResponse::Card(card_bytes("New", "First seen denied")),
        )
        .await;
    let first = registry.agent("new.agents-test.com").await;
    for agent in [known.id, first.id] {
        assert_eq!(registry.holds(agent).await, ["denied"]);
        assert_eq!(registry.find_open_review(agent).await, None);
    }
    registry.assert_index_matches_database().await;

    let registry = registry
        .restart(|config| config.governance.deny_domains.clear())
        .await;
    assert_eq!(registry.public_card_bytes(known.id).await, Some(old));
    assert_eq!(
        registry.find_open_review(known.id).await.unwrap().digest,
        a2a_card::bytes_digest(&new)
    );
    assert!(registry.find_open_review(first.id).await.is_some());
    registry.assert_index_matches_database().await;
    registry.approve_open_review(first.id).await;
    registry.approve_open_review(known.id).await;
    assert_eq!(registry.public_card_bytes(known.id).await, Some(new));
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await.len(), 2);
}

/// An approval by `--approve-all` alone is revoked once the flag is removed; approvals by persons and by other rules
/// stay.
async fn approvals_by_approve_all_are_revoked_with_it(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let person = registry
        .register_approved_card(DOMAIN, &card_bytes("By a person", "Stays"))
        .await;
    let registry = registry
        .restart(|config| config.governance.approve_all = true)
        .await;
    let flag = registry
        .register_with_card("flag-test.com", &card_bytes("By the flag", "Goes"))
        .await;
    let allowed = registry
        .register_with_card("allowed-test.com", &card_bytes("Allowed later", "Stays"))
        .await;
    assert_eq!(flag.lifecycle, Lifecycle::Approved);
    registry
        .crawl_domain(
            "flag-test.com",
            OriginResponse::Card(card_bytes("By the flag", "Changed")),
        )
        .await;
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await.len(), 3);

    let registry = registry.restart(|_| ()).await;
    assert_eq!(
        registry.publicly_found_ids().await.len(),
        3,
        "the flag is still there"
    );
    let registry = registry
        .restart(|config| {
            config.governance.approve_all = false;
            config.governance.allow_domains = pattern("allowed-test.com");
        })
        .await;
    let row = registry.agent("flag-test.com").await;
    assert_eq!(
        (row.lifecycle.as_str(), row.approved_version),
        ("pending", None)
    );
    assert_eq!(registry.public_card_bytes(flag.id).await, None);
    let asked = registry.find_open_review(flag.id).await.unwrap();
    assert_eq!(
        asked.digest,
        a2a_card::bytes_digest(&card_bytes("By the flag", "Changed"))
    );
    assert_eq!(asked.submitter.as_deref(), Some("admin"));
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([person.id, allowed.id])
    );

    registry.approve_open_review(flag.id).await;
    let registry = registry.restart(|_| ()).await;
    assert_eq!(
        registry.agent("flag-test.com").await.lifecycle,
        Lifecycle::Approved,
        "a person's approval stays"
    );
    registry.assert_index_matches_database().await;
}
/// Waiting reviews are put before the rules again if those have changed since the last start: a first card and a
/// change, each only if the new rule covers it.
async fn waiting_reviews_are_decided_by_new_rules(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let old = card_bytes("Known", "Before");
    let known = registry.register_approved_card(DOMAIN, &old).await;
    let new = card_bytes("Known", "After");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(new.clone()))
        .await;
    let first = registry
        .register_with_card("first.agents-test.com", &card_bytes("First", "Waits"))
        .await;
    let other = registry
        .register_with_card("other-test.com", &card_bytes("Other", "Waits on"))
        .await;
    let allow =
        |config: &mut Config| config.governance.allow_domains = pattern("*.agents-test.com");
    let registry = registry.restart(allow).await;
    assert_eq!(registry.public_card_bytes(known.id).await, Some(new));
    assert_eq!(
        registry.agent("first.agents-test.com").await.lifecycle,
        Lifecycle::Approved
    );
    assert_eq!(registry.find_open_review(first.id).await, None);
    assert!(registry.find_open_review(other.id).await.is_some());
    registry.assert_index_matches_database().await;

    let registry = registry
        .restart(|config| config.governance.approve_all = true)
        .await;
    assert_eq!(
        registry.agent("other-test.com").await.lifecycle,
        Lifecycle::Approved
    );
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([known.id, first.id, other.id])
    );
}
