//! Tests of the limits of anonymous writes, by address and network.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::Clock;
use actix_web::test::TestRequest;
use serde_json::json;
use time::OffsetDateTime;

use crate::tests::{ADMIN, Registry, bearer};

#[actix_web::test]
async fn an_open_registry_counts_anonymous_writes() {
    let registry = Registry::with(|config| {
        config.governance.registration = a2a_registry_core::config::RegistrationAccess::Open;
        config.limits.anonymous_writes_per_minute = 2;
    })
    .await;
    let nominate = |peer: &str| {
        TestRequest::post()
            .uri("/v1/domains")
            .peer_addr(peer.parse().unwrap())
            .set_json(json!({"card_url": "http://10.0.0.1/card.json"}))
    };
    for _ in 0..2 {
        registry
            .ask(nominate("192.0.2.1:9"))
            .await
            .problem(422, "target-refused");
    }
    let refused = registry.ask(nominate("192.0.2.1:9")).await;
    refused.problem(429, "too-many-requests");
    let wait: u32 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait));
    registry
        .ask(nominate("192.0.2.2:9"))
        .await
        .problem(422, "target-refused");
    registry
        .ask(bearer(nominate("192.0.2.1:9"), ADMIN))
        .await
        .problem(422, "target-refused");
}

/// A manually set wall clock, and a monotonic clock that hardly advances.
#[derive(Debug)]
struct SetClock {
    now: Mutex<OffsetDateTime>,
    passed: Mutex<Duration>,
}

impl Clock for SetClock {
    fn now(&self) -> OffsetDateTime {
        *self.now.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        *self.passed.lock().unwrap()
    }
}

/// Setting the system clock a year ahead and back must not make callers wait longer.
#[actix_web::test]
async fn setting_the_clock_has_nobody_wait_longer() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let clock = Arc::new(SetClock {
        now: Mutex::new(OffsetDateTime::from_unix_timestamp(1_795_000_000).unwrap()),
        passed: Mutex::new(Duration::from_secs(1000)),
    });
    let registry = Registry::by(clock.clone(), |config| {
        config.governance.registration = a2a_registry_core::config::RegistrationAccess::Open;
        config.limits.anonymous_writes_per_minute = 2;
    })
    .await;
    let nominate = async || {
        let request = TestRequest::post()
            .uri("/v1/domains")
            .peer_addr("192.0.2.1:9".parse().unwrap())
            .set_json(json!({"card_url": "http://10.0.0.1/card.json"}));
        registry.ask(request).await
    };
    *clock.now.lock().unwrap() += YEAR;
    for _ in 0..2 {
        nominate().await.problem(422, "target-refused");
    }
    // Setting the clock ahead must not grant more either.
    *clock.now.lock().unwrap() += YEAR;
    nominate().await.problem(429, "too-many-requests");
    *clock.now.lock().unwrap() -= 2 * YEAR;
    let refused = nominate().await;
    refused.problem(429, "too-many-requests");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    *clock.passed.lock().unwrap() += Duration::from_secs(wait);
    nominate().await.problem(422, "target-refused");
    // The time since the last response of the database is measured by the same clock.
    *clock.now.lock().unwrap() += YEAR;
    assert_eq!(registry.get("/v1/agents").await.status, 200);
}

#[actix_web::test]
async fn a_network_without_a_token_has_few_nominations_waiting() {
    let registry = Registry::with(|config| {
        config.governance.registration = a2a_registry_core::config::RegistrationAccess::Open;
        config.limits.pending_nominations = 2;
    })
    .await;
    let nominate = |peer: &str, port: u16| {
        TestRequest::post()
            .uri("/v1/domains")
            .peer_addr(peer.parse().unwrap())
            .set_json(json!({"domain": format!("127.0.0.1:{port}")}))
    };
    for port in [9, 10] {
        let taken = registry.ask(nominate("[2001:db8::1]:9", port)).await;
        assert_eq!(taken.status, 202);
    }
    // The same network, from another of its addresses.
    registry
        .ask(nominate("[2001:db8::2]:9", 11))
        .await
        .problem(403, "limit-reached");
    // Known sources, other networks and accounts do not count against the limit.
    let again = registry.ask(nominate("[2001:db8::2]:9", 10)).await;
    assert_eq!(again.status, 202);
    let other = registry.ask(nominate("[2001:db8:0:1::1]:9", 11)).await;
    assert_eq!(other.status, 202);
    let own = bearer(nominate("[2001:db8::1]:9", 12), ADMIN);
    assert_eq!(registry.ask(own).await.status, 202);
}

#[actix_web::test]
async fn as_many_networks_are_noted_of_a_source_as_are_counted() {
    let registry = Registry::with(|config| {
        config.governance.registration = a2a_registry_core::config::RegistrationAccess::Open;
        config.limits.networks_per_source = 2;
        config.limits.pending_nominations = 1;
    })
    .await;
    let nominate = |network: u8, port: u16| {
        TestRequest::post()
            .uri("/v1/domains")
            .peer_addr(format!("[2001:db8:0:{network}::1]:9").parse().unwrap())
            .set_json(json!({"domain": format!("127.0.0.1:{port}")}))
    };
    for network in 1..=3 {
        let taken = registry.ask(nominate(network, 9)).await;
        assert_eq!(taken.status, 202);
    }
    for network in 1..=2 {
        let refused = registry.ask(nominate(network, 10)).await;
        refused.problem(403, "limit-reached");
    }
    // The third network exceeds the recorded networks per source, so no source counts as pending for it.
    assert_eq!(registry.ask(nominate(3, 10)).await.status, 202);
    // Accounts are recorded regardless of the number of networks.
    let own = registry.ask(bearer(nominate(1, 9), ADMIN)).await;
    assert_eq!(own.json()["sources"][0]["own"], true);
}
