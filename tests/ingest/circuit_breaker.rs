//! While the circuit breaker is open because many fetches are failing, failures change no state.

use std::collections::BTreeSet;

use a2a_crawler::AttemptOutcome::{Gone, NotFound, Timeout};
use a2a_registry_api::{NewToken, Registration as NewRegistration};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Registration;
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::health::readiness::readiness;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_core::visits::outage::{breaker_open_since, resume_outage};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::role::Role;
use a2a_registry_server::jobs::frontier;
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;
use time::Duration;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAINS: usize = 40;

/// A name under a registrable domain of its own: names that share one count as one party.
fn name(number: usize) -> String {
    format!("d{number}-agents-test.com")
}

/// A stage with that many approved agents, each on a domain of its own.
async fn crowd(url: &str) -> Stage {
    let stage = Stage::with(url, |config| {
        config.governance.approve_all = true;
        config.governance.registration = Registration::Open;
        config.limits.domains_per_account = 1_000;
        config.limits.pending_nominations = 1_000;
    })
    .await;
    for number in 0..DOMAINS {
        stage.register(&name(number)).await;
    }
    let made = stage
        .visit(|source| OriginAnswer::Card(card(&source.url, "Is there")))
        .await;
    assert_eq!(made, DOMAINS);
    stage
}

async fn states(stage: &Stage) -> BTreeSet<String> {
    stage
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
async fn publisher(stage: &Stage) -> Caller {
    let wanted = NewToken {
        account: "hostile".into(),
        role: Some(Role::Publisher),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&stage.app, &stage.admin, &wanted)
        .await
        .unwrap();
    authenticate(&stage.app, &token.secret).await.unwrap()
}

/// Registers sources of that caller, each on the domain that `name` gives, and makes all due visits: these sources
/// resolve to the addresses that `address` gives, and return a card if `works`.
async fn plant(
    stage: &Stage,
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
        register(&stage.app, caller, &registration).await.unwrap();
    }
    let mut group = stage
        .outcomes(|source| match works {
            true => OriginAnswer::Card(card(&source.url, "Will fail")),
            false => OriginAnswer::Fails(NotFound),
        })
        .await;
    for (number, outcome) in group.iter_mut().enumerate() {
        for attempt in outcome.sources.iter_mut().flat_map(|one| &mut one.attempts) {
            attempt.address = Some(address(number).parse().unwrap());
        }
    }
    assert_eq!(group.len(), HOSTILE);
    ingest(&stage.app, &group).await.unwrap();
}

/// Makes all hostile sources fail at once, while half of the others succeed and one of them is not found; returns the
/// state of that one.
async fn strike(stage: &Stage, hostile: impl Fn(&str) -> bool) -> String {
    stage.advance(Duration::days(2));
    let victim = format!("https://{}/", name(0));
    let calm: BTreeSet<String> = (0..DOMAINS / 2)
        .map(|number| format!("https://{}/", name(number)))
        .collect();
    let answer = |source: &source::Model| match source.url.as_str() {
        url if url == victim || hostile(url) => OriginAnswer::Fails(NotFound),
        _ => OriginAnswer::NotModified,
    };
    // The hostile outcomes come first, before any success of the others.
    let mut group = stage.outcomes(answer).await;
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
    ingest(&stage.app, &group).await.unwrap();
    let agent = stage.agent(&name(0)).await;
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
    let stage = crowd(url).await;
    plant(
        &stage,
        &[stranger("198.51.100.7")],
        scattered,
        anywhere,
        false,
    )
    .await;
    assert_eq!(
        breaker_open_since(&stage.app),
        None,
        "all fetches have failed"
    );
    assert_eq!(strike(&stage, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&stage.app), None);
}

