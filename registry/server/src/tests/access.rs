//! Authorisation table: one row for each operation of the document.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_domain::role::Role;
use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::openapi::operations::all as operations;
use crate::tests::{ADMIN, Registry, bearer};

/// The minimum that a caller must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Least {
    Anyone,
    Publisher,
    Curator,
    Admin,
}

use Least::{Admin, Anyone, Curator, Publisher};

/// All operations, by id. A new operation needs a row here.
const TABLE: &[(&str, Least)] = &[
    ("agent_card", Anyone),
    ("agent_card_well_known", Anyone),
    ("agent_card_well_known_0_2", Anyone),
    ("agent_deprecate", Publisher),
    ("agent_undeprecate", Publisher),
    ("agent_diff", Anyone),
    ("agent_findings", Anyone),
    ("agent_lookup", Anyone),
    ("agent_patch", Publisher),
    ("agent_resume", Curator),
    ("agent_retire", Publisher),
    ("agent_search", Anyone),
    ("agent_show", Anyone),
    ("agent_similar", Anyone),
    ("agent_suggest", Anyone),
    ("agent_suspend", Curator),
    ("agent_versions", Anyone),
    ("card_lint", Anyone),
    ("domain_delete", Publisher),
    ("domain_list", Publisher),
    ("domain_new_generation", Admin),
    ("domain_patch", Publisher),
    ("domain_recrawl", Anyone),
    ("domain_register", Publisher),
    ("domain_show", Anyone),
    ("domain_transfer", Publisher),
    ("domain_verify", Publisher),
    ("domain_vouch", Admin),
    ("event_list", Curator),
    ("key_enrol", Publisher),
    ("key_withdraw", Publisher),
    ("source_withdraw", Publisher),
    ("livez", Anyone),
    ("metrics", Anyone),
    ("readyz", Anyone),
    ("reindex", Admin),
    ("review_approve", Curator),
    ("review_list", Curator),
    ("review_reject", Curator),
    ("review_show", Curator),
    ("token_create", Admin),
    ("token_list", Admin),
    ("token_revoke", Admin),
];

/// Well-formed bodies, so that only the caller decides the response.
fn body(id: &str) -> Option<Value> {
    Some(match id {
        "domain_register" => json!({"card_url": "http://10.0.0.1/card.json"}),
        "domain_vouch"
        | "domain_new_generation"
        | "agent_suspend"
        | "agent_resume"
        | "agent_deprecate"
        | "agent_undeprecate"
        | "agent_retire" => {
            json!({"reason": "a test"})
        }
        "agent_patch" | "domain_patch" | "key_enrol" => json!({}),
        "card_lint" => json!({"name": "Echo"}),
        "domain_transfer" => json!({"account": "another"}),
        "review_approve" | "review_reject" => json!({"digest": "sha256:0", "reason": "a test"}),
        "token_create" => json!({"account": "another", "role": "publisher", "name": "test"}),
        _ => return None,
    })
}

fn path(id: &str, pattern: &str) -> String {
    let none = "018f0000-0000-7000-8000-000000000000";
    let path = pattern
        .replace("{agent}", none)
        .replace("{review}", none)
        .replace("{token}", none)
        .replace("{kid}", "k")
        .replace("{domain}", "nowhere.example");
    match id {
        "agent_suggest" => format!("{path}?q=a"),
        "agent_lookup" => format!("{path}?url=nowhere.example"),
        _ => path,
    }
}

#[test]
fn every_operation_has_a_row() {
    let documented: BTreeSet<&str> = operations()
        .iter()
        .map(|operation| operation.id.as_str())
        .collect();
    let listed: BTreeSet<&str> = TABLE.iter().map(|(id, _)| *id).collect();
    assert_eq!(documented, listed);
}

#[actix_web::test]
async fn each_operation_takes_whom_the_table_says() {
    let registry = Registry::new().await;
    let callers = [
        (Anyone, None),
        (Publisher, Some(registry.token(Role::Publisher).await)),
        (Curator, Some(registry.token(Role::Curator).await)),
        (Admin, Some(ADMIN.to_owned())),
    ];
    for operation in operations() {
        let least = TABLE.iter().find(|(id, _)| *id == operation.id).unwrap().1;
        for (caller, token) in &callers {
            let mut request = TestRequest::default()
                .method(operation.method.parse::<Method>().unwrap())
                .uri(&path(&operation.id, &operation.path));
            if let Some(token) = token {
                request = bearer(request, token);
            }
            if let Some(body) = body(&operation.id) {
                request = request.set_json(body);
            }
            let answer = registry.ask(request).await;
            let status = answer.status.as_u16();
            if *caller >= least {
                let what = format!("{} as {caller:?}: {answer:?}", operation.id);
                assert!(!matches!(status, 400 | 401 | 403 | 405 | 415), "{what}");
                assert!(status < 500, "{what}");
            } else {
                let slug = if token.is_none() {
                    "unauthenticated"
                } else {
                    "forbidden"
                };
                answer.problem(if token.is_none() { 401 } else { 403 }, slug);
            }
        }
    }
}

#[actix_web::test]
async fn a_bad_token_is_refused_everywhere() {
    let registry = Registry::new().await;
    for operation in operations()
        .iter()
        .filter(|operation| !matches!(operation.id.as_str(), "livez" | "readyz" | "metrics"))
    {
        let own = [
            "Bearer a2ar_nonsense",
            "Basic a2ar_nonsense",
            "a2ar_nonsense",
        ];
        let foreign = ["Bearer nonsense", "Bearer ", "Basic YTpi", "Bearer"];
        // The card routes treat an `Authorization` that was meant for another host as none.
        let foreign = match operation.id.starts_with("agent_card") {
            true => &[],
            false => &foreign[..],
        };
        for wrong in own.iter().chain(foreign) {
            let mut request = TestRequest::default()
                .method(operation.method.parse::<Method>().unwrap())
                .uri(&path(&operation.id, &operation.path))
                .insert_header(("authorization", *wrong));
            if let Some(body) = body(&operation.id) {
                request = request.set_json(body);
            }
            let answer = registry.ask(request).await;
            answer.problem(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

#[actix_web::test]
async fn an_open_registry_counts_anonymous_writes() {
    let registry = Registry::with(|config| {
        config.governance.registration = crate::config::Registration::Open;
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

/// A wall clock that is set by hand, and a monotonic clock that hardly advances.
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

/// Setting the machine's clock a year ahead and back makes no caller wait longer.
#[actix_web::test]
async fn setting_the_clock_has_nobody_wait_longer() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let clock = Arc::new(SetClock {
        now: Mutex::new(OffsetDateTime::from_unix_timestamp(1_795_000_000).unwrap()),
        passed: Mutex::new(Duration::from_secs(1000)),
    });
    let registry = Registry::by(clock.clone(), |config| {
        config.governance.registration = crate::config::Registration::Open;
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
    // Setting the clock ahead does not grant more than is due either.
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
        config.governance.registration = crate::config::Registration::Open;
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
        config.governance.registration = crate::config::Registration::Open;
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
    // The third network exceeds the number that is recorded per source, so no source counts as pending for it.
    assert_eq!(registry.ask(nominate(3, 10)).await.status, 202);
    // An account is recorded however many networks are.
    let own = registry.ask(bearer(nominate(1, 9), ADMIN)).await;
    assert_eq!(own.json()["sources"][0]["own"], true);
}
