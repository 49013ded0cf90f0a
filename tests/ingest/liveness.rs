//! Liveness of a card over days, by the test's own clock (docs/model.md#liveness).

use a2a_crawler::AttemptOutcome::{Gone, NotFound, Timeout};
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::crawl::job::visits_lease;
use a2a_registry_core::domains::acts::domain_recrawl;
use a2a_registry_core::events::list::events_after;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_core::visits::leasing::visits_next_due;
use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState};
use a2a_registry_domain::source::SourceKind;
use time::Duration;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAIN: &str = "fading.agents-test.com";

/// Advances the clock to the next due visit, whose fetch gets this response.
async fn next_visit(stage: &Stage, answer: OriginAnswer) {
    let due = visits_next_due(&stage.app)
        .await
        .unwrap()
        .expect("a visit is scheduled");
    stage.advance(time::OffsetDateTime::from(due) - stage.now());
    assert_eq!(stage.visit(|_| answer.clone()).await, 1);
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
    let stage = Stage::new(url).await;
    let bytes = card("Fading", "Fades");
    let agent = stage.publish_approved(DOMAIN, &bytes).await;
    stage.index_equals_database().await;
    stage.crawl(DOMAIN, OriginAnswer::Fails(NotFound)).await;
    let row = stage.agent(DOMAIN).await;
    assert_eq!(row.liveness, LivenessState::Stale);
    assert!(
        row.liveness_reason
            .unwrap()
            .starts_with("the origin responds with status 404 since")
    );
    stage.index_equals_database().await;
    let hit = stage
        .found(&Caller::default(), &SearchQuery::default())
        .await
        .agents
        .remove(0);
    assert_eq!(hit.summary.liveness.state.as_str(), "stale");

    let began = stage.now();
    let mut fetches = 1;
    while stage.agent(DOMAIN).await.liveness == LivenessState::Stale {
        next_visit(&stage, OriginAnswer::Fails(NotFound)).await;
        fetches += 1;
        let lasted = stage.now() - began;
        let gone = stage.agent(DOMAIN).await.liveness == LivenessState::Gone;
        assert_eq!(
            gone,
            lasted >= Duration::hours(24) && fetches >= 3,
            "{fetches} fetches in {lasted}"
        );
    }
    stage.index_equals_database().await;
    assert!(stage.found_by_anyone().await.is_empty());
    let gone = SearchQuery {
        liveness: vec!["gone".into()],
        ..SearchQuery::default()
    };
    assert_eq!(stage.found(&Caller::default(), &gone).await.total, 1);
    assert_eq!(stage.served(agent.id).await.as_ref(), Some(&bytes));

    next_visit(&stage, OriginAnswer::Card(bytes)).await;
    let row = stage.agent(DOMAIN).await;
    assert_eq!(
        (row.liveness.as_str(), row.liveness_reason, row.gone_since),
        ("fresh", None, None)
    );
    assert_eq!(row.lifecycle, Lifecycle::Approved);
    stage.index_equals_database().await;
    assert_eq!(stage.found_by_anyone().await.len(), 1);
}

/// An agent gone for thirty days is retired for good: nothing is fetched any more, the open review is withdrawn, and
/// registering again makes another agent.
async fn an_agent_gone_for_thirty_days_is_retired(url: &str) {
    let stage = Stage::new(url).await;
    let agent = stage
        .publish_approved(DOMAIN, &card("Fading", "Fades"))
        .await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Fading", "Asks")))
        .await;
    stage.crawl(DOMAIN, OriginAnswer::Fails(Gone)).await;
    stage.advance(Duration::hours(2));
    stage.crawl(DOMAIN, OriginAnswer::Fails(Gone)).await;
    let gone = stage.agent(DOMAIN).await.gone_since.unwrap();
    while stage.agents().await[0].retired_at.is_none() {
        next_visit(&stage, OriginAnswer::Fails(Gone)).await;
    }
    let row = stage.agents().await.remove(0);
    let days = Duration::microseconds(row.retired_at.unwrap() - gone);
    assert!(
        days >= Duration::days(30) && days < Duration::days(31),
        "after {days}"
    );
    assert_eq!(row.lifecycle, Lifecycle::Retired);
    assert_eq!(stage.open_review(agent.id).await, None);
    stage.index_equals_database().await;
    stage.advance(Duration::days(2));
    assert_eq!(stage.visit(|_| panic!("no source is fetched")).await, 0);
    assert_eq!(visits_next_due(&stage.app).await.unwrap(), None);

    let again = stage.publish(DOMAIN, &card("Fading", "Is back")).await;
    assert_ne!(again.id, agent.id);
    stage.index_equals_database().await;
}

