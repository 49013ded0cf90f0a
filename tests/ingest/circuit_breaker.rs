//! An open circuit breaker: while many fetches are failing, failures change no state.

use std::collections::BTreeSet;

use a2a_crawler::AttemptOutcome::{Gone, NotFound, Timeout};
use a2a_registry_api::{NewToken, Registration as NewRegistration};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::RegistrationAccess;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::health::readiness::check_readiness;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_core::visits::outage::{breaker_open_since, resume_outage};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::role::Role;
use a2a_registry_server::jobs::database_frontier;
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;
use time::Duration;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const DOMAINS: usize = 40;

/// A name under a registrable domain of its own: names that share one count as one party.
fn name(number: usize) -> String {
    format!("d{number}-agents-test.com")
}

/// A registry with approved agents, each on a domain of its own.
async fn registry_with_agents(url: &str) -> InProcessRegistry {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.governance.approve_all = true;
        config.governance.registration = RegistrationAccess::Open;
        config.limits.domains_per_account = 1_000;
        config.limits.pending_nominations = 1_000;
    })
    .await;
    for number in 0..DOMAINS {
        registry.register_domain(&name(number)).await;
    }
    let made = registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Is there")))
        .await;
    assert_eq!(made, DOMAINS);
    registry
}

async fn states(registry: &InProcessRegistry) -> BTreeSet<String> {
    registry
        .agents()
        .await
        .into_iter()
        .map(|row| row.liveness.as_str().to_owned())
        .collect()
}

fn only(state: &str) -> BTreeSet<String> {
    BTreeSet::from([state.to_owned()])
}

/// Number of an attacker's sources: as many as once froze the states of all agents.
const HOSTILE: usize = 36;

/// An anonymous client at that address.
fn stranger(address: &str) -> Caller {
    Caller {
        account: None,
        network: Some(address.parse().unwrap()),
    }
}

/// Anonymous clients whose addresses have nothing in common.
fn strangers() -> Vec<Caller> {
    (0..HOSTILE)
        .map(|number| stranger(&format!("203.0.{number}.1")))
        .collect()
}

/// An account that may decide nothing.
async fn publisher(registry: &InProcessRegistry) -> Caller {
    let wanted = NewToken {
        account: "hostile".into(),
        role: Some(Role::Publisher),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&registry.app, &registry.admin, &wanted)
        .await
        .unwrap();
    authenticate_token(&registry.app, &token.secret)
        .await
        .unwrap()
}

/// Registers sources of that caller, each on the domain that `name` gives, and makes all due visits: these sources
/// resolve to the addresses that `address` gives, and return a card if `works`.
async fn plant(
    registry: &InProcessRegistry,
    callers: &[Caller],
    name: impl Fn(usize) -> String,
    address: impl Fn(usize) -> String,
    works: bool,
) {
    for number in 0..HOSTILE {
        let registration = NewRegistration {
            domain: Some(name(number)),
            ..NewRegistration::default()
        };
        let caller = &callers[number % callers.len()];
        register_domain(&registry.app, caller, &registration)
            .await
            .unwrap();
    }
    let mut group = registry
        .lease_due_outcomes(|source| match works {
            true => OriginResponse::Card(card_bytes(&source.url, "Will fail")),
            false => OriginResponse::Failure(NotFound),
        })
        .await;
    for (number, outcome) in group.iter_mut().enumerate() {
        for attempt in outcome.sources.iter_mut().flat_map(|one| &mut one.attempts) {
            attempt.address = Some(address(number).parse().unwrap());
        }
    }
    assert_eq!(group.len(), HOSTILE);
    ingest_outcomes(&registry.app, &group).await.unwrap();
}