/// Sources that worked once and then fail on purpose do not open it either, whether they share a registrable domain, an
/// address block, or the network or account that registered them.
async fn sources_of_one_registrable_domain_do_not_open_the_breaker(url: &str) {
    let stage = crowd(url).await;
    plant(
        &stage,
        &strangers(),
        |number| format!("h{number}.hostile-test.com"),
        anywhere,
        true,
    )
    .await;
    assert_eq!(strike(&stage, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&stage.app), None);
}

async fn sources_of_one_address_block_do_not_open_the_breaker(url: &str) {
    let stage = crowd(url).await;
    plant(
        &stage,
        &strangers(),
        scattered,
        |number| format!("192.0.2.{number}"),
        true,
    )
    .await;
    assert_eq!(strike(&stage, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&stage.app), None);
}

async fn sources_registered_from_one_network_do_not_open_the_breaker(url: &str) {
    let neighbours: Vec<Caller> = (0..HOSTILE)
        .map(|number| stranger(&format!("198.51.100.{number}")))
        .collect();
    let stage = crowd(url).await;
    plant(&stage, &neighbours, scattered, anywhere, true).await;
    assert_eq!(strike(&stage, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&stage.app), None);
}

async fn sources_registered_by_one_account_do_not_open_the_breaker(url: &str) {
    let stage = crowd(url).await;
    let publisher = publisher(&stage).await;
    plant(&stage, &[publisher], scattered, anywhere, true).await;
    assert_eq!(strike(&stage, is_hostile).await, "stale");
    assert_eq!(breaker_open_since(&stage.app), None);
}

/// During days without a network every attempt is recorded, and no agent becomes stale, gone or retired. An agent that
/// was failing before keeps its state, and continues from there.
async fn our_own_outage_changes_no_state(url: &str) {
    let stage = crowd(url).await;
    stage.crawl(&name(0), OriginAnswer::Fails(Gone)).await;
    stage.advance(Duration::hours(2));
    stage.crawl(&name(0), OriginAnswer::Fails(Gone)).await;
    assert_eq!(stage.agent(&name(0)).await.liveness, LivenessState::Gone);
    stage.advance(Duration::days(29));
    assert_eq!(breaker_open_since(&stage.app), None);

    let mut fetches = 0;
    for _ in 0..12 {
        fetches += stage.visit(|_| OriginAnswer::Fails(NotFound)).await;
        assert!(breaker_open_since(&stage.app).is_some());
        stage.advance(Duration::hours(6));
    }
    assert!(
        fetches >= DOMAINS * 8,
        "failed fetches are soon repeated: {fetches}"
    );
    let row = domains::domain_by_name(&stage.store, &name(1))
        .await
        .unwrap()
        .unwrap();
    let sources = domains::sources_of(&stage.store, &[row.id]).await.unwrap();
    let attempts = domains::attempts_of(&stage.store, &[sources[0].id])
        .await
        .unwrap();
    assert!(attempts.len() > 8 && attempts[0].outcome == "not_found");
    let left: Vec<_> = stage
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
    let readiness = readiness(&stage.app).await;
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
        url if url == away => OriginAnswer::Fails(NotFound),
        url if url == format!("https://{}/", name(0)) => OriginAnswer::Fails(Gone),
        _ => OriginAnswer::NotModified,
    };
    stage.visit(answer).await;
    assert_eq!(breaker_open_since(&stage.app), None);
    stage.advance(Duration::hours(2));
    stage.visit(answer).await;
    assert_eq!(stage.agent(&name(1)).await.liveness, LivenessState::Stale);
    assert!(
        stage
            .agents()
            .await
            .iter()
            .any(|row| row.retired_at.is_some()),
        "{}",
        name(0)
    );
    stage.index_equals_database().await;
}

