//! Batches of outcomes: written completely or not at all, once, and at their limits.

use a2a_crawler::{AttemptOutcome, MAX_SOURCES_PER_VISIT};
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;
use a2a_registry_store::visit_results::MAX_ATTEMPTS_PER_SOURCE;
use time::Duration;

use crate::support::both_databases;
use crate::support::database::count_events;
use crate::support::in_process_registry::{
    InProcessRegistry, LEASE_MICROSECONDS, OriginResponse, card_bytes,
};

/// Maximum number of outcomes that the crawler delivers together.
const GROUP: usize = 200;

async fn counts(registry: &InProcessRegistry) -> (usize, u64) {
    (
        registry.agents().await.len(),
        count_events(&registry.store).await,
    )
}

both_databases!(
    an_outcome_without_its_lease_is_dropped,
    a_group_delivered_twice_is_written_once,
    a_group_that_fails_leaves_nothing,
    a_group_stores_what_its_visits_store_one_by_one,
    the_largest_group_is_written,
    stored_attempts_are_limited
);

/// An outcome whose lease has expired is dropped, without effect on the others.
async fn an_outcome_without_its_lease_is_dropped(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for domain in ["held.agents-test.com", "lost.agents-test.com"] {
        registry.register_domain(domain).await;
    }
    let late = registry
        .lease_due_outcomes(|source| OriginResponse::Card(card_bytes("Late", &source.url)))
        .await;
    assert_eq!(late.len(), 2);
    registry.advance(Duration::microseconds(LEASE_MICROSECONDS + 1));
    // Another crawler makes one of the two visits meanwhile.
    let leased = lease_visits(&registry.app, 1, LEASE_MICROSECONDS)
        .await
        .unwrap();
    let (taken, lease) = (leased[0].0.id, leased[0].0.lease);
    ingest_outcomes(&registry.app, &late).await.unwrap();
    let rows = registry.agents().await;
    assert_eq!(rows.len(), 1);
    assert_ne!(rows[0].domain_id, taken);
    let row = domains::domains_by_ids(&registry.store, &[taken])
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (row.lease, lease.is_some()),
        (lease, true),
        "the other crawler's lease is kept"
    );
    registry.assert_index_matches_database().await;
}

/// A group that is delivered again, because the first response was lost, writes nothing more.
async fn a_group_delivered_twice_is_written_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for number in 0..5 {
        registry
            .register_domain(&format!("a{number}.agents-test.com"))
            .await;
    }
    let group = registry
        .lease_due_outcomes(|source| OriginResponse::Card(card_bytes("Twice", &source.url)))
        .await;
    ingest_outcomes(&registry.app, &group).await.unwrap();
    let written = counts(&registry).await;
    assert_eq!(written.0, 5);
    ingest_outcomes(&registry.app, &group).await.unwrap();
    for outcome in &group {
        ingest_outcomes(&registry.app, std::slice::from_ref(outcome))
            .await
            .unwrap();
    }
    assert_eq!(counts(&registry).await, written);
    registry.assert_index_matches_database().await;
}

/// A group that cannot be written leaves no data behind, and its outcomes can be delivered again, one by one.
async fn a_group_that_fails_leaves_nothing(url: &str) {
    use a2a_registry_store::Executor as _;
    use sea_orm::ConnectionTrait as _;
    let registry = InProcessRegistry::new(url).await;
    for number in 0..3 {
        registry
            .register_domain(&format!("a{number}.agents-test.com"))
            .await;
    }
    let before = counts(&registry).await;
    let group = registry
        .lease_due_outcomes(|source| OriginResponse::Card(card_bytes("Fails", &source.url)))
        .await;
    let statements = async |text: &str| {
        registry
            .store
            .connection()
            .execute_unprepared(text)
            .await
            .unwrap();
    };
    statements("ALTER TABLE events RENAME TO events_away").await;
    ingest_outcomes(&registry.app, &group).await.unwrap_err();
    statements("ALTER TABLE events_away RENAME TO events").await;
    assert_eq!(counts(&registry).await, before);
    for outcome in &group {
        ingest_outcomes(&registry.app, std::slice::from_ref(outcome))
            .await
            .unwrap();
    }
    assert_eq!(registry.agents().await.len(), 3);
    registry.assert_index_matches_database().await;
}