/// Makes all hostile sources fail at once, while half of the others succeed and one of them is not found; returns the
/// state of that one.
async fn strike(registry: &InProcessRegistry, hostile: impl Fn(&str) -> bool) -> String {
    registry.advance(Duration::days(2));
    let victim = format!("https://{}/", name(0));
    let calm: BTreeSet<String> = (0..DOMAINS / 2)
        .map(|number| format!("https://{}/", name(number)))
        .collect();
    let answer = |source: &source::Model| match source.url.as_str() {
        url if url == victim || hostile(url) => OriginResponse::Failure(NotFound),
        _ => OriginResponse::NotModified,
    };
    // The hostile outcomes come first, before any success of the others.
    let mut group = registry.lease_due_outcomes(answer).await;
    group.sort_by_key(|outcome| {
        let url = |outcome: &a2a_crawler::VisitOutcome| outcome.sources[0].attempts[0].url.clone();
        !hostile(&url(outcome).replace(".well-known/agent-card.json", ""))
    });
    group.retain(|outcome| {
        let url = outcome.sources[0].attempts[0]
            .url
            .replace(".well-known/agent-card.json", "");
        hostile(&url) || calm.contains(&url)
    });
    ingest_outcomes(&registry.app, &group).await.unwrap();
    let agent = registry.agent(&name(0)).await;
    agent.liveness.as_str().to_owned()
}

fn is_hostile(url: &str) -> bool {
    url.contains("hostile")
}

/// Names in different registrable domains.
fn scattered(number: usize) -> String {
    format!("hostile{number}-test.com")
}

/// Addresses in different blocks.
fn anywhere(number: usize) -> String {
    format!("2001:db8:{number:x}::1")
}

both_databases!(
    sources_that_never_worked_do_not_open_the_breaker,
    sources_of_one_registrable_domain_do_not_open_the_breaker,
    sources_of_one_address_block_do_not_open_the_breaker,
    sources_registered_from_one_network_do_not_open_the_breaker,
    sources_registered_by_one_account_do_not_open_the_breaker,
    our_own_outage_changes_no_state,
    a_shortage_of_descriptors_is_our_own_outage,
    an_outage_outlives_a_restart,
    failures_of_a_few_origins_count
);

/// Sources that never worked do not open the circuit breaker, and their failed first fetches are no evidence.
async fn sources_that_never_worked_do_not_open_the_breaker(url: &str) {
    let registry = registry_with_agents(url).await;
    plant(
        &registry,
        &[stranger("198.51.100.7")],
        scattered,
        anywhere,
        false,
    )
    .await;
    assert_eq!(
        breaker_open_since(&registry.app),
        None,
        "all fetches have failed"
    );
    assert_eq!(strike(&registry, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&registry.app), None);
}

/// Sources that worked once and then fail on purpose do not open it either, whether they share a registrable domain, an
/// address block, or the network or account that registered them.
async fn sources_of_one_registrable_domain_do_not_open_the_breaker(url: &str) {
    let registry = registry_with_agents(url).await;
    plant(
        &registry,
        &strangers(),
        |number| format!("h{number}.hostile-test.com"),
        anywhere,
        true,
    )
    .await;
    assert_eq!(strike(&registry, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&registry.app), None);
}

async fn sources_of_one_address_block_do_not_open_the_breaker(url: &str) {
    let registry = registry_with_agents(url).await;
    plant(
        &registry,
        &strangers(),
        scattered,
        |number| format!("192.0.2.{number}"),
        true,
    )
    .await;
    assert_eq!(strike(&registry, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&registry.app), None);
}

async fn sources_registered_from_one_network_do_not_open_the_breaker(url: &str) {
    let neighbours: Vec<Caller> = (0..HOSTILE)
        .map(|number| stranger(&format!("198.51.100.{number}")))
        .collect();
    let registry = registry_with_agents(url).await;
    plant(&registry, &neighbours, scattered, anywhere, true).await;
    assert_eq!(strike(&registry, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&registry.app), None);
}

