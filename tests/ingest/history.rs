//! History of a source: its daily totals, its attempts, and their expiry.

use a2a_crawler::Attempt;
use a2a_crawler::AttemptOutcome::{Gone, NotACard, NotFound, Timeout, TlsInvalid};
use a2a_registry_api::{Recrawl, SourceDay};
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::domains::acts::{domain_recrawl, domain_show};
use a2a_registry_core::health::housekeeping::{BODY_RETENTION, housekeep};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::{crawl, domains, versions};
use time::{Duration, OffsetDateTime};

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAIN: &str = "past.agents-test.com";

/// Daily totals of the well-known source, newest day first.
async fn days(stage: &Stage) -> Vec<SourceDay> {
    let shown = domain_show(&stage.app, &stage.admin, DOMAIN).await.unwrap();
    shown.sources[0].days.clone()
}

/// When the well-known source is due next.
async fn next_due(stage: &Stage) -> OffsetDateTime {
    let shown = domain_show(&stage.app, &stage.admin, DOMAIN).await.unwrap();
    shown.sources[0].next_due.unwrap().into()
}

both_databases!(
    fetches_are_totalled_by_day,
    requested_visits_do_not_change_the_daily_totals,
    a_card_at_the_older_path_is_one_successful_fetch,
    invalid_tls_ends_trust_at_once,
    a_page_instead_of_a_card_keeps_the_last_good_card,
    bytes_of_ended_agents_are_deleted
);

/// Every scheduled fetch counts for its day, and ninety days are kept and shown.
async fn fetches_are_totalled_by_day(url: &str) {
    let stage = Stage::new(url).await;
    stage
        .publish_approved(DOMAIN, &card("Past", "Has one"))
        .await;
    for answer in [OriginAnswer::NotModified, OriginAnswer::Fails(NotACard)] {
        stage.advance(Duration::hours(12));
        assert_eq!(stage.visit(|_| answer.clone()).await, 1);
    }
    let days = days(&stage).await;
    let sum = |of: fn(&SourceDay) -> u32| days.iter().map(of).sum::<u32>();
    assert_eq!(days.last().unwrap().day, "2026-11-18");
    assert_eq!((sum(|day| day.looks), sum(|day| day.good)), (3, 2));
    for _ in 0..crawl::DAYS_PER_SOURCE + 5 {
        stage.advance(Duration::days(2));
        assert_eq!(stage.visit(|_| OriginAnswer::NotModified).await, 1);
    }
    let row = domains::domain_by_name(&stage.store, DOMAIN)
        .await
        .unwrap()
        .unwrap();
    let sources = domains::sources_of(&stage.store, &[row.id]).await.unwrap();
    let kept = crawl::source_days_of(&stage.store, &[sources[0].id])
        .await
        .unwrap();
    assert_eq!(kept.len() as i32, crawl::DAYS_PER_SOURCE / 2);
    assert!(kept.iter().all(|day| (day.looks, day.good) == (1, 1)));
    let today = stage.app.now().0.div_euclid(86_400_000_000) as i32;
    assert_eq!(
        (kept[0].day, kept.last().unwrap().day),
        (today, today - crawl::DAYS_PER_SOURCE + 2)
    );
    let shown = domain_show(&stage.app, &stage.admin, DOMAIN).await.unwrap();
    assert_eq!(
        shown.sources[0].days.len() as i32,
        crawl::DAYS_PER_SOURCE / 2
    );
}

