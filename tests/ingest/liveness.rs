//! Liveness of a card over days, under the test's clock (docs/publish/not-listed.md#the-card-cannot-be-fetched).

use a2a_crawler::AttemptOutcome::{Gone, NotFound, Timeout};
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_core::visits::leases::next_visit_due;
use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState};
use a2a_registry_domain::source::SourceKind;
use time::Duration;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const DOMAIN: &str = "fading.agents-test.com";

/// Advances the clock to the next due visit, whose fetch gets this response.
async fn next_visit(registry: &InProcessRegistry, answer: OriginResponse) {
    let due = next_visit_due(&registry.app)
        .await
        .unwrap()
        .expect("a visit is scheduled");
    registry.advance(time::OffsetDateTime::from(due) - registry.now());
    assert_eq!(registry.run_due_visits(|_| answer.clone()).await, 1);
}

both_databases!(
    a_missing_card_becomes_stale_then_gone_and_comes_back,
    an_agent_gone_for_thirty_days_is_retired,
    not_modified_confirms_the_card,
    the_better_source_counts,
    a_host_that_slept_is_fetched_again_soon,
    a_request_during_a_visit_is_kept,
    retry_after_holds_for_the_whole_host,
    repeated_requests_for_a_visit_are_one_event,
    a_request_after_an_expired_lease_is_kept
);

/// 404 makes an agent stale at once, with the reason, and gone after a day and three attempts; the card is still
/// served, but found only by searches that include gone agents. It comes back unchanged.
async fn a_missing_card_becomes_stale_then_gone_and_comes_back(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Fading", "Fades");
    let agent = registry.register_approved_card(DOMAIN, &bytes).await;
    registry.assert_index_matches_database().await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(NotFound))
        .await;
    let row = registry.agent(DOMAIN).await;
    assert_eq!(row.liveness, LivenessState::Stale);
    assert!(
        row.liveness_reason
            .unwrap()
            .starts_with("the origin responds with status 404 since")
    );
    registry.assert_index_matches_database().await;
    let hit = registry
        .search_all(&Caller::default(), &SearchQuery::default())
        .await
        .agents
        .remove(0);
    assert_eq!(hit.summary.liveness.state.as_str(), "stale");

    let began = registry.now();
    let mut fetches = 1;
    while registry.agent(DOMAIN).await.liveness == LivenessState::Stale {
        next_visit(&registry, OriginResponse::Failure(NotFound)).await;
        fetches += 1;
        let lasted = registry.now() - began;
        let gone = registry.agent(DOMAIN).await.liveness == LivenessState::Gone;
        assert_eq!(
            gone,
            lasted >= Duration::hours(24) && fetches >= 3,
            "{fetches} fetches in {lasted}"
        );
    }
    registry.assert_index_matches_database().await;
    assert!(registry.publicly_found_ids().await.is_empty());
    let gone = SearchQuery {
        liveness: vec!["gone".into()],
        ..SearchQuery::default()
    };
    assert_eq!(
        registry.search_all(&Caller::default(), &gone).await.total,
        1
    );
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&bytes)
    );

    next_visit(&registry, OriginResponse::Card(bytes)).await;
    let row = registry.agent(DOMAIN).await;
    assert_eq!(
        (row.liveness.as_str(), row.liveness_reason, row.gone_since),
        ("fresh", None, None)
    );
    assert_eq!(row.lifecycle, Lifecycle::Approved);
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await.len(), 1);
}

/// An agent gone for thirty days is retired for good: nothing is fetched any more, the open review is withdrawn, and
/// registering again makes another agent.
async fn an_agent_gone_for_thirty_days_is_retired(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card(DOMAIN, &card_bytes("Fading", "Fades"))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(card_bytes("Fading", "Asks")))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Gone))
        .await;
    registry.advance(Duration::hours(2));
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Gone))
        .await;
    let gone = registry.agent(DOMAIN).await.gone_since.unwrap();
    while registry.agents().await[0].retired_at.is_none() {
        next_visit(&registry, OriginResponse::Failure(Gone)).await;
    }
    let row = registry.agents().await.remove(0);
    let days = Duration::microseconds(row.retired_at.unwrap() - gone);
    assert!(
        days >= Duration::days(30) && days < Duration::days(31),
        "after {days}"
    );
    assert_eq!(row.lifecycle, Lifecycle::Retired);
    assert_eq!(registry.find_open_review(agent.id).await, None);
    registry.assert_index_matches_database().await;
    registry.advance(Duration::days(2));
    assert_eq!(
        registry
            .run_due_visits(|_| panic!("no source is fetched"))
            .await,
        0
    );
    assert_eq!(next_visit_due(&registry.app).await.unwrap(), None);

    let again = registry
        .register_with_card(DOMAIN, &card_bytes("Fading", "Is back"))
        .await;
    assert_ne!(again.id, agent.id);
    registry.assert_index_matches_database().await;
}

