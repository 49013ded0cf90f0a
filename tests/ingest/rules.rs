//! Rules that change between two starts (docs/model.md#admission).

use std::collections::BTreeSet;

use a2a_registry_api::Registration;
use a2a_registry_core::config::Config;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::lifecycle::Lifecycle;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

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
    let stage = Stage::new(url).await;
    let ours = stage
        .publish_approved(DOMAIN, &card("Denied", "For a while"))
        .await;
    let other = stage
        .publish_approved("other-test.com", &card("Other", "Never"))
        .await;
    stage.index_equals_database().await;
    let stage = stage
        .restart(|config| config.governance.deny_domains = pattern("*.agents-test.com"))
        .await;
    assert_eq!(stage.holds(ours.id).await, ["denied"]);
    assert_eq!(stage.served(ours.id).await, None);
    stage.index_equals_database().await;
    assert_eq!(stage.found_by_anyone().await, BTreeSet::from([other.id]));
    let what = Registration {
        domain: Some(DOMAIN.into()),
        ..Registration::default()
    };
    let refused = register(&stage.app, &stage.admin, &what).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::DomainDenied);

    let stage = stage.restart(|_| ()).await;
    assert_eq!(stage.holds(ours.id).await, ["denied"]);
    let stage = stage
        .restart(|config| config.governance.deny_domains.clear())
        .await;
    assert!(stage.holds(ours.id).await.is_empty());
    stage.index_equals_database().await;
    assert_eq!(
        stage.found_by_anyone().await,
        BTreeSet::from([ours.id, other.id])
    );
}

/// Cards that a denied domain published meanwhile are reviewed once it is no longer denied: a first card as well as a
/// change.
async fn cards_published_under_denial_are_reviewed_afterwards(url: &str) {
    let stage = Stage::new(url).await;
    let old = card("Denied", "Before");
    let known = stage.publish_approved(DOMAIN, &old).await;
    stage.register("new.agents-test.com").await;
    let stage = stage
        .restart(|config| config.governance.deny_domains = pattern("*.agents-test.com"))
        .await;
    let new = card("Denied", "Meanwhile");
    stage.crawl(DOMAIN, OriginAnswer::Card(new.clone())).await;
    stage
        .crawl(
            "new.agents-test.com",
            OriginAnswer::Card(card("New", "First seen denied")),
        )
        .await;
    let first = stage.agent("new.agents-test.com").await;
    for agent in [known.id, first.id] {
        assert_eq!(stage.holds(agent).await, ["denied"]);
        assert_eq!(stage.open_review(agent).await, None);
    }
    stage.index_equals_database().await;

    let stage = stage
        .restart(|config| config.governance.deny_domains.clear())
        .await;
    assert_eq!(stage.served(known.id).await, Some(old));
    assert_eq!(
        stage.open_review(known.id).await.unwrap().digest,
        a2a_card::digest(&new)
    );
    assert!(stage.open_review(first.id).await.is_some());
    stage.index_equals_database().await;
    stage.approve(first.id).await;
    stage.approve(known.id).await;
    assert_eq!(stage.served(known.id).await, Some(new));
    stage.index_equals_database().await;
    assert_eq!(stage.found_by_anyone().await.len(), 2);
}

/// An approval by `--approve-all` alone is revoked once the flag is removed; approvals by persons and by other rules
/// stay.
async fn approvals_by_approve_all_are_revoked_with_it(url: &str) {
    let stage = Stage::new(url).await;
    let person = stage
        .publish_approved(DOMAIN, &card("By a person", "Stays"))
        .await;
    let stage = stage
        .restart(|config| config.governance.approve_all = true)
        .await;
    let flag = stage
        .publish("flag-test.com", &card("By the flag", "Goes"))
        .await;
    let allowed = stage
        .publish("allowed-test.com", &card("Allowed later", "Stays"))
        .await;
    assert_eq!(flag.lifecycle, Lifecycle::Approved);
    stage
        .crawl(
            "flag-test.com",
            OriginAnswer::Card(card("By the flag", "Changed")),
        )
        .await;
    stage.index_equals_database().await;
    assert_eq!(stage.found_by_anyone().await.len(), 3);

    let stage = stage.restart(|_| ()).await;
    assert_eq!(
        stage.found_by_anyone().await.len(),
        3,
        "the flag is still there"
    );
    let stage = stage
        .restart(|config| {
            config.governance.approve_all = false;
            config.governance.allow_domains = pattern("allowed-test.com");
        })
        .await;
    let row = stage.agent("flag-test.com").await;
    assert_eq!(
        (row.lifecycle.as_str(), row.approved_version),
        ("pending", None)
    );
    assert_eq!(stage.served(flag.id).await, None);
    let asked = stage.open_review(flag.id).await.unwrap();
    assert_eq!(
        asked.digest,
        a2a_card::digest(&card("By the flag", "Changed"))
    );
    assert_eq!(asked.submitter.as_deref(), Some("admin"));
    stage.index_equals_database().await;
    assert_eq!(
        stage.found_by_anyone().await,
        BTreeSet::from([person.id, allowed.id])
    );

    stage.approve(flag.id).await;
    let stage = stage.restart(|_| ()).await;
    assert_eq!(
        stage.agent("flag-test.com").await.lifecycle,
        Lifecycle::Approved,
        "a person's approval stays"
    );
    stage.index_equals_database().await;
}
/// Waiting reviews are put before the rules again if those have changed since the last start: a first card and a
/// change, each only if the new rule covers it.
async fn waiting_reviews_are_decided_by_new_rules(url: &str) {
    let stage = Stage::new(url).await;
    let old = card("Known", "Before");
    let known = stage.publish_approved(DOMAIN, &old).await;
    let new = card("Known", "After");
    stage.crawl(DOMAIN, OriginAnswer::Card(new.clone())).await;
    let first = stage
        .publish("first.agents-test.com", &card("First", "Waits"))
        .await;
    let other = stage
        .publish("other-test.com", &card("Other", "Waits on"))
        .await;
    let allow =
        |config: &mut Config| config.governance.allow_domains = pattern("*.agents-test.com");
    let stage = stage.restart(allow).await;
    assert_eq!(stage.served(known.id).await, Some(new));
    assert_eq!(
        stage.agent("first.agents-test.com").await.lifecycle,
        Lifecycle::Approved
    );
    assert_eq!(stage.open_review(first.id).await, None);
    assert!(stage.open_review(other.id).await.is_some());
    stage.index_equals_database().await;

    let stage = stage
        .restart(|config| config.governance.approve_all = true)
        .await;
    assert_eq!(
        stage.agent("other-test.com").await.lifecycle,
        Lifecycle::Approved
    );
    stage.index_equals_database().await;
    assert_eq!(
        stage.found_by_anyone().await,
        BTreeSet::from([known.id, first.id, other.id])
    );
}