/// Requested visits neither spoil nor improve the totals, and do not replace scheduled ones: an owner who requests
/// visits again and again still has its outages counted.
async fn requested_visits_do_not_change_the_daily_totals(url: &str) {
    let stage = Stage::new(url).await;
    stage
        .publish_approved(DOMAIN, &card("Past", "Has one"))
        .await;
    let first = days(&stage).await;
    assert_eq!(
        (first[0].looks, first[0].good),
        (1, 1),
        "the first visit counts as scheduled"
    );
    let due = next_due(&stage).await;
    for answer in [
        OriginAnswer::NotModified,
        OriginAnswer::NotModified,
        OriginAnswer::Fails(NotACard),
    ] {
        stage.crawl_conditionally(DOMAIN, |_| answer.clone()).await;
    }
    assert_eq!(days(&stage).await, first);
    assert_eq!(
        stage.agent(DOMAIN).await.liveness,
        LivenessState::Stale,
        "requested visits change the state"
    );
    assert!(
        next_due(&stage).await <= due,
        "a scheduled visit is not postponed"
    );
    let due = next_due(&stage).await;

    // At the scheduled time, a requested visit counts as the scheduled one.
    stage.advance(due - stage.now());
    stage
        .crawl_conditionally(DOMAIN, |_| OriginAnswer::Fails(Timeout))
        .await;
    let counted = days(&stage).await;
    assert_eq!((counted[0].looks, counted[0].good), (2, 1));

    // A request during a visit counts as one too.
    stage.advance(Duration::days(2));
    let group = stage.outcomes(|_| OriginAnswer::NotModified).await;
    domain_recrawl(&stage.app, &stage.admin, DOMAIN, &Recrawl::default())
        .await
        .unwrap();
    ingest(&stage.app, &group).await.unwrap();
    stage.advance(Duration::minutes(2));
    assert_eq!(stage.visit(|_| OriginAnswer::Fails(Timeout)).await, 1);
    let today = &days(&stage).await[0];
    assert_eq!((today.looks, today.good), (1, 1));
}

/// A card at the older well-known path is one successful fetch, without a failed attempt in its history.
async fn a_card_at_the_older_path_is_one_successful_fetch(url: &str) {
    let stage = Stage::new(url).await;
    stage.register(DOMAIN).await;
    let bytes = card("Past", "Of an older generation");
    for (answer, expected) in [
        (OriginAnswer::Card(bytes), "card"),
        (OriginAnswer::NotModified, "not_modified"),
    ] {
        let mut group = stage.outcomes(|_| answer.clone()).await;
        let outcome = &mut group[0].sources[0];
        let missed = Attempt {
            outcome: NotFound,
            status: Some(404),
            detail: "the server answered 404: there is no card here".into(),
            ..outcome.attempts[0].clone()
        };
        outcome.attempts[0].url = format!("https://{DOMAIN}/.well-known/agent.json");
        outcome.attempts.insert(0, missed);
        ingest(&stage.app, &group).await.unwrap();
        let shown = domain_show(&stage.app, &stage.admin, DOMAIN).await.unwrap();
        let source = &shown.sources[0];
        let last = source.last_attempt.as_ref().unwrap();
        assert_eq!(last.outcome, expected);
        assert!(last.url.ends_with("/agent.json"), "{last:?}");
        assert!(
            last.detail
                .contains("/.well-known/agent-card.json: the server answered 404"),
            "{last:?}"
        );
        assert!(
            source.attempts.iter().all(|one| one.status != Some(404)),
            "{source:?}"
        );
        assert!(
            source.days.iter().all(|day| day.looks == day.good),
            "{source:?}"
        );
        stage.advance(Duration::hours(12));
    }
    // If neither path has the card, both requests are recorded.
    let mut group = stage.outcomes(|_| OriginAnswer::Fails(NotFound)).await;
    let twice = group[0].sources[0].attempts[0].clone();
    group[0].sources[0].attempts.push(twice);
    ingest(&stage.app, &group).await.unwrap();
    let shown = domain_show(&stage.app, &stage.admin, DOMAIN).await.unwrap();
    let attempts = &shown.sources[0].attempts;
    assert_eq!(
        attempts
            .iter()
            .filter(|one| one.outcome == "not_found")
            .count(),
        1,
        "only the last attempt is a failure"
    );
}

