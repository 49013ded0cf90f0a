//! Groups of outcomes: written completely or not at all, once, and at their limits.

use a2a_crawler::{AttemptOutcome, MAX_SOURCES_PER_VISIT};
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::crawl::job::visits_lease;
use a2a_registry_store::crawl::ATTEMPTS_PER_SOURCE;
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;
use time::Duration;

use crate::support::both_databases;
use crate::support::database::count_events;
use crate::support::stage::{LEASE, OriginAnswer, Stage, card};

/// Maximum number of outcomes that the crawler delivers together.
const GROUP: usize = 200;

async fn counts(stage: &Stage) -> (usize, u64) {
    (stage.agents().await.len(), count_events(&stage.store).await)
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
    let stage = Stage::new(url).await;
    for domain in ["held.agents-test.com", "lost.agents-test.com"] {
        stage.register(domain).await;
    }
    let late = stage
        .outcomes(|source| OriginAnswer::Card(card("Late", &source.url)))
        .await;
    assert_eq!(late.len(), 2);
    stage.advance(Duration::microseconds(LEASE + 1));
    // Another crawler makes one of the two visits meanwhile.
    let leased = visits_lease(&stage.app, 1, LEASE).await.unwrap();
    let (taken, lease) = (leased[0].0.id, leased[0].0.lease);
    ingest(&stage.app, &late).await.unwrap();
    let rows = stage.agents().await;
    assert_eq!(rows.len(), 1);
    assert_ne!(rows[0].domain_id, taken);
    let row = domains::domains_by_ids(&stage.store, &[taken])
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (row.lease, lease.is_some()),
        (lease, true),
        "the other crawler's lease is kept"
    );
    stage.index_equals_database().await;
}

/// A group that is delivered again, because the first response was lost, writes nothing more.
async fn a_group_delivered_twice_is_written_once(url: &str) {
    let stage = Stage::new(url).await;
    for number in 0..5 {
        stage.register(&format!("a{number}.agents-test.com")).await;
    }
    let group = stage
        .outcomes(|source| OriginAnswer::Card(card("Twice", &source.url)))
        .await;
    ingest(&stage.app, &group).await.unwrap();
    let written = counts(&stage).await;
    assert_eq!(written.0, 5);
    ingest(&stage.app, &group).await.unwrap();
    for outcome in &group {
        ingest(&stage.app, std::slice::from_ref(outcome))
            .await
            .unwrap();
    }
    assert_eq!(counts(&stage).await, written);
    stage.index_equals_database().await;
}