/// A process without file descriptors has an outage of its own, however well the fetches before have gone: it lasts until
/// enough fetches have succeeded since.
async fn a_shortage_of_descriptors_is_our_own_outage(url: &str) {
    let stage = crowd(url).await;
    stage.advance(Duration::days(2));
    stage.visit(|_| OriginAnswer::NotModified).await;
    let crawler = frontier(&stage.app, std::time::Duration::from_secs(60));
    crawler.note_descriptor_shortage();
    let since = breaker_open_since(&stage.app);
    assert!(since.is_some());
    stage.advance(Duration::days(2));
    crawler.note_descriptor_shortage();
    assert_eq!(breaker_open_since(&stage.app), since, "it is the same one");

    stage.crawl(&name(0), OriginAnswer::Fails(NotFound)).await;
    assert_eq!(states(&stage).await, only("fresh"));
    assert_eq!(breaker_open_since(&stage.app), since);
    stage.advance(Duration::days(2));
    stage.visit(|_| OriginAnswer::NotModified).await;
    assert_eq!(breaker_open_since(&stage.app), None);
    stage.advance(Duration::days(2));
    stage.crawl(&name(0), OriginAnswer::Fails(NotFound)).await;
    assert_eq!(stage.agent(&name(0)).await.liveness, LivenessState::Stale);
}

/// A process that starts during an outage knows of it, and one that starts later knows that it is over.
async fn an_outage_outlives_a_restart(url: &str) {
    let stage = crowd(url).await;
    stage.advance(Duration::days(2));
    stage.visit(|_| OriginAnswer::Fails(NotFound)).await;
    let since = breaker_open_since(&stage.app);
    assert!(since.is_some());
    let stage = stage.restart(|_| ()).await;
    assert_eq!(
        breaker_open_since(&stage.app),
        None,
        "a process that does not crawl would never close the breaker"
    );
    resume_outage(&stage.app);
    assert_eq!(breaker_open_since(&stage.app), since);
    for _ in 0..8 {
        stage.advance(Duration::hours(6));
        stage.visit(|_| OriginAnswer::Fails(NotFound)).await;
    }
    assert_eq!(states(&stage).await, only("fresh"), "no state was changed");
    let stage = stage.restart(|_| ()).await;
    resume_outage(&stage.app);
    assert_eq!(
        breaker_open_since(&stage.app),
        since,
        "the outage was recorded as continuing"
    );

    stage.advance(Duration::hours(6));
    stage.visit(|_| OriginAnswer::NotModified).await;
    assert_eq!(breaker_open_since(&stage.app), None);
    let stage = stage.restart(|_| ()).await;
    resume_outage(&stage.app);
    assert_eq!(breaker_open_since(&stage.app), None);
    // An outage without any confirmation for days is no longer believed.
    stage.advance(Duration::days(1));
    stage.visit(|_| OriginAnswer::Fails(NotFound)).await;
    assert!(breaker_open_since(&stage.app).is_some());
    stage.advance(Duration::days(3));
    let stage = stage.restart(|_| ()).await;
    resume_outage(&stage.app);
    assert_eq!(breaker_open_since(&stage.app), None);
}

/// Failures of a few origins are their own fault.
async fn failures_of_a_few_origins_count(url: &str) {
    let stage = crowd(url).await;
    stage.advance(Duration::days(2));
    let failing: BTreeSet<String> = (0..DOMAINS / 10)
        .map(|number| format!("https://{}/", name(number)))
        .collect();
    stage
        .visit(|source| match failing.contains(&source.url) {
            true => OriginAnswer::Fails(Timeout),
            false => OriginAnswer::NotModified,
        })
        .await;
    assert_eq!(breaker_open_since(&stage.app), None);
    let stale = stage
        .agents()
        .await
        .iter()
        .filter(|row| row.liveness == LivenessState::Stale)
        .count();
    assert_eq!(stale, DOMAINS / 10);
    assert_eq!(states(&stage).await.len(), 2);
    stage.visit(|_| OriginAnswer::NotModified).await;
    stage.advance(Duration::days(2));
    stage.visit(|_| OriginAnswer::NotModified).await;
    assert_eq!(states(&stage).await, only("fresh"));
}