/// Invalid TLS ends trust at once and the listing after a day; a full fetch of the card over valid TLS restores trust.
async fn invalid_tls_ends_trust_at_once(url: &str) {
    let stage = Stage::new(url).await;
    let bytes = card("Past", "Had a certificate");
    let agent = stage.publish_approved(DOMAIN, &bytes).await;
    assert!(agent.tls);
    stage.crawl(DOMAIN, OriginAnswer::Fails(TlsInvalid)).await;
    let row = stage.agent(DOMAIN).await;
    assert_eq!((row.tls, row.liveness.as_str()), (false, "stale"));
    stage.index_equals_database().await;
    assert_eq!(
        stage.found_by_anyone().await.len(),
        1,
        "the agent is still listed"
    );
    stage.advance(Duration::hours(25));
    let asked = std::cell::Cell::new(false);
    stage
        .visit(|source| {
            asked.set(asked.get() || (source.kind == SourceKind::WellKnown && source.full_wanted));
            OriginAnswer::Fails(TlsInvalid)
        })
        .await;
    assert!(asked.get(), "a full fetch is required");
    assert_eq!(stage.agent(DOMAIN).await.liveness, LivenessState::Gone);
    stage.index_equals_database().await;
    assert!(stage.found_by_anyone().await.is_empty());
    stage.crawl(DOMAIN, OriginAnswer::Card(bytes)).await;
    let row = stage.agent(DOMAIN).await;
    assert_eq!((row.tls, row.liveness.as_str()), (true, "fresh"));
    stage.index_equals_database().await;
}

/// A page in place of the card keeps the last good card, with the reason, for as long as it is there.
async fn a_page_instead_of_a_card_keeps_the_last_good_card(url: &str) {
    let stage = Stage::new(url).await;
    let bytes = card("Past", "Became a page");
    let agent = stage.publish_approved(DOMAIN, &bytes).await;
    for _ in 0..5 {
        stage.advance(Duration::days(20));
        stage.crawl(DOMAIN, OriginAnswer::Fails(NotACard)).await;
    }
    let row = stage.agent(DOMAIN).await;
    assert_eq!(row.liveness, LivenessState::Stale);
    assert!(row.liveness_reason.unwrap().contains("not a card"));
    assert_eq!(stage.served(agent.id).await.as_ref(), Some(&bytes));
    stage.index_equals_database().await;
    assert_eq!(stage.found_by_anyone().await.len(), 1);
}

/// Ninety days after an agent's end its bytes are deleted, unless another agent has them too; its metadata and
/// decisions stay.
async fn bytes_of_ended_agents_are_deleted(url: &str) {
    let stage = Stage::new(url).await;
    let (own, common) = (card("Past", "Alone"), card("Past", "Common"));
    let ended = stage.publish_approved(DOMAIN, &own).await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(common.clone()))
        .await;
    let other = stage.publish("other.agents-test.com", &common).await;
    stage.crawl(DOMAIN, OriginAnswer::Fails(Gone)).await;
    stage.advance(Duration::hours(2));
    stage.crawl(DOMAIN, OriginAnswer::Fails(Gone)).await;
    stage.advance(Duration::days(31));
    stage.crawl(DOMAIN, OriginAnswer::Fails(Gone)).await;
    let row = stage
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == ended.id)
        .unwrap();
    let left = Duration::microseconds(BODY_RETENTION);
    assert!(row.retired_at.is_some());
    let digest = |bytes: &[u8]| a2a_card::digest(bytes);
    let kept = async |bytes: &[u8]| {
        versions::body_by_digest(&stage.store, &digest(bytes))
            .await
            .unwrap()
            .is_some()
    };
    stage.advance(left - Duration::SECOND);
    assert!(!housekeep(&stage.app).await.unwrap());
    assert!(kept(&own).await && kept(&common).await);
    stage.advance(Duration::SECOND);
    assert!(!housekeep(&stage.app).await.unwrap());
    assert!(!kept(&own).await, "no other agent has these bytes");
    assert!(kept(&common).await, "{} has these bytes too", other.id);
    let digests: Vec<String> = stage
        .versions(ended.id)
        .await
        .into_iter()
        .map(|row| row.digest)
        .collect();
    assert_eq!(digests, [digest(&own), digest(&common)]);
    assert!(!stage.reviews(ended.id).await.is_empty());
    assert_eq!(stage.served(ended.id).await, None);
}