/// 304 confirms the card: nothing else changes.
async fn not_modified_confirms_the_card(url: &str) {
    let stage = Stage::new(url).await;
    let agent = stage
        .publish_approved(DOMAIN, &card("Steady", "Stays"))
        .await;
    stage.crawl(DOMAIN, OriginAnswer::Fails(Timeout)).await;
    assert_eq!(stage.agent(DOMAIN).await.liveness, LivenessState::Stale);
    stage.crawl(DOMAIN, OriginAnswer::NotModified).await;
    let row = stage.agent(DOMAIN).await;
    assert_eq!(row.liveness, LivenessState::Fresh);
    let now = i64::try_from(stage.now().unix_timestamp_nanos() / 1000).unwrap();
    assert_eq!(row.last_seen_at, Some(now));
    assert_eq!(stage.versions(agent.id).await.len(), 1);
    stage.index_equals_database().await;
}

/// An agent of two sources has the better liveness of the two, also within one visit.
async fn the_better_source_counts(url: &str) {
    let stage = Stage::new(url).await;
    let bytes = card("Twofold", "Lies in two places");
    stage.register(DOMAIN).await;
    stage
        .register_url(&format!("https://{DOMAIN}/card.json"))
        .await;
    stage.visit(|_| OriginAnswer::Card(bytes.clone())).await;
    let agent = stage.agent(DOMAIN).await;
    stage.approve(agent.id).await;
    for _ in 0..3 {
        stage.advance(Duration::days(25));
        let answer = |source: &a2a_registry_store::entity::source::Model| {
            if source.kind == SourceKind::WellKnown {
                OriginAnswer::Fails(NotFound)
            } else {
                OriginAnswer::NotModified
            }
        };
        domain_recrawl(
            &stage.app,
            &stage.admin,
            DOMAIN,
            &a2a_registry_api::Recrawl::default(),
        )
        .await
        .unwrap();
        stage.visit(answer).await;
        assert_eq!(stage.agent(DOMAIN).await.liveness, LivenessState::Fresh);
    }
    stage.settle().await;
    let events = events_after(&stage.app, &stage.admin, &mut 0, 1000)
        .await
        .unwrap();
    let flaps = events
        .iter()
        .filter(|event| event.kind.as_str() == "agent.liveness")
        .count();
    assert_eq!(flaps, 0, "the liveness has not changed");
    // The last good source fails too, long after the first one: gone, not retired at once.
    stage.crawl(DOMAIN, OriginAnswer::Fails(NotFound)).await;
    assert_eq!(stage.agent(DOMAIN).await.liveness, LivenessState::Stale);
    stage.index_equals_database().await;
}

