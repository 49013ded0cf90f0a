//! Tests of recording rejected tokens and sign-ins: counted at every interface, and written by network and minute.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock as _, SystemClock};
use a2a_registry_api::NewToken;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::refusal_events::write_credential_refusal_events;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_core::metrics::GaugeValues;
use a2a_registry_domain::role::Role;
use a2a_registry_http::requests::visitor::form_token;
use a2a_registry_http::routes::openapi::operations::all_api_operations as operations;
use a2a_registry_http::routes::plain::PLAIN_ROUTES;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::tests::access::request;
use crate::tests::sessions::{BEFORE, MovedClock, form, near, sign_in};
use crate::tests::{ADMIN, Registry, TestResponse, bearer};

/// A token that nobody has.
const UNKNOWN: &str = "a2ar_a-token-that-this-registry-never-made";

/// Metric values by reason and in total.
fn counted(registry: &Registry) -> (Vec<(String, u64)>, u64) {
    let text = registry.state.metrics.encode_all(&GaugeValues::default());
    let text = text.unwrap();
    let lines = text.lines().filter_map(|line| {
        let line = line.strip_prefix("a2a_registry_sign_in_refusals_total{reason=\"")?;
        let (reason, count) = line.split_once("\"} ")?;
        Some((reason.to_owned(), count.parse().unwrap()))
    });
    let mut reasons: Vec<(String, u64)> = lines.collect();
    reasons.sort_unstable();
    let all = reasons.iter().map(|(_, count)| count).sum();
    (reasons, all)
}

/// Events of a kind that this token can read.
async fn events(registry: &Registry, token: &str, kind: &str) -> Vec<Value> {
    let request = TestRequest::get().uri("/v1/events?page_size=100");
    let page = registry.as_with(token, request).await.json();
    let all = page["events"].as_array().unwrap().iter();
    all.filter(|event| event["kind"] == kind).cloned().collect()
}

#[actix_web::test]
async fn a_token_that_is_refused_is_counted_at_every_door() {
    let registry = Registry::new().await;
    let mut doors = 0;
    for operation in operations() {
        let before = counted(&registry).1;
        let answer = registry.ask(bearer(request(operation), UNKNOWN)).await;
        // A gateway is told 403, whatever the reason is.
        let is_refused = answer.status == 401 || operation.id == "gateway_decide";
        let counted = counted(&registry).1 - before;
        assert_eq!(counted, u64::from(is_refused), "{}", operation.id);
        doors += counted;
    }
    assert!(doors > 50, "{doors}");
    for (path, method) in PLAIN_ROUTES {
        // Forms belong to a session and read no token, and the credential of a link is its code.
        let reads_no_token = *method != "GET" && *path != "/mcp" || *path == "/sign-in-link";
        if reads_no_token || path.contains('{') {
            continue;
        }
        let before = counted(&registry).1;
        let request = TestRequest::default()
            .method(method.parse().unwrap())
            .uri(path)
            .insert_header(("content-type", "application/json"))
            .set_payload("{}");
        let answer = registry.ask(bearer(request, UNKNOWN)).await;
        let counted = counted(&registry).1 - before;
        assert_eq!(counted, u64::from(answer.status == 401), "{path}");
        doors += counted;
    }
    let (reasons, all) = counted(&registry);
    assert_eq!(reasons, [("unknown_token".to_owned(), doors)]);
    assert_eq!(all, doors);
    // A request without a token, or with an agent's token to a card path, is not counted.
    let card = "/agents/018f0000-0000-7000-8000-000000000000/.well-known/agent-card.json";
    assert_eq!(registry.get("/v1/me").await.status, 401);
    registry
        .ask(bearer(TestRequest::get().uri(card), "foreign"))
        .await;
    assert_eq!(counted(&registry).1, doors);
}

/// Tries to sign in with a token from this address.
async fn try_sign_in(registry: &Registry, token: &str, host: &str) -> TestResponse {
    let fields = [("token", token), ("form_token", &form_token(BEFORE))];
    let cookie = ("cookie", format!("__Host-a2a_form={BEFORE}"));
    let request = form("/sign-in", &fields)
        .insert_header(cookie)
        .insert_header(("accept", "text/html"));
    registry.ask(request.insert_header(("host", host))).await
}

#[actix_web::test]
async fn refused_sign_ins_are_counted_by_reason() {
    // With a stopped clock no address is admitted again meanwhile.
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock, |_| {}).await;
    let unknown = bearer(TestRequest::get().uri("/v1/me"), UNKNOWN);
    registry.ask(unknown).await.problem(401, "unauthenticated");
    let odd = TestRequest::get()
        .uri("/v1/me")
        .insert_header(("authorization", "Basic eDp5"));
    registry.ask(odd).await.problem(401, "unauthenticated");
    let page = try_sign_in(&registry, UNKNOWN, "127.0.0.1:8080").await;
    assert_eq!(page.status, 401);
    let page = try_sign_in(&registry, ADMIN, "registry.example").await;
    assert_eq!(page.status, 403);
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(text.contains("server.public_url"), "{text}");
    for _ in 0..10 {
        try_sign_in(&registry, UNKNOWN, "127.0.0.1:8080").await;
    }
    let expected = [
        ("connection", 1),
        ("no_token", 1),
        ("too_many", 1),
        ("unknown_token", 11),
    ];
    let expected = expected.map(|(reason, count)| (reason.to_owned(), count));
    assert_eq!(counted(&registry).0, expected);
}