/// 304 confirms the card: nothing else changes.
async fn not_modified_confirms_the_card(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card(DOMAIN, &card_bytes("Steady", "Stays"))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Timeout))
        .await;
    assert_eq!(registry.agent(DOMAIN).await.liveness, LivenessState::Stale);
    registry
        .crawl_domain(DOMAIN, OriginResponse::NotModified)
        .await;
    let row = registry.agent(DOMAIN).await;
    assert_eq!(row.liveness, LivenessState::Fresh);
    let now = i64::try_from(registry.now().unix_timestamp_nanos() / 1000).unwrap();
    assert_eq!(row.last_seen_at, Some(now));
    assert_eq!(registry.versions(agent.id).await.len(), 1);
    registry.assert_index_matches_database().await;
}

/// An agent of two sources has the better liveness of the two, also within one visit.
async fn the_better_source_counts(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Twofold", "Lies in two places");
    registry.register_domain(DOMAIN).await;
    registry
        .register_card_url(&format!("https://{DOMAIN}/card.json"))
        .await;
    registry
        .run_due_visits(|_| OriginResponse::Card(bytes.clone()))
        .await;
    let agent = registry.agent(DOMAIN).await;
    registry.approve_open_review(agent.id).await;
    for _ in 0..3 {
        registry.advance(Duration::days(25));
        let answer = |source: &a2a_registry_store::entity::source::Model| {
            if source.kind == SourceKind::WellKnown {
                OriginResponse::Failure(NotFound)
            } else {
                OriginResponse::NotModified
            }
        };
        domain_recrawl(
            &registry.app,
            &registry.admin,
            DOMAIN,
            &a2a_registry_api::Recrawl::default(),
        )
        .await
        .unwrap();
        registry.run_due_visits(answer).await;
        assert_eq!(registry.agent(DOMAIN).await.liveness, LivenessState::Fresh);
    }
    registry.catch_up().await;
    let events = load_events_after(
        &registry.app,
        &registry.admin,
        &EventFilter::default(),
        &mut 0,
        1000,
    )
    .await
    .unwrap();
    let flaps = events
        .iter()
        .filter(|event| event.kind.as_str() == "agent.liveness")
        .count();
    assert_eq!(flaps, 0, "the liveness has not changed");
    // The last good source fails too, long after the first one: gone, not retired at once.
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(NotFound))
        .await;
    assert_eq!(registry.agent(DOMAIN).await.liveness, LivenessState::Stale);
    registry.assert_index_matches_database().await;
}