async fn sources_registered_by_one_account_do_not_open_the_breaker(url: &str) {
    let registry = registry_with_agents(url).await;
    let publisher = publisher(&registry).await;
    plant(&registry, &[publisher], scattered, anywhere, true).await;
    assert_eq!(strike(&registry, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&registry.app), None);
}

/// During days without a network every attempt is recorded, and no agent becomes stale, gone or retired. An agent that
/// was failing before keeps its state, and continues from there.
async fn our_own_outage_changes_no_state(url: &str) {
    let registry = registry_with_agents(url).await;
    registry
        .crawl_domain(&name(0), OriginResponse::Failure(Gone))
        .await;
    registry.advance(Duration::hours(2));
    registry
        .crawl_domain(&name(0), OriginResponse::Failure(Gone))
        .await;
    assert_eq!(registry.agent(&name(0)).await.liveness, LivenessState::Gone);
    registry.advance(Duration::days(29));
    assert_eq!(breaker_open_since(&registry.app), None);

    let mut fetches = 0;
    for _ in 0..12 {
        fetches += registry
            .run_due_visits(|_| OriginResponse::Failure(NotFound))
            .await;
        assert!(breaker_open_since(&registry.app).is_some());
        registry.advance(Duration::hours(6));
    }
    assert!(
        fetches >= DOMAINS * 8,
        "failed fetches are soon repeated: {fetches}"
    );
    let row = domains::domain_by_name(&registry.store, &name(1))
        .await
        .unwrap()
        .unwrap();
    let sources = domains::live_sources_by_domain(&registry.store, &[row.id])
        .await
        .unwrap();
    let attempts = domains::fetch_attempts_of_sources(&registry.store, &[sources[0].id])
        .await
        .unwrap();
    assert!(attempts.len() > 8 && attempts[0].outcome == "not_found");
    let left: Vec<_> = registry
        .agents()
        .await
        .into_iter()
        .filter(|row| row.liveness != LivenessState::Fresh)
        .collect();
    assert_eq!(left.len(), 1);
    assert_eq!(
        (left[0].liveness.as_str(), left[0].retired_at),
        ("gone", None)
    );
    let readiness = check_readiness(&registry.app).await;
    let crawler = readiness
        .checks
        .iter()
        .find(|check| check.name == "crawler")
        .unwrap();
    assert!(
        crawler.ok
            && crawler
                .detail
                .contains("keep their state until it recovers (since"),
        "{crawler:?}"
    );

    // The network is back: the next failed fetch counts as the first.
    let away = format!("https://{}/", name(1));
    let answer = |source: &a2a_registry_store::entity::source::Model| match source.url.as_str() {
        url if url == away => OriginResponse::Failure(NotFound),
        url if url == format!("https://{}/", name(0)) => OriginResponse::Failure(Gone),
        _ => OriginResponse::NotModified,
    };
    registry.run_due_visits(answer).await;
    assert_eq!(breaker_open_since(&registry.app), None);
    registry.advance(Duration::hours(2));
    registry.run_due_visits(answer).await;
    assert_eq!(
        registry.agent(&name(1)).await.liveness,
        LivenessState::Stale
    );
    assert!(
        registry
            .agents()
            .await
            .iter()
            .any(|row| row.retired_at.is_some()),
        "{}",
        name(0)
    );
    registry.assert_index_matches_database().await;
}

