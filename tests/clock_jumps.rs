//! Clock jumps: the wall clock is set a year ahead and back, and nothing waits for that year to pass.

use std::collections::BTreeSet;

use a2a_crawler::AttemptOutcome::Timeout;
use a2a_registry_api::Vouch;
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::crawl::job::visits_lease;
use a2a_registry_core::domains::acts::{domain_recrawl, domain_vouch};
use a2a_registry_core::visits::leasing::visits_give_back;
use a2a_registry_domain::source::SourceState;
use a2a_registry_store::entity::{domain, proof, source};
use a2a_registry_store::{Handle as _, domains};
use sea_orm::EntityTrait as _;
use time::Duration;

use crate::support::both_databases;
use crate::support::stage::{LEASE, OriginAnswer, Stage, card};

const YEAR: Duration = Duration::days(365);
const DOMAINS: usize = 6;

fn name(number: usize) -> String {
    format!("d{number}-agents-test.com")
}

/// A registry whose clock was a year ahead for a while, in which every kind of time was stored, among them the lease of
/// a process that has ended.
async fn stage_whose_clock_was_ahead(url: &str) -> Stage {
    let stage = Stage::new(url).await;
    for number in 0..DOMAINS {
        stage.register(&name(number)).await;
    }
    stage
        .visit(|source| OriginAnswer::Card(card(&source.url, "Is there")))
        .await;
    stage.advance(YEAR);
    let mut group = stage
        .outcomes(|source| match source.url.contains("d0-") {
            true => OriginAnswer::Fails(Timeout),
            false => OriginAnswer::NotModified,
        })
        .await;
    assert_eq!(group.len(), DOMAINS);
    group.truncate(DOMAINS - 1);
    ingest(&stage.app, &group).await.unwrap();
    let vouch = Vouch {
        reason: "known to us".into(),
        account: None,
    };
    let admin = &stage.admin;
    domain_vouch(&stage.app, admin, &name(2), &vouch)
        .await
        .unwrap();
    let recrawl = a2a_registry_api::Recrawl { full: true };
    domain_recrawl(&stage.app, admin, &name(3), &recrawl)
        .await
        .unwrap();
    stage.advance(-YEAR);
    stage
}

/// Leases visits, which corrects times that are too far in the future, and returns them.
async fn correct_stored_times(stage: &Stage) {
    let leased = visits_lease(&stage.app, 1, LEASE).await.unwrap();
    let held: Vec<(i64, i64)> = leased
        .iter()
        .map(|(row, _)| (row.id, row.lease.unwrap()))
        .collect();
    let at_once = std::time::Duration::ZERO;
    visits_give_back(&stage.app, &held, at_once).await.unwrap();
}

async fn assert_stored_times_are_near(stage: &Stage) {
    let now = stage.app.now().0;
    let day = Duration::hours(31).whole_microseconds() as i64;
    let on = stage.store.connection();
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
async fn assert_every_source_is_visited(stage: &Stage) {
    let mut visited = BTreeSet::new();
    for _ in 0..28 {
        stage.advance(Duration::HOUR);
        let group = stage.outcomes(|_| OriginAnswer::NotModified).await;
        visited.extend(group.iter().map(|outcome| outcome.domain_key));
        ingest(&stage.app, &group).await.unwrap();
    }
    assert_eq!(visited.len(), DOMAINS);
    for number in 0..DOMAINS {
        let row = domains::domain_by_name(&stage.store, &name(number)).await;
        let sources = domains::sources_of(&stage.store, &[row.unwrap().unwrap().id]).await;
        let now = stage.app.now().0;
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
    let stage = stage_whose_clock_was_ahead(url).await;
    stage.advance(Duration::MINUTE);
    correct_stored_times(&stage).await;
    assert_stored_times_are_near(&stage).await;
    assert_every_source_is_visited(&stage).await;
}

/// A process that starts with the right clock corrects the times that an earlier one stored.
async fn a_process_that_starts_later_corrects_stored_times(url: &str) {
    let stage = stage_whose_clock_was_ahead(url).await.restart(|_| ()).await;
    correct_stored_times(&stage).await;
    assert_stored_times_are_near(&stage).await;
    assert_every_source_is_visited(&stage).await;
}

/// Legitimate times far in the future stay, such as a `Retry-After` of a week.
async fn legitimate_distant_times_stay(url: &str) {
    let stage = Stage::new(url).await;
    stage.publish(&name(0), &card("Rests", "A week")).await;
    stage.advance(Duration::days(2));
    stage.visit(|_| OriginAnswer::Rests(600_000)).await;
    let row = async || {
        domains::domain_by_name(&stage.store, &name(0))
            .await
            .unwrap()
            .unwrap()
    };
    let before = row().await;
    // So do times stored by a replica whose clock is a little ahead, and times stored a moment ago.
    let behind = stage.app.now().0 - 60_000_000;
    assert_eq!(stage.store.moments_repair(behind).await.unwrap(), 0);
    assert_eq!(row().await, before);
}