/// A group that cannot be written leaves no data behind, and its outcomes can be delivered again, one by one.
async fn a_group_that_fails_leaves_nothing(url: &str) {
    use a2a_registry_store::Handle as _;
    use sea_orm::ConnectionTrait as _;
    let stage = Stage::new(url).await;
    for number in 0..3 {
        stage.register(&format!("a{number}.agents-test.com")).await;
    }
    let before = counts(&stage).await;
    let group = stage
        .outcomes(|source| OriginAnswer::Card(card("Fails", &source.url)))
        .await;
    let statements = async |text: &str| {
        stage
            .store
            .connection()
            .execute_unprepared(text)
            .await
            .unwrap();
    };
    statements("ALTER TABLE events RENAME TO events_away").await;
    ingest(&stage.app, &group).await.unwrap_err();
    statements("ALTER TABLE events_away RENAME TO events").await;
    assert_eq!(counts(&stage).await, before);
    for outcome in &group {
        ingest(&stage.app, std::slice::from_ref(outcome))
            .await
            .unwrap();
    }
    assert_eq!(stage.agents().await.len(), 3);
    stage.index_equals_database().await;
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
    let stage = Stage::with(url, |config| config.governance.approve_all = true).await;
    for number in 0..DOMAINS {
        for side in ["group", "alone"] {
            stage
                .register(&format!("{side}{number}.agents-test.com"))
                .await;
        }
    }
    for round in 0..4 {
        let answer = |source: &source::Model| {
            let number = number_of(&source.url);
            match (number + round) % 4 {
                0 => OriginAnswer::Card(card(&format!("Agent {number}"), "The first text")),
                1 => OriginAnswer::Card(card(&format!("Agent {number}"), "Another text")),
                2 => OriginAnswer::Fails(AttemptOutcome::Gone),
                _ => OriginAnswer::Fails(AttemptOutcome::TlsInvalid),
            }
        };
        let outcomes = stage.outcomes(answer).await;
        let (group, alone): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .partition(|outcome| outcome.sources[0].attempts[0].url.contains("//group"));
        assert_eq!((group.len(), alone.len()), (DOMAINS, DOMAINS), "{round}");
        ingest(&stage.app, &group).await.unwrap();
        for outcome in &alone {
            ingest(&stage.app, std::slice::from_ref(outcome))
                .await
                .unwrap();
        }
        let mut stored: [Vec<_>; 2] = Default::default();
        for row in stage.agents().await {
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
        stage.advance(Duration::days(2));
    }
    stage.index_equals_database().await;
}

/// The largest possible group: every visit fetches the maximum number of sources, every card is new, and the domains
/// have further sources that are not due. That is more values than one statement can bind.
async fn the_largest_group_is_written(url: &str) {
    let stage = Stage::with(url, |config| config.governance.approve_all = true).await;
    let write = stage.store.write().await.unwrap();
    let now = stage.app.now();
    for number in 0..GROUP {
        let domain = a2a_registry_store::entity::domain::Model {
            created_at: now.0,
            not_before: now.0,
            ..crate::leases::domain(number, now.0)
        };
        let domain = write.domain_insert(domain).await.unwrap();
        for place in 0..MAX_SOURCES_PER_VISIT + 2 {
            let url = format!("https://{}/{place}.json", domain.name);
            let due = if place < MAX_SOURCES_PER_VISIT {
                now
            } else {
                now.plus(LEASE * 60)
            };
            write
                .source_insert(crate::leases::source(domain.id, &url, due.0))
                .await
                .unwrap();
        }
    }
    write.commit().await.unwrap();
    let group = stage
        .outcomes(|source| OriginAnswer::Card(card("Large", &source.url)))
        .await;
    assert_eq!(group.len(), GROUP);
    ingest(&stage.app, &group).await.unwrap();
    assert_eq!(stage.agents().await.len(), GROUP * MAX_SOURCES_PER_VISIT);
    stage.settle().await;
    assert_eq!(
        stage.app.index().num_agents(),
        (GROUP * MAX_SOURCES_PER_VISIT) as u64
    );

    stage.advance(Duration::days(2));
    let changed = stage
        .outcomes(|source| OriginAnswer::Card(card("Large, changed", &source.url)))
        .await;
    ingest(&stage.app, &changed).await.unwrap();
    let failed = count_events(&stage.store).await;
    assert!(failed > (GROUP * MAX_SOURCES_PER_VISIT) as u64);
}

/// The number of stored attempts of a source is bounded; the newest are kept.
async fn stored_attempts_are_limited(url: &str) {
    let stage = Stage::new(url).await;
    let (busy, quiet) = ("busy.agents-test.com", "quiet.agents-test.com");
    stage.register(quiet).await;
    stage.register(busy).await;
    stage
        .visit(|source| OriginAnswer::Card(card("Asked", &source.url)))
        .await;
    for _ in 0..ATTEMPTS_PER_SOURCE + 3 {
        stage.crawl(busy, OriginAnswer::NotModified).await;
    }
    let kept = async |domain: &str| {
        let row = domains::domain_by_name(&stage.store, domain)
            .await
            .unwrap()
            .unwrap();
        let sources = domains::sources_of(&stage.store, &[row.id]).await.unwrap();
        domains::attempts_of(&stage.store, &[sources[0].id])
            .await
            .unwrap()
    };
    let attempts = kept(busy).await;
    assert_eq!(attempts.len() as i64, ATTEMPTS_PER_SOURCE);
    let now = i64::try_from(stage.now().unix_timestamp_nanos() / 1000).unwrap();
    assert_eq!(attempts[0].at, now);
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt.outcome == "not_modified")
    );
    assert_eq!(kept(quiet).await.len(), 1);
}