#[actix_web::test]
async fn a_token_past_its_end_is_no_unknown_one() {
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let new = NewToken {
        account: "ann".into(),
        role: Some(Role::Reader),
        name: "short".into(),
        expires_in_days: Some(1),
        ..NewToken::default()
    };
    let made = token_create(registry.context(), &registry.admin().await, &new).await;
    let own = made.unwrap().secret;
    *clock.0.lock().unwrap() += Duration::from_secs(86_400);
    let request = bearer(TestRequest::get().uri("/v1/me"), &own);
    registry.ask(request).await.problem(401, "unauthenticated");
    assert_eq!(counted(&registry).0, [("ended_token".to_owned(), 1)]);
}

#[actix_web::test]
async fn refusals_are_one_event_a_network_and_minute_for_who_reads_accounts() {
    let registry = Registry::with(|config| {
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let curator = registry.token(Role::Curator).await;
    let auditor = registry.token(Role::Auditor).await;
    let refused = async |client: String| {
        let request =
            near(TestRequest::get().uri("/v1/me")).insert_header(("x-forwarded-for", client));
        let answer = registry.ask(bearer(request, UNKNOWN)).await;
        assert_eq!(answer.status, 401);
    };
    for host in 1..=5 {
        refused(format!("198.51.100.{host}")).await;
    }
    let before = events(&registry, ADMIN, "sign_in.refused").await;
    assert!(before.is_empty(), "a refusal is no write");
    write_credential_refusal_events(registry.context())
        .await
        .unwrap();
    let written = events(&registry, &auditor, "sign_in.refused").await;
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0]["subject"], "198.51.100.0/24");
    assert_eq!(written[0]["data"]["count"], 5);
    assert_eq!(written[0]["data"]["reasons"], json!({"unknown_token": 5}));
    assert!(
        events(&registry, &curator, "sign_in.refused")
            .await
            .is_empty()
    );
    // The next minute first has nothing to write, and then new counts.
    write_credential_refusal_events(registry.context())
        .await
        .unwrap();
    assert_eq!(events(&registry, ADMIN, "sign_in.refused").await.len(), 1);
    // The number of events is limited, but they count all networks.
    for network in 0..60 {
        refused(format!("203.0.{network}.1")).await;
    }
    write_credential_refusal_events(registry.context())
        .await
        .unwrap();
    let written = events(&registry, ADMIN, "sign_in.refused").await;
    let newer = &written[1..];
    assert_eq!(newer.len(), 21);
    let counts = newer
        .iter()
        .map(|event| event["data"]["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 60);
    assert_eq!(newer[20]["subject"], "other networks");
    // A stream of a caller who may not read these events reads them only once, regardless of their number.
    let reader = authenticate_token(registry.context(), &curator)
        .await
        .unwrap();
    let last = newer[20]["seq"].as_i64().unwrap();
    let mut position = newer[0]["seq"].as_i64().unwrap() - 1;
    let shown = load_events_after(
        registry.context(),
        &reader,
        &EventFilter::default(),
        &mut position,
        5,
    )
    .await;
    assert_eq!((shown.unwrap().len(), position), (0, last));
}

#[actix_web::test]
async fn where_a_session_was_begun_from_is_for_who_reads_accounts() {
    let registry = Registry::with(|config| {
        config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let curator = registry.token(Role::Curator).await;
    sign_in(&registry, ADMIN).await;
    let peer: SocketAddr = "127.0.0.9:9".parse().unwrap();
    let fields = [("token", ADMIN), ("form_token", &form_token(BEFORE))];
    let request = form("/sign-in", &fields)
        .peer_addr(peer)
        .insert_header(("x-forwarded-for", "198.51.100.7, 127.0.0.2"))
        .insert_header(("cookie", format!("__Host-a2a_form={BEFORE}")));
    assert_eq!(registry.ask(request).await.status, 303);
    let of = async |token: &str| {
        let begun = events(&registry, token, "session.begun").await;
        let data = begun.iter().map(|event| event["data"].clone());
        data.collect::<Vec<Value>>()
    };
    let seen = of(ADMIN).await;
    assert_eq!(seen[0]["address"], "127.0.0.1");
    assert_eq!(seen[1]["address"], "198.51.100.7");
    for data in of(&curator).await {
        assert_eq!(data["account"], "admin");
        assert!(data.get("address").is_none(), "{data}");
    }
}