/// The number of a domain in the test below, by a URL of it.
fn number_of(url: &str) -> usize {
    let host = url.trim_start_matches("https://");
    let digits = host.chars().skip_while(|c| !c.is_ascii_digit());
    let digits: String = digits.take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// What the visits of a group do to one domain does not depend on the others in the group.
async fn a_group_stores_what_its_visits_store_one_by_one(url: &str) {
    const DOMAINS: usize = 12;
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    for number in 0..DOMAINS {
        for side in ["group", "alone"] {
            registry
                .register_domain(&format!("{side}{number}.agents-test.com"))
                .await;
        }
    }
    for round in 0..4 {
        let answer = |source: &source::Model| {
            let number = number_of(&source.url);
            match (number + round) % 4 {
                0 => OriginResponse::Card(card_bytes(&format!("Agent {number}"), "The first text")),
                1 => OriginResponse::Card(card_bytes(&format!("Agent {number}"), "Another text")),
                2 => OriginResponse::Failure(AttemptOutcome::Gone),
                _ => OriginResponse::Failure(AttemptOutcome::TlsInvalid),
            }
        };
        let outcomes = registry.lease_due_outcomes(answer).await;
        let (group, alone): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .partition(|outcome| outcome.sources[0].attempts[0].url.contains("//group"));
        assert_eq!((group.len(), alone.len()), (DOMAINS, DOMAINS), "{round}");
        ingest_outcomes(&registry.app, &group).await.unwrap();
        for outcome in &alone {
            ingest_outcomes(&registry.app, std::slice::from_ref(outcome))
                .await
                .unwrap();
        }
        let mut stored: [Vec<_>; 2] = Default::default();
        for row in registry.agents().await {
            let of_group = row.domain.starts_with("group");
            let text = format!(
                "{:02} {} {:?} {:?} {:?} {} {} {}",
                number_of(&row.domain),
                row.slot,
                row.lifecycle,
                row.liveness,
                row.liveness_reason,
                row.tls,
                row.changes,
                row.approved_version.is_some()
            );
            stored[usize::from(of_group)].push(text.replace("group", "alone"));
        }
        stored.iter_mut().for_each(|texts| texts.sort_unstable());
        assert_eq!(stored[0], stored[1], "{round}");
        registry.advance(Duration::days(2));
    }
    registry.assert_index_matches_database().await;
}

/// The largest possible group: every visit fetches the maximum number of sources, every card is new, and the domains
/// have further sources that are not due. That is more values than one statement can bind.
async fn the_largest_group_is_written(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    let write = registry.store.begin_write().await.unwrap();
    let now = registry.app.now();
    for number in 0..GROUP {
        let domain = a2a_registry_store::entity::domain::Model {
            created_at: now.0,
            not_before: now.0,
            ..crate::leases::domain(number, now.0)
        };
        let domain = write.insert_domain(domain).await.unwrap();
        for place in 0..MAX_SOURCES_PER_VISIT + 2 {
            let url = format!("https://{}/{place}.json", domain.name);
            let due = if place < MAX_SOURCES_PER_VISIT {
                now
            } else {
                now.plus_micros(LEASE_MICROSECONDS * 60)
            };
            write
                .insert_source(crate::leases::source(domain.id, &url, due.0))
                .await
                .unwrap();
        }
    }
    write.commit().await.unwrap();
    let group = registry
        .lease_due_outcomes(|source| OriginResponse::Card(card_bytes("Large", &source.url)))
        .await;
    assert_eq!(group.len(), GROUP);
    ingest_outcomes(&registry.app, &group).await.unwrap();
    assert_eq!(registry.agents().await.len(), GROUP * MAX_SOURCES_PER_VISIT);
    registry.catch_up().await;
    assert_eq!(
        registry.app.index().num_agents(),
        (GROUP * MAX_SOURCES_PER_VISIT) as u64
    );

    registry.advance(Duration::days(2));
    let changed = registry
        .lease_due_outcomes(|source| {
            OriginResponse::Card(card_bytes("Large, changed", &source.url))
        })
        .await;
    ingest_outcomes(&registry.app, &changed).await.unwrap();
    let failed = count_events(&registry.store).await;
    assert!(failed > (GROUP * MAX_SOURCES_PER_VISIT) as u64);
}

/// The number of stored attempts of a source is bounded; the newest are kept.
async fn stored_attempts_are_limited(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (busy, quiet) = ("busy.agents-test.com", "quiet.agents-test.com");
    registry.register_domain(quiet).await;
    registry.register_domain(busy).await;
    registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes("Asked", &source.url)))
        .await;
    for _ in 0..MAX_ATTEMPTS_PER_SOURCE + 3 {
        registry
            .crawl_domain(busy, OriginResponse::NotModified)
            .await;
    }
    let kept = async |domain: &str| {
        let row = domains::domain_by_name(&registry.store, domain)
            .await
            .unwrap()
            .unwrap();
        let sources = domains::live_sources_by_domain(&registry.store, &[row.id])
            .await
            .unwrap();
        domains::fetch_attempts_of_sources(&registry.store, &[sources[0].id])
            .await
            .unwrap()
    };
    let attempts = kept(busy).await;
    assert_eq!(attempts.len() as i64, MAX_ATTEMPTS_PER_SOURCE);
    let now = i64::try_from(registry.now().unix_timestamp_nanos() / 1000).unwrap();
    assert_eq!(attempts[0].at, now);
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt.outcome == "not_modified")
    );
    assert_eq!(kept(quiet).await.len(), 1);
}