/// A request for a visit that comes during a visit is deferred, never dropped.
async fn a_request_during_a_visit_is_kept(url: &str) {
    let stage = Stage::new(url).await;
    stage
        .publish_approved(DOMAIN, &card("Wished", "Before"))
        .await;
    stage.advance(Duration::days(2));
    let under_way = stage
        .outcomes(|_| OriginAnswer::Card(card("Wished", "Before")))
        .await;
    assert_eq!(under_way.len(), 1);
    stage.advance(Duration::seconds(1));
    let recrawl = a2a_registry_api::Recrawl { full: true };
    let accepted = domain_recrawl(&stage.app, &stage.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    stage.advance(Duration::seconds(1));
    ingest(&stage.app, &under_way).await.unwrap();
    stage.advance(Duration::minutes(2));
    let due = visits_next_due(&stage.app).await.unwrap().unwrap();
    assert!(
        time::OffsetDateTime::from(due) <= stage.now(),
        "{due:?} after {accepted:?}"
    );
    let leased = visits_lease(&stage.app, 10, 1_000_000).await.unwrap();
    assert!(leased[0].1[0].full_wanted, "a full fetch, as requested");
}

/// `Retry-After` of a host holds for all its sources, also against requested visits.
async fn retry_after_holds_for_the_whole_host(url: &str) {
    let stage = Stage::new(url).await;
    let other = format!("https://{DOMAIN}/other.json");
    stage
        .publish_approved(DOMAIN, &card("Weary", "Wants rest"))
        .await;
    stage.register_url(&other).await;
    stage.advance(Duration::days(2));
    let asked = stage.visit(|source| match source.kind.as_str() {
        "well_known" => OriginAnswer::Rests(2 * 3600),
        _ => OriginAnswer::Card(card("Weary", "Lies beside it")),
    });
    assert_eq!(asked.await, 1);
    let rested = stage.now() + Duration::hours(2);
    let recrawl = a2a_registry_api::Recrawl { full: true };
    let accepted = domain_recrawl(&stage.app, &stage.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    assert_eq!(time::OffsetDateTime::from(accepted.next_due), rested);
    stage
        .register_url(&format!("https://{DOMAIN}/third.json"))
        .await;
    stage.advance(Duration::hours(2) - Duration::SECOND);
    assert!(
        visits_lease(&stage.app, 10, 1_000_000)
            .await
            .unwrap()
            .is_empty()
    );
    stage.advance(Duration::SECOND);
    assert_eq!(
        visits_lease(&stage.app, 10, 1_000_000).await.unwrap().len(),
        1
    );
}

/// The first timeout is followed by a visit after half a minute, in which a host wakes up; the second one is not.
async fn a_host_that_slept_is_fetched_again_soon(url: &str) {
    let stage = Stage::new(url).await;
    stage.register(DOMAIN).await;
    let next = async || {
        let due = visits_next_due(&stage.app).await.unwrap().unwrap();
        (time::OffsetDateTime::from(due) - stage.now()).whole_seconds()
    };
    assert_eq!(stage.visit(|_| OriginAnswer::Fails(Timeout)).await, 1);
    let soon = next().await;
    assert!((27..=33).contains(&soon), "{soon}");
    next_visit(&stage, OriginAnswer::Fails(Timeout)).await;
    assert!(next().await >= 59);
    next_visit(&stage, OriginAnswer::Card(card("Sleepy", "Is awake"))).await;
    assert_eq!(stage.agent(DOMAIN).await.liveness, LivenessState::Fresh);
    // It falls asleep again, and other failures than timeouts are no sign of that.
    stage.crawl(DOMAIN, OriginAnswer::Fails(Timeout)).await;
    let soon = next().await;
    assert!((27..=33).contains(&soon), "{soon}");
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Sleepy", "Is awake")))
        .await;
    stage.crawl(DOMAIN, OriginAnswer::Fails(NotFound)).await;
    assert!(next().await >= 59);
}

/// A repeated request for a visit that already waits gets the same response and writes nothing.
async fn repeated_requests_for_a_visit_are_one_event(url: &str) {
    let stage = Stage::new(url).await;
    stage
        .publish_approved(DOMAIN, &card("Wished", "For often"))
        .await;
    stage.advance(Duration::minutes(2));
    let request_events = async || {
        let events = events_after(&stage.app, &stage.admin, &mut 0, 1000)
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
        let accepted = domain_recrawl(&stage.app, &stage.admin, DOMAIN, &recrawl)
            .await
            .unwrap();
        answers.push((
            request_events().await - before,
            time::OffsetDateTime::from(accepted.next_due),
        ));
    }
    let due = stage.now();
    assert_eq!(answers, [(1, due), (1, due), (2, due), (2, due), (2, due)]);
    let under_way = stage.outcomes(|_| OriginAnswer::NotModified).await;
    for _ in 0..3 {
        domain_recrawl(
            &stage.app,
            &stage.admin,
            DOMAIN,
            &a2a_registry_api::Recrawl::default(),
        )
        .await
        .unwrap();
    }
    assert_eq!(request_events().await - before, 3);
    ingest(&stage.app, &under_way).await.unwrap();
}

/// A visit that was requested may end after its lease has expired. A request made before that is kept too.
async fn a_request_after_an_expired_lease_is_kept(url: &str) {
    let stage = Stage::new(url).await;
    stage
        .publish_approved(DOMAIN, &card("Wished", "Late"))
        .await;
    stage.advance(Duration::minutes(2));
    let recrawl = a2a_registry_api::Recrawl::default();
    domain_recrawl(&stage.app, &stage.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    let under_way = stage.outcomes(|_| OriginAnswer::NotModified).await;
    stage.advance(Duration::minutes(2));
    domain_recrawl(&stage.app, &stage.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    ingest(&stage.app, &under_way).await.unwrap();
    stage.advance(Duration::minutes(2));
    let due = visits_next_due(&stage.app).await.unwrap().unwrap();
    assert!(time::OffsetDateTime::from(due) <= stage.now(), "{due:?}");
}
