//! A card that changes after its agent was approved (docs/publish/change.md).

use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::ReviewState::{Open, Rejected, Superseded, Withdrawn};
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_store::versions::{MAX_VERSIONS_PER_AGENT, body_by_digest};

use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, card_bytes, reorder_members, signed_card_bytes,
};

const DOMAIN: &str = "changing.agents-test.com";

both_databases!(
    the_same_content_in_other_bytes_changes_nothing,
    a_change_waits_while_the_old_version_is_served,
    a_rejected_successor_leaves_the_old_version,
    returning_to_approved_content_withdraws_the_review,
    another_name_is_the_same_agent,
    stored_versions_are_limited
);

/// Members in another order, or a new signature by the same key: no version, no review, and the served bytes stay the
/// approved ones.
async fn the_same_content_in_other_bytes_changes_nothing(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let approved = signed_card_bytes("Steady", "Says the same", "key-1", "first signature");
    let agent = registry.register_approved_card(DOMAIN, &approved).await;
    let again = signed_card_bytes("Steady", "Says the same", "key-1", "second signature");
    for bytes in [
        reorder_members(&approved),
        again.clone(),
        reorder_members(&again),
        approved.clone(),
    ] {
        registry
            .crawl_domain(DOMAIN, OriginResponse::Card(bytes))
            .await;
        registry.assert_index_matches_database().await;
        assert_eq!(
            registry.public_card_bytes(agent.id).await.as_ref(),
            Some(&approved)
        );
    }
    let versions = registry.versions(agent.id).await;
    assert_eq!(versions.len(), 1);
    assert_eq!(
        versions[0].repeats, 3,
        "every fetch but the one of the approved bytes"
    );
    assert_eq!(registry.review_states(agent.id).await.len(), 1);
    let now = i64::try_from(registry.now().unix_timestamp_nanos() / 1000).unwrap();
    assert_eq!(registry.agent(DOMAIN).await.last_seen_at, Some(now));
}

/// While a change waits the old bytes are served; a newer change takes its place in the queue, and the decision is
/// about the newer one.
async fn a_change_waits_while_the_old_version_is_served(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = card_bytes("Changing", "First");
    let agent = registry.register_approved_card(DOMAIN, &first).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Changing", "Second")),
        )
        .await;
    let review = registry.find_open_review(agent.id).await.unwrap();
    assert_eq!(review.previous, Some(a2a_card::bytes_digest(&first)));
    assert_eq!(review.change_class.unwrap().as_str(), "high");
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&first)
    );
    registry.assert_index_matches_database().await;

    let third = card_bytes("Changing", "Third");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(third.clone()))
        .await;
    let states: Vec<_> = registry
        .review_states(agent.id)
        .await
        .into_iter()
        .map(|(_, state)| state)
        .skip(1)
        .collect();
    assert_eq!(states, [Superseded, Open]);
    assert_eq!(
        registry.find_open_review(agent.id).await.unwrap().previous,
        Some(a2a_card::bytes_digest(&first))
    );
    registry.approve_open_review(agent.id).await;
    assert_eq!(registry.public_card_bytes(agent.id).await, Some(third));
    let states: Vec<_> = registry
        .versions(agent.id)
        .await
        .into_iter()
        .map(|row| row.state)
        .collect();
    assert_eq!(
        states,
        [
            VersionState::Approved,
            VersionState::Superseded,
            VersionState::Approved
        ]
    );
    registry.assert_index_matches_database().await;
}

/// A rejected successor leaves the old version served and causes no second review, and going back to the approved
/// content needs no approver.
async fn a_rejected_successor_leaves_the_old_version(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = card_bytes("Changing", "First");
    let agent = registry.register_approved_card(DOMAIN, &first).await;
    let bad = card_bytes("Changing", "Bad");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(bad.clone()))
        .await;
    registry.reject_open_review(agent.id).await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&first)
    );
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(reorder_members(&bad)))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(first.clone()))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(bad.clone()))
        .await;
    assert_eq!(registry.find_open_review(agent.id).await, None);
    assert_eq!(
        registry.review_states(agent.id).await.last().unwrap().1,
        Rejected
    );
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&first)
    );
    assert_eq!(
        registry.versions(agent.id).await.last().unwrap().state,
        VersionState::Rejected
    );
    registry.assert_index_matches_database().await;
}

/// An origin that goes back to the approved content withdraws the review; the approved bytes are served, not the
/// reordered ones.
async fn returning_to_approved_content_withdraws_the_review(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = card_bytes("Changing", "First");
    let agent = registry.register_approved_card(DOMAIN, &first).await;
    let served = registry.agent(DOMAIN).await.approved_version;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Changing", "Second")),
        )
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(reorder_members(&first)))
        .await;
    assert_eq!(
        registry.review_states(agent.id).await.last().unwrap().1,
        Withdrawn
    );
    assert_eq!(registry.find_open_review(agent.id).await, None);
    assert_eq!(registry.agent(DOMAIN).await.approved_version, served);
    assert_eq!(registry.public_card_bytes(agent.id).await, Some(first));
    let classes: Vec<_> = registry
        .versions(agent.id)
        .await
        .into_iter()
        .map(|row| row.change_class)
        .collect();
    assert_eq!(
        classes,
        [
            None,
            Some(ChangeClass::High.into()),
            Some(ChangeClass::None.into())
        ]
    );
    registry.assert_index_matches_database().await;
}

/// A card with another name in the same slot is the same agent.
async fn another_name_is_the_same_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card(DOMAIN, &card_bytes("Old name", "Same place"))
        .await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("New name", "Same place")),
        )
        .await;
    assert_eq!(registry.agent(DOMAIN).await.id, agent.id);
    registry.assert_index_matches_database().await;
}

/// The number of kept versions is bounded, with any number of changes, and the served version is among them; bytes are
/// deleted with the last version that has them and no sooner.
async fn stored_versions_are_limited(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let served = card_bytes("Restless", "Number 0");
    let shared = card_bytes("Restless", "Number 1");
    let agent = registry.register_approved_card(DOMAIN, &served).await;
    let keeper = "keeper.agents-test.com";
    registry.register_with_card(keeper, &shared).await;
    let rounds = MAX_VERSIONS_PER_AGENT + 5;
    for round in 1..=rounds {
        registry
            .crawl_domain(
                DOMAIN,
                OriginResponse::Card(card_bytes("Restless", &format!("Number {round}"))),
            )
            .await;
    }
    let kept = registry.versions(agent.id).await;
    assert_eq!(
        kept.len() as u64,
        MAX_VERSIONS_PER_AGENT + 1,
        "the newest ones and the served one"
    );
    let row = registry.agent(DOMAIN).await;
    assert_eq!(Some(kept[0].id), row.approved_version);
    assert_eq!(kept.last().map(|version| version.id), row.newest_version);
    assert_eq!(
        registry.find_open_review(agent.id).await.unwrap().digest,
        kept.last().unwrap().digest
    );
    for version in &kept {
        assert!(
            body_by_digest(&registry.store, &version.digest)
                .await
                .unwrap()
                .is_some()
        );
    }
    let body = async |number: u64| {
        let bytes = card_bytes("Restless", &format!("Number {number}"));
        body_by_digest(&registry.store, &a2a_card::bytes_digest(&bytes))
            .await
            .unwrap()
    };
    assert_eq!(
        body(1).await,
        Some(shared),
        "another agent still has these bytes"
    );
    assert_eq!(body(2).await, None);
    assert_eq!(registry.public_card_bytes(agent.id).await, Some(served));
    registry.assert_index_matches_database().await;
}