/// A process without file descriptors has an outage of its own, however well the fetches before have gone: it lasts until
/// enough fetches have succeeded since.
async fn a_shortage_of_descriptors_is_our_own_outage(url: &str) {
    let registry = registry_with_agents(url).await;
    registry.advance(Duration::days(2));
    registry
        .run_due_visits(|_| OriginResponse::NotModified)
        .await;
    let crawler = database_frontier(&registry.app, std::time::Duration::from_secs(60));
    crawler.record_descriptor_shortage();
    let since = breaker_open_since(&registry.app);
    assert!(since.is_some());
    registry.advance(Duration::days(2));
    crawler.record_descriptor_shortage();
    assert_eq!(
        breaker_open_since(&registry.app),
        since,
        "it is the same one"
    );

    registry
        .crawl_domain(&name(0), OriginResponse::Failure(NotFound))
        .await;
    assert_eq!(states(&registry).await, only("fresh"));
    assert_eq!(breaker_open_since(&registry.app), since);
    registry.advance(Duration::days(2));
    registry
        .run_due_visits(|_| OriginResponse::NotModified)
        .await;
    assert_eq!(breaker_open_since(&registry.app), None);
    registry.advance(Duration::days(2));
    registry
        .crawl_domain(&name(0), OriginResponse::Failure(NotFound))
        .await;
    assert_eq!(
        registry.agent(&name(0)).await.liveness,
        LivenessState::Stale
    );
}

/// A process that starts during an outage knows of it, and one that starts later knows that it is over.
async fn an_outage_outlives_a_restart(url: &str) {
    let registry = registry_with_agents(url).await;
    registry.advance(Duration::days(2));
    registry
        .run_due_visits(|_| OriginResponse::Failure(NotFound))
        .await;
    let since = breaker_open_since(&registry.app);
    assert!(since.is_some());
    let registry = registry.restart(|_| ()).await;
    assert_eq!(
        breaker_open_since(&registry.app),
        None,
        "a process that does not crawl would never close the breaker"
    );
    resume_outage(&registry.app);
    assert_eq!(breaker_open_since(&registry.app), since);
    for _ in 0..8 {
        registry.advance(Duration::hours(6));
        registry
            .run_due_visits(|_| OriginResponse::Failure(NotFound))
            .await;
    }
    assert_eq!(
        states(&registry).await,
        only("fresh"),
        "no state was changed"
    );
    let registry = registry.restart(|_| ()).await;
    resume_outage(&registry.app);
    assert_eq!(
        breaker_open_since(&registry.app),
        since,
        "the outage was recorded as continuing"
    );

    registry.advance(Duration::hours(6));
    registry
        .run_due_visits(|_| OriginResponse::NotModified)
        .await;
    assert_eq!(breaker_open_since(&registry.app), None);
    let registry = registry.restart(|_| ()).await;
    resume_outage(&registry.app);
    assert_eq!(breaker_open_since(&registry.app), None);
    // An outage without any confirmation for days is no longer believed.
    registry.advance(Duration::days(1));
    registry
        .run_due_visits(|_| OriginResponse::Failure(NotFound))
        .await;
    assert!(breaker_open_since(&registry.app).is_some());
    registry.advance(Duration::days(3));
    let registry = registry.restart(|_| ()).await;
    resume_outage(&registry.app);
    assert_eq!(breaker_open_since(&registry.app), None);
}

/// Failures of a few origins are their own fault.
async fn failures_of_a_few_origins_count(url: &str) {
    let registry = registry_with_agents(url).await;
    registry.advance(Duration::days(2));
    let failing: BTreeSet<String> = (0..DOMAINS / 10)
        .map(|number| format!("https://{}/", name(number)))
        .collect();
    registry
        .run_due_visits(|source| match failing.contains(&source.url) {
            true => OriginResponse::Failure(Timeout),
            false => OriginResponse::NotModified,
        })
        .await;
    assert_eq!(breaker_open_since(&registry.app), None);
    let stale = registry
        .agents()
        .await
        .iter()
        .filter(|row| row.liveness == LivenessState::Stale)
        .count();
    assert_eq!(stale, DOMAINS / 10);
    assert_eq!(states(&registry).await.len(), 2);
    registry
        .run_due_visits(|_| OriginResponse::NotModified)
        .await;
    registry.advance(Duration::days(2));
    registry
        .run_due_visits(|_| OriginResponse::NotModified)
        .await;
    assert_eq!(states(&registry).await, only("fresh"));
}