/// A request for a visit that comes during a visit is deferred, never dropped.
async fn a_request_during_a_visit_is_kept(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(DOMAIN, &card_bytes("Wished", "Before"))
        .await;
    registry.advance(Duration::days(2));
    let under_way = registry
        .lease_due_outcomes(|_| OriginResponse::Card(card_bytes("Wished", "Before")))
        .await;
    assert_eq!(under_way.len(), 1);
    registry.advance(Duration::seconds(1));
    let recrawl = a2a_registry_api::Recrawl { full: true };
    let accepted = domain_recrawl(&registry.app, &registry.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    registry.advance(Duration::seconds(1));
    ingest_outcomes(&registry.app, &under_way).await.unwrap();
    registry.advance(Duration::minutes(2));
    let due = next_visit_due(&registry.app).await.unwrap().unwrap();
    assert!(
        time::OffsetDateTime::from(due) <= registry.now(),
        "{due:?} after {accepted:?}"
    );
    let leased = lease_visits(&registry.app, 10, 1_000_000).await.unwrap();
    assert!(leased[0].1[0].full_wanted, "a full fetch, as requested");
}

/// `Retry-After` of a host holds for all its sources, also against requested visits.
async fn retry_after_holds_for_the_whole_host(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let other = format!("https://{DOMAIN}/other.json");
    registry
        .register_approved_card(DOMAIN, &card_bytes("Weary", "Wants rest"))
        .await;
    registry.register_card_url(&other).await;
    registry.advance(Duration::days(2));
    let asked = registry.run_due_visits(|source| match source.kind.as_str() {
        "well_known" => OriginResponse::RateLimited(2 * 3600),
        _ => OriginResponse::Card(card_bytes("Weary", "Lies beside it")),
    });
    assert_eq!(asked.await, 1);
    let rested = registry.now() + Duration::hours(2);
    let recrawl = a2a_registry_api::Recrawl { full: true };
    let accepted = domain_recrawl(&registry.app, &registry.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    assert_eq!(time::OffsetDateTime::from(accepted.next_due), rested);
    registry
        .register_card_url(&format!("https://{DOMAIN}/third.json"))
        .await;
    registry.advance(Duration::hours(2) - Duration::SECOND);
    assert!(
        lease_visits(&registry.app, 10, 1_000_000)
            .await
            .unwrap()
            .is_empty()
    );
    registry.advance(Duration::SECOND);
    assert_eq!(
        lease_visits(&registry.app, 10, 1_000_000)
            .await
            .unwrap()
            .len(),
        1
    );
}

/// The first timeout is followed by a visit after half a minute, in which a host wakes up; the second one is not.
async fn a_host_that_slept_is_fetched_again_soon(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_domain(DOMAIN).await;
    let next = async || {
        let due = next_visit_due(&registry.app).await.unwrap().unwrap();
        (time::OffsetDateTime::from(due) - registry.now()).whole_seconds()
    };
    assert_eq!(
        registry
            .run_due_visits(|_| OriginResponse::Failure(Timeout))
            .await,
        1
    );
    let soon = next().await;
    assert!((27..=33).contains(&soon), "{soon}");
    next_visit(&registry, OriginResponse::Failure(Timeout)).await;
    assert!(next().await >= 59);
    next_visit(
        &registry,
        OriginResponse::Card(card_bytes("Sleepy", "Is awake")),
    )
    .await;
    assert_eq!(registry.agent(DOMAIN).await.liveness, LivenessState::Fresh);
    // It falls asleep again, and other failures than timeouts are no sign of that.
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Timeout))
        .await;
    let soon = next().await;
    assert!((27..=33).contains(&soon), "{soon}");
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Sleepy", "Is awake")),
        )
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(NotFound))
        .await;
    assert!(next().await >= 59);
}

/// A repeated request for a visit that already waits gets the same response and writes nothing.
async fn repeated_requests_for_a_visit_are_one_event(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(DOMAIN, &card_bytes("Wished", "For often"))
        .await;
    registry.advance(Duration::minutes(2));
    let request_events = async || {
        let events = load_events_after(
            &registry.app,
            &registry.admin,
            &EventFilter::default(),
            &mut 0,
            1000,
        )
        .await
        .unwrap();
        events
            .iter()
            .filter(|event| event.kind.as_str() == "domain.recrawl")
            .count()
    };
    let before = request_events().await;
    let mut answers = Vec::new();
    for full in [false, false, true, true, false] {
        let recrawl = a2a_registry_api::Recrawl { full };
        let accepted = domain_recrawl(&registry.app, &registry.admin, DOMAIN, &recrawl)
            .await
            .unwrap();
        answers.push((
            request_events().await - before,
            time::OffsetDateTime::from(accepted.next_due),
        ));
    }
    let due = registry.now();
    assert_eq!(answers, [(1, due), (1, due), (2, due), (2, due), (2, due)]);
    let under_way = registry
        .lease_due_outcomes(|_| OriginResponse::NotModified)
        .await;
    for _ in 0..3 {
        domain_recrawl(
            &registry.app,
            &registry.admin,
            DOMAIN,
            &a2a_registry_api::Recrawl::default(),
        )
        .await
        .unwrap();
    }
    assert_eq!(request_events().await - before, 3);
    ingest_outcomes(&registry.app, &under_way).await.unwrap();
}

/// A visit that was requested may end after its lease has expired. A request made before that is kept too.
async fn a_request_after_an_expired_lease_is_kept(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(DOMAIN, &card_bytes("Wished", "Late"))
        .await;
    registry.advance(Duration::minutes(2));
    let recrawl = a2a_registry_api::Recrawl::default();
    domain_recrawl(&registry.app, &registry.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    let under_way = registry
        .lease_due_outcomes(|_| OriginResponse::NotModified)
        .await;
    registry.advance(Duration::minutes(2));
    domain_recrawl(&registry.app, &registry.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    ingest_outcomes(&registry.app, &under_way).await.unwrap();
    registry.advance(Duration::minutes(2));
    let due = next_visit_due(&registry.app).await.unwrap().unwrap();
    assert!(time::OffsetDateTime::from(due) <= registry.now(), "{due:?}");
}
