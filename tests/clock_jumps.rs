//! Clock jumps: the wall clock is set a year ahead and back, and no work waits for that year to pass.

use std::collections::BTreeSet;

use a2a_crawler::AttemptOutcome::Timeout;
use a2a_registry_api::Vouch;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::domains::actions::{domain_recrawl, vouch_for_domain};
use a2a_registry_core::visits::leases::release_visits;
use a2a_registry_domain::source::SourceState;
use a2a_registry_store::entity::{domain, proof, source};
use a2a_registry_store::{Executor as _, domains};
use sea_orm::EntityTrait as _;
use time::Duration;

use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, LEASE_MICROSECONDS, OriginResponse, card_bytes,
};

const YEAR: Duration = Duration::days(365);
const DOMAINS: usize = 6;

fn name(number: usize) -> String {
    format!("d{number}-agents-test.com")
}

/// A registry whose clock was a year ahead for a while, in which every kind of time was stored, among them the lease of
/// a process that has ended.
async fn stage_whose_clock_was_ahead(url: &str) -> InProcessRegistry {
    let registry = InProcessRegistry::new(url).await;
    for number in 0..DOMAINS {
        registry.register_domain(&name(number)).await;
    }
    registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Is there")))
        .await;
    registry.advance(YEAR);
    let mut group = registry
        .lease_due_outcomes(|source| match source.url.contains("d0-") {
            true => OriginResponse::Failure(Timeout),
            false => OriginResponse::NotModified,
        })
        .await;
    assert_eq!(group.len(), DOMAINS);
    group.truncate(DOMAINS - 1);
    ingest_outcomes(&registry.app, &group).await.unwrap();
    let vouch = Vouch {
        reason: "known to us".into(),
        account: None,
    };
    let admin = &registry.admin;
    vouch_for_domain(&registry.app, admin, &name(2), &vouch)
        .await
        .unwrap();
    let recrawl = a2a_registry_api::Recrawl { full: true };
    domain_recrawl(&registry.app, admin, &name(3), &recrawl)
        .await
        .unwrap();
    registry.advance(-YEAR);
    registry
}

/// Leases visits, which corrects times that are too far in the future, and returns them.
async fn correct_stored_times(registry: &InProcessRegistry) {
    let leased = lease_visits(&registry.app, 1, LEASE_MICROSECONDS)
        .await
        .unwrap();
    let held: Vec<(i64, i64)> = leased
        .iter()
        .map(|(row, _)| (row.id, row.lease.unwrap()))
        .collect();
    let at_once = std::time::Duration::ZERO;
    release_visits(&registry.app, &held, at_once).await.unwrap();
}

async fn assert_stored_times_are_near(registry: &InProcessRegistry) {
    let now = registry.app.now().0;
    let day = Duration::hours(31).whole_microseconds() as i64;
    let on = registry.store.connection();
    for row in domain::Entity::find().all(on).await.unwrap() {
        let planned = [row.visit_due_at, row.check_due_at, Some(row.not_before)];
        let leased = row
            .leased_until
            .into_iter()
            .map(|until| until + day - 3_900_000_000);
        for moment in planned.into_iter().flatten().chain(leased) {
            assert!(moment <= now + day, "{row:?}");
        }
    }
    for row in source::Entity::find().all(on).await.unwrap() {
        // A missing catalog rests for a week.
        let most = now
            + if row.liveness == SourceState::Absent {
                7 * day
            } else {
                day
            };
        assert!(row.next_due_at <= most, "{row:?}");
        assert!(row.planned_at.is_none_or(|at| at <= most), "{row:?}");
        let past = [
            row.last_success_at,
            row.last_full_at,
            row.failing_since,
            row.cause_latest,
        ];
        assert!(past.into_iter().flatten().all(|at| at <= now), "{row:?}");
    }
    let proofs = proof::Entity::find().all(on).await.unwrap();
    assert_eq!(proofs.len(), 1);
    assert!(
        proofs[0].held_at <= now && proofs[0].proved_at <= now,
        "{proofs:?}"
    );
}

/// Checks that every source is fetched within little more than a day.
async fn assert_every_source_is_visited(registry: &InProcessRegistry) {
    let mut visited = BTreeSet::new();
    for _ in 0..28 {
        registry.advance(Duration::HOUR);
        let group = registry
            .lease_due_outcomes(|_| OriginResponse::NotModified)
            .await;
        visited.extend(group.iter().map(|outcome| outcome.domain_key));
        ingest_outcomes(&registry.app, &group).await.unwrap();
    }
    assert_eq!(visited.len(), DOMAINS);
    for number in 0..DOMAINS {
        let row = domains::domain_by_name(&registry.store, &name(number)).await;
        let sources =
            domains::live_sources_by_domain(&registry.store, &[row.unwrap().unwrap().id]).await;
        let now = registry.app.now().0;
        let fetched = sources.unwrap()[0].last_success_at.unwrap();
        assert!(now - fetched <= 28 * 3_600_000_000, "{}", name(number));
    }
}

both_databases!(
    a_clock_that_was_ahead_delays_nothing,
    a_process_that_starts_later_corrects_stored_times,
    legitimate_distant_times_stay
);

async fn a_clock_that_was_ahead_delays_nothing(url: &str) {
    let registry = stage_whose_clock_was_ahead(url).await;
    registry.advance(Duration::MINUTE);
    correct_stored_times(&registry).await;
    assert_stored_times_are_near(&registry).await;
    assert_every_source_is_visited(&registry).await;
}

/// A process that starts with the right clock corrects the times that an earlier one stored.
async fn a_process_that_starts_later_corrects_stored_times(url: &str) {
    let registry = stage_whose_clock_was_ahead(url).await.restart(|_| ()).await;
    correct_stored_times(&registry).await;
    assert_stored_times_are_near(&registry).await;
    assert_every_source_is_visited(&registry).await;
}

/// Legitimate times far in the future stay, such as a `Retry-After` of a week.
async fn legitimate_distant_times_stay(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_with_card(&name(0), &card_bytes("Rests", "A week"))
        .await;
    registry.advance(Duration::days(2));
    registry
        .run_due_visits(|_| OriginResponse::RateLimited(600_000))
        .await;
    let row = async || {
        domains::domain_by_name(&registry.store, &name(0))
            .await
            .unwrap()
            .unwrap()
    };
    let before = row().await;
    // So do times stored by a replica whose clock is a little ahead, and times stored a moment ago.
    let behind = registry.app.now().0 - 60_000_000;
    assert_eq!(registry.store.repair_future_times(behind).await.unwrap(), 0);
    assert_eq!(row().await, before);
}
