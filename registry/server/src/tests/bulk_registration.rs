//! Tests of bulk registration over HTTP: its limits, and one result per registration.

use a2a_registry_api::limits::{MAX_BULK_REGISTRATIONS, MAX_REGISTRATIONS_BODY_BYTES};
use a2a_registry_domain::role::Role;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::tests::{ADMIN, Registry, TestResponse, bearer};

async fn send(registry: &Registry, body: String) -> TestResponse {
    let request = TestRequest::post()
        .uri("/v1/domains:register")
        .insert_header(("content-type", "application/json"))
        .set_payload(body);
    registry.ask(bearer(request, ADMIN)).await
}

/// Each result is at the position of its registration, with the status and problem of a single registration.
#[actix_web::test]
async fn each_registration_is_answered_in_its_place() {
    let registry = Registry::new().await;
    let all = [
        json!({"card_url": "https://a.agents-test.com/a.json"}),
        json!({"card_url": "http://10.0.0.1/card.json"}),
        json!({"domain": "b.agents-test.com"}),
        json!({"domain": "b.agents-test.com", "card_url": "https://b.agents-test.com/b.json"}),
        json!({"card_url": "https://a.agents-test.com/a.json"}),
    ];
    let body = json!({"registrations": all}).to_string();
    for repeated in 0..2 {
        let answer = send(&registry, body.clone()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        let outcomes = answer["outcomes"].as_array().unwrap();
        let statuses: Vec<&Value> = outcomes.iter().map(|one| &one["status"]).collect();
        assert_eq!(
            statuses,
            [202, 422, 202, 400, 202],
            "repeated {repeated} times"
        );
        for (what, outcome) in all.iter().zip(outcomes) {
            assert_eq!(outcome["registration"], *what);
            let count = outcome["sources"].as_array().unwrap().len();
            let accepted = outcome["status"] == 202;
            let domains = if what["domain"].is_null() { 1 } else { 3 };
            assert_eq!(count, if accepted { domains } else { 0 }, "{outcome}");
            assert_eq!(outcome["domain"].is_null(), !accepted, "{outcome}");
            assert_eq!(outcome["problem"].is_null(), accepted, "{outcome}");
        }
        assert_eq!(outcomes[1]["problem"]["type"], "/problems/target-refused");
        assert_eq!(outcomes[1]["problem"]["status"], 422);
        assert_eq!(outcomes[0]["sources"], outcomes[4]["sources"]);
    }
}

/// Count and bytes of a request are limited, and a request at both limits is accepted.
#[actix_web::test]
async fn a_bulk_is_bounded() {
    let registry = Registry::new().await;
    let refused = json!({"card_url": "http://10.0.0.1/card.json"});
    let bulk = |count: usize| json!({"registrations": vec![refused.clone(); count]}).to_string();
    for count in [0, MAX_BULK_REGISTRATIONS + 1] {
        let problem = send(&registry, bulk(count)).await;
        let problem = problem.problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "/registrations");
    }
    let most = send(&registry, bulk(MAX_BULK_REGISTRATIONS)).await.json();
    assert_eq!(
        most["outcomes"].as_array().unwrap().len(),
        MAX_BULK_REGISTRATIONS
    );

    let frame = json!({"registrations": [{"domain": ""}]}).to_string();
    let sized = |bytes: usize| {
        let domain = "a".repeat(bytes - frame.len());
        frame.replace("\"\"", &format!("\"{domain}\""))
    };
    let read = send(&registry, sized(MAX_REGISTRATIONS_BODY_BYTES))
        .await
        .json();
    assert_eq!(read["outcomes"][0]["status"], 422);
    send(&registry, sized(MAX_REGISTRATIONS_BODY_BYTES + 1))
        .await
        .problem(413, "too-large");
}

/// Anyone may register in an open registry, but not in bulk, because the limits per address could not stop so many.
#[actix_web::test]
async fn a_bulk_needs_an_account_that_may_register() {
    let registry = Registry::with(|config| {
        config.governance.registration = a2a_registry_core::config::RegistrationAccess::Open;
    })
    .await;
    let bulk = || {
        TestRequest::post()
            .uri("/v1/domains:register")
            .set_json(json!({"registrations": [{"domain": "a.agents-test.com"}]}))
    };
    registry.ask(bulk()).await.problem(401, "unauthenticated");
    let reader = registry.token(Role::Reader).await;
    let refused = registry.as_with(&reader, bulk()).await;
    refused.problem(403, "forbidden");
    let publisher = registry.token(Role::Publisher).await;
    assert_eq!(registry.as_with(&publisher, bulk()).await.status, 200);
}
