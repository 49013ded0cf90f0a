//! History of a source: its daily totals, its attempts, and their expiry.

use a2a_crawler::AttemptOutcome::{Gone, NotACard, NotFound, Timeout, TlsInvalid};
use a2a_crawler::FetchAttempt;
use a2a_registry_api::{Recrawl, SourceDay};
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::actions::{domain_recrawl, domain_show};
use a2a_registry_core::health::housekeeping::{BODY_RETENTION, delete_expired_rows};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::{domains, versions, visit_results};
use time::{Duration, OffsetDateTime};

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const DOMAIN: &str = "past.agents-test.com";

/// Daily totals of the well-known source, newest day first.
async fn days(registry: &InProcessRegistry) -> Vec<SourceDay> {
    let shown = domain_show(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
    shown.sources[0].days.clone()
}

/// When the well-known source is due next.
async fn next_due(registry: &InProcessRegistry) -> OffsetDateTime {
    let shown = domain_show(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
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
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(DOMAIN, &card_bytes("Past", "Has one"))
        .await;
    for answer in [
        OriginResponse::NotModified,
        OriginResponse::Failure(NotACard),
    ] {
        registry.advance(Duration::hours(12));
        assert_eq!(registry.run_due_visits(|_| answer.clone()).await, 1);
    }
    let days = days(&registry).await;
    let sum = |of: fn(&SourceDay) -> u32| days.iter().map(of).sum::<u32>();
    assert_eq!(days.last().unwrap().day, "2026-11-18");
    assert_eq!((sum(|day| day.looks), sum(|day| day.good)), (3, 2));
    for _ in 0..visit_results::MAX_DAYS_PER_SOURCE + 5 {
        registry.advance(Duration::days(2));
        assert_eq!(
            registry
                .run_due_visits(|_| OriginResponse::NotModified)
                .await,
            1
        );
    }
    let row = domains::domain_by_name(&registry.store, DOMAIN)
        .await
        .unwrap()
        .unwrap();
    let sources = domains::live_sources_by_domain(&registry.store, &[row.id])
        .await
        .unwrap();
    let kept = visit_results::daily_totals_by_source(&registry.store, &[sources[0].id])
        .await
        .unwrap();
    assert_eq!(kept.len() as i32, visit_results::MAX_DAYS_PER_SOURCE / 2);
    assert!(kept.iter().all(|day| (day.looks, day.good) == (1, 1)));
    let today = registry.app.now().0.div_euclid(86_400_000_000) as i32;
    assert_eq!(
        (kept[0].day, kept.last().unwrap().day),
        (today, today - visit_results::MAX_DAYS_PER_SOURCE + 2)
    );
    let shown = domain_show(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
    assert_eq!(
        shown.sources[0].days.len() as i32,
        visit_results::MAX_DAYS_PER_SOURCE / 2
    );
}

/// Requested visits neither spoil nor improve the totals, and do not replace scheduled ones: an owner who requests
/// visits again and again still has its outages counted.
async fn requested_visits_do_not_change_the_daily_totals(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(DOMAIN, &card_bytes("Past", "Has one"))
        .await;
    let first = days(&registry).await;
    assert_eq!(
        (first[0].looks, first[0].good),
        (1, 1),
        "the first visit counts as scheduled"
    );
    let due = next_due(&registry).await;
    for answer in [
        OriginResponse::NotModified,
        OriginResponse::NotModified,
        OriginResponse::Failure(NotACard),
    ] {
        registry
            .crawl_conditionally(DOMAIN, |_| answer.clone())
            .await;
    }
    assert_eq!(days(&registry).await, first);
    assert_eq!(
        registry.agent(DOMAIN).await.liveness,
        LivenessState::Stale,
        "requested visits change the state"
    );
    assert!(
        next_due(&registry).await <= due,
        "a scheduled visit is not postponed"
    );
    let due = next_due(&registry).await;

    // At the scheduled time, a requested visit counts as the scheduled one.
    registry.advance(due - registry.now());
    registry
        .crawl_conditionally(DOMAIN, |_| OriginResponse::Failure(Timeout))
        .await;
    let counted = days(&registry).await;
    assert_eq!((counted[0].looks, counted[0].good), (2, 1));

    // A request during a visit counts as one too.
    registry.advance(Duration::days(2));
    let group = registry
        .lease_due_outcomes(|_| OriginResponse::NotModified)
        .await;
    domain_recrawl(&registry.app, &registry.admin, DOMAIN, &Recrawl::default())
        .await
        .unwrap();
    ingest_outcomes(&registry.app, &group).await.unwrap();
    registry.advance(Duration::minutes(2));
    assert_eq!(
        registry
            .run_due_visits(|_| OriginResponse::Failure(Timeout))
            .await,
        1
    );
    let today = &days(&registry).await[0];
    assert_eq!((today.looks, today.good), (1, 1));
}

/// A card at the older well-known path is one successful fetch, without a failed attempt in its history.
async fn a_card_at_the_older_path_is_one_successful_fetch(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_domain(DOMAIN).await;
    let bytes = card_bytes("Past", "Of an older generation");
    for (answer, expected) in [
        (OriginResponse::Card(bytes), "card"),
        (OriginResponse::NotModified, "not_modified"),
    ] {
        let mut group = registry.lease_due_outcomes(|_| answer.clone()).await;
        let outcome = &mut group[0].sources[0];
        let missed = FetchAttempt {
            outcome: NotFound,
            status: Some(404),
            detail: "the server answered 404: there is no card here".into(),
            ..outcome.attempts[0].clone()
        };
        outcome.attempts[0].url = format!("https://{DOMAIN}/.well-known/agent.json");
        outcome.attempts.insert(0, missed);
        ingest_outcomes(&registry.app, &group).await.unwrap();
        let shown = domain_show(&registry.app, &registry.admin, DOMAIN)
            .await
            .unwrap();
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
        registry.advance(Duration::hours(12));
    }
    // If neither path has the card, both requests are recorded.
    let mut group = registry
        .lease_due_outcomes(|_| OriginResponse::Failure(NotFound))
        .await;
    let twice = group[0].sources[0].attempts[0].clone();
    group[0].sources[0].attempts.push(twice);
    ingest_outcomes(&registry.app, &group).await.unwrap();
    let shown = domain_show(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
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
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Past", "Had a certificate");
    let agent = registry.register_approved_card(DOMAIN, &bytes).await;
    assert!(agent.tls);
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(TlsInvalid))
        .await;
    let row = registry.agent(DOMAIN).await;
    assert_eq!((row.tls, row.liveness.as_str()), (false, "stale"));
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await.len(),
        1,
        "the agent is still listed"
    );
    registry.advance(Duration::hours(25));
    let asked = std::cell::Cell::new(false);
    registry
        .run_due_visits(|source| {
            asked.set(asked.get() || (source.kind == SourceKind::WellKnown && source.full_wanted));
            OriginResponse::Failure(TlsInvalid)
        })
        .await;
    assert!(asked.get(), "a full fetch is required");
    assert_eq!(registry.agent(DOMAIN).await.liveness, LivenessState::Gone);
    registry.assert_index_matches_database().await;
    assert!(registry.publicly_found_ids().await.is_empty());
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(bytes))
        .await;
    let row = registry.agent(DOMAIN).await;
    assert_eq!((row.tls, row.liveness.as_str()), (true, "fresh"));
    registry.assert_index_matches_database().await;
}

/// A page in place of the card keeps the last good card, with the reason, for as long as it is there.
async fn a_page_instead_of_a_card_keeps_the_last_good_card(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Past", "Became a page");
    let agent = registry.register_approved_card(DOMAIN, &bytes).await;
    for _ in 0..5 {
        registry.advance(Duration::days(20));
        registry
            .crawl_domain(DOMAIN, OriginResponse::Failure(NotACard))
            .await;
    }
    let row = registry.agent(DOMAIN).await;
    assert_eq!(row.liveness, LivenessState::Stale);
    assert!(row.liveness_reason.unwrap().contains("not a card"));
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&bytes)
    );
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await.len(), 1);
}

