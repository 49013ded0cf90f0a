//! A card that changes after its agent was approved (docs/model.md#changes-and-reviews).

use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::ReviewState::{Open, Rejected, Superseded, Withdrawn};
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_store::versions::{VERSIONS_PER_AGENT, body_by_digest};

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card, reordered, signed};

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
    let stage = Stage::new(url).await;
    let approved = signed("Steady", "Says the same", "key-1", "first signature");
    let agent = stage.publish_approved(DOMAIN, &approved).await;
    let again = signed("Steady", "Says the same", "key-1", "second signature");
    for bytes in [
        reordered(&approved),
        again.clone(),
        reordered(&again),
        approved.clone(),
    ] {
        stage.crawl(DOMAIN, OriginAnswer::Card(bytes)).await;
        stage.index_equals_database().await;
        assert_eq!(stage.served(agent.id).await.as_ref(), Some(&approved));
    }
    let versions = stage.versions(agent.id).await;
    assert_eq!(versions.len(), 1);
    assert_eq!(
        versions[0].repeats, 3,
        "every fetch but the one of the approved bytes"
    );
    assert_eq!(stage.reviews(agent.id).await.len(), 1);
    let now = i64::try_from(stage.now().unix_timestamp_nanos() / 1000).unwrap();
    assert_eq!(stage.agent(DOMAIN).await.last_seen_at, Some(now));
}

/// While a change waits the old bytes are served; a newer change takes its place in the queue, and the decision is
/// about the newer one.
async fn a_change_waits_while_the_old_version_is_served(url: &str) {
    let stage = Stage::new(url).await;
    let first = card("Changing", "First");
    let agent = stage.publish_approved(DOMAIN, &first).await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Changing", "Second")))
        .await;
    let review = stage.open_review(agent.id).await.unwrap();
    assert_eq!(review.previous, Some(a2a_card::digest(&first)));
    assert_eq!(review.change_class.unwrap().as_str(), "high");
    assert_eq!(stage.served(agent.id).await.as_ref(), Some(&first));
    stage.index_equals_database().await;

    let third = card("Changing", "Third");
    stage.crawl(DOMAIN, OriginAnswer::Card(third.clone())).await;
    let states: Vec<_> = stage
        .reviews(agent.id)
        .await
        .into_iter()
        .map(|(_, state)| state)
        .skip(1)
        .collect();
    assert_eq!(states, [Superseded, Open]);
    assert_eq!(
        stage.open_review(agent.id).await.unwrap().previous,
        Some(a2a_card::digest(&first))
    );
    stage.approve(agent.id).await;
    assert_eq!(stage.served(agent.id).await, Some(third));
    let states: Vec<_> = stage
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
    stage.index_equals_database().await;
}

/// A rejected successor leaves the old version served and causes no second review, and going back to the approved
/// content needs no approver.
async fn a_rejected_successor_leaves_the_old_version(url: &str) {
    let stage = Stage::new(url).await;
    let first = card("Changing", "First");
    let agent = stage.publish_approved(DOMAIN, &first).await;
    let bad = card("Changing", "Bad");
    stage.crawl(DOMAIN, OriginAnswer::Card(bad.clone())).await;
    stage.reject(agent.id).await;
    assert_eq!(stage.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
    assert_eq!(stage.served(agent.id).await.as_ref(), Some(&first));
    stage
        .crawl(DOMAIN, OriginAnswer::Card(reordered(&bad)))
        .await;
    stage.crawl(DOMAIN, OriginAnswer::Card(first.clone())).await;
    stage.crawl(DOMAIN, OriginAnswer::Card(bad.clone())).await;
    assert_eq!(stage.open_review(agent.id).await, None);
    assert_eq!(stage.reviews(agent.id).await.last().unwrap().1, Rejected);
    assert_eq!(stage.served(agent.id).await.as_ref(), Some(&first));
    assert_eq!(
        stage.versions(agent.id).await.last().unwrap().state,
        VersionState::Rejected
    );
    stage.index_equals_database().await;
}

/// An origin that goes back to the approved content withdraws the review; the approved bytes are served, not the
/// reordered ones.
async fn returning_to_approved_content_withdraws_the_review(url: &str) {
    let stage = Stage::new(url).await;
    let first = card("Changing", "First");
    let agent = stage.publish_approved(DOMAIN, &first).await;
    let served = stage.agent(DOMAIN).await.approved_version;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Changing", "Second")))
        .await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(reordered(&first)))
        .await;
    assert_eq!(stage.reviews(agent.id).await.last().unwrap().1, Withdrawn);
    assert_eq!(stage.open_review(agent.id).await, None);
    assert_eq!(stage.agent(DOMAIN).await.approved_version, served);
    assert_eq!(stage.served(agent.id).await, Some(first));
    let classes: Vec<_> = stage
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
    stage.index_equals_database().await;
}

/// A card with another name in the same slot is the same agent.
async fn another_name_is_the_same_agent(url: &str) {
    let stage = Stage::new(url).await;
    let agent = stage
        .publish_approved(DOMAIN, &card("Old name", "Same place"))
        .await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("New name", "Same place")))
        .await;
    assert_eq!(stage.agent(DOMAIN).await.id, agent.id);
    stage.index_equals_database().await;
}

/// The number of kept versions is bounded, with any number of changes, and the served version is among them; bytes are
/// deleted with the last version that has them and no sooner.
async fn stored_versions_are_limited(url: &str) {
    let stage = Stage::new(url).await;
    let served = card("Restless", "Number 0");
    let shared = card("Restless", "Number 1");
    let agent = stage.publish_approved(DOMAIN, &served).await;
    let keeper = "keeper.agents-test.com";
    stage.publish(keeper, &shared).await;
    let rounds = VERSIONS_PER_AGENT + 5;
    for round in 1..=rounds {
        stage
            .crawl(
                DOMAIN,
                OriginAnswer::Card(card("Restless", &format!("Number {round}"))),
            )
            .await;
    }
    let kept = stage.versions(agent.id).await;
    assert_eq!(
        kept.len() as u64,
        VERSIONS_PER_AGENT + 1,
        "the newest ones and the served one"
    );
    let row = stage.agent(DOMAIN).await;
    assert_eq!(Some(kept[0].id), row.approved_version);
    assert_eq!(kept.last().map(|version| version.id), row.newest_version);
    assert_eq!(
        stage.open_review(agent.id).await.unwrap().digest,
        kept.last().unwrap().digest
    );
    for version in &kept {
        assert!(
            body_by_digest(&stage.store, &version.digest)
                .await
                .unwrap()
                .is_some()
        );
    }
    let body = async |number: u64| {
        let bytes = card("Restless", &format!("Number {number}"));
        body_by_digest(&stage.store, &a2a_card::digest(&bytes))
            .await
            .unwrap()
    };
    assert_eq!(
        body(1).await,
        Some(shared),
        "another agent still has these bytes"
    );
    assert_eq!(body(2).await, None);
    assert_eq!(stage.served(agent.id).await, Some(served));
    stage.index_equals_database().await;
}