/// Ninety days after an agent's end its bytes are deleted, unless they were ever approved or another agent has them too;
/// its metadata and decisions stay.
async fn bytes_of_ended_agents_are_deleted(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (own, common) = (card_bytes("Past", "Alone"), card_bytes("Past", "Common"));
    // Another name is a critical change, which waits for a decision.
    let draft = card_bytes("Future", "Alone");
    let ended = registry.register_approved_card(DOMAIN, &own).await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(common.clone()))
        .await;
    let other = registry
        .register_with_card("other.agents-test.com", &common)
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(draft.clone()))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Gone))
        .await;
    registry.advance(Duration::hours(2));
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Gone))
        .await;
    registry.advance(Duration::days(31));
    registry
        .crawl_domain(DOMAIN, OriginResponse::Failure(Gone))
        .await;
    let row = registry
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == ended.id)
        .unwrap();
    let left = Duration::microseconds(BODY_RETENTION);
    assert!(row.retired_at.is_some());
    let digest = |bytes: &[u8]| a2a_card::bytes_digest(bytes);
    let kept = async |bytes: &[u8]| {
        versions::body_by_digest(&registry.store, &digest(bytes))
            .await
            .unwrap()
            .is_some()
    };
    registry.advance(left - Duration::SECOND);
    assert!(!delete_expired_rows(&registry.app).await.unwrap());
    assert!(kept(&own).await && kept(&common).await && kept(&draft).await);
    registry.advance(Duration::SECOND);
    assert!(!delete_expired_rows(&registry.app).await.unwrap());
    assert!(!kept(&draft).await, "no other agent has these bytes");
    assert!(kept(&own).await, "the event of an approval names them");
    assert!(kept(&common).await, "{} has these bytes too", other.id);
    let digests: Vec<String> = registry
        .versions(ended.id)
        .await
        .into_iter()
        .map(|row| row.digest)
        .collect();
    assert_eq!(digests, [digest(&own), digest(&common), digest(&draft)]);
    assert!(!registry.review_states(ended.id).await.is_empty());
    assert_eq!(registry.public_card_bytes(ended.id).await, None);
}
