//! Tests of linting submitted cards.

use a2a_card::{MAX_CARD_BYTES, MAX_DEPTH, bytes_digest};
use a2a_registry_api::CardLint;
use a2a_registry_core::process_state::lint_pool::MAX_PENDING_LINTS;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::tests::{ADMIN, Registry, TestResponse, bearer};

const PATH: &str = "/v1/cards:lint";

fn card(bytes: impl Into<Vec<u8>>) -> TestRequest {
    TestRequest::post()
        .uri(PATH)
        .insert_header(("content-type", "application/json"))
        .set_payload(bytes.into())
}

fn linted(answer: &TestResponse) -> CardLint {
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

#[actix_web::test]
async fn anyone_may_lint_a_card_and_learns_what_it_was_read_as() {
    let registry = Registry::new().await;
    let text = "{\"name\": \"Echo\",\n  \"protocolVersion\": \"0.3.0\",\n  \"url\": \"http://localhost:9000\"}";
    let found = linted(&registry.ask(card(text)).await);
    assert_eq!(found.digest, bytes_digest(text.as_bytes()));
    assert_eq!(
        (found.name.as_str(), found.wire_family.as_str()),
        ("Echo", "0.3")
    );
    assert!(!found.reason.is_empty());
    let private = found
        .findings
        .iter()
        .find(|one| one.rule == "endpoint.private")
        .unwrap();
    assert_eq!(
        (private.line, private.column),
        (Some(3), Some(10)),
        "{private:?}"
    );
    assert_eq!(private.pointer, "/url");
    let by_admin = linted(&registry.ask(bearer(card(text), ADMIN)).await);
    assert_eq!(by_admin, found);
}

/// The findings equal those that the command line prints for the same bytes.
#[actix_web::test]
async fn the_findings_are_those_of_the_linter() {
    let registry = Registry::new().await;
    let text =
        json!({"name": "Echo", "skills": [{"id": "a"}, 7], "url": "ftp://a.example"}).to_string();
    let found = linted(&registry.ask(card(text.clone())).await);
    let parsed = a2a_card::parse_card(text.as_bytes()).unwrap();
    let rules: Vec<String> = a2a_card::all_findings(&parsed, text.as_bytes())
        .into_iter()
        .map(|finding| finding.rule)
        .collect();
    let answered: Vec<String> = found.findings.into_iter().map(|one| one.rule).collect();
    assert!(!rules.is_empty());
    assert_eq!(answered, rules);
}

#[actix_web::test]
async fn a_document_that_is_no_card_is_told_from_one_that_is_no_json() {
    let registry = Registry::new().await;
    for text in ["{", "name: Echo", "{\"name\": \"a\"} {}", "{\"name\": 01}"] {
        let problem = registry.ask(card(text)).await.problem(400, "not-json");
        assert!(
            problem["detail"].as_str().unwrap().contains("line"),
            "{problem}"
        );
        assert_eq!(problem["errors"][0]["pointer"], "");
    }
    let deep = format!(
        "{{\"name\": \"a\", \"x\": {}{}}}",
        "[".repeat(MAX_DEPTH),
        "]".repeat(MAX_DEPTH)
    );
    for text in [
        "",
        "<html></html>",
        "[]",
        "null",
        "7",
        "\"Echo\"",
        "{}",
        "{\"title\": \"a\"}",
        &deep,
    ] {
        let problem = registry.ask(card(text)).await.problem(422, "not-a-card");
        assert!(
            problem["detail"].as_str().unwrap().contains("Expected"),
            "{problem}"
        );
    }
    registry
        .ask(card(b"{\"name\": \"\xff\"}".to_vec()))
        .await
        .problem(400, "not-json");
    let form = TestRequest::post()
        .uri(PATH)
        .set_payload("{\"name\": \"a\"}");
    registry.ask(form).await.problem(415, "wrong-media-type");
    let coded = card("{\"name\": \"a\"}").insert_header(("content-encoding", "gzip"));
    registry.ask(coded).await.problem(415, "wrong-media-type");
}

#[actix_web::test]
async fn a_card_of_one_mebibyte_is_linted_and_no_larger_one() {
    let registry = Registry::new().await;
    let frame = json!({"name": "Echo", "x": ""}).to_string();
    let padding = "a".repeat(MAX_CARD_BYTES - frame.len());
    let largest = frame.replace("\"\"", &format!("\"{padding}\""));
    assert_eq!(largest.len(), MAX_CARD_BYTES);
    assert_eq!(
        linted(&registry.ask(card(largest.clone())).await).name,
        "Echo"
    );
    registry
        .ask(card(largest + " "))
        .await
        .problem(413, "too-large");
}

/// The response stays bounded even if names are as long as the card and every element has a finding.
#[actix_web::test]
async fn the_answer_to_the_worst_card_is_bounded() {
    let registry = Registry::new().await;
    let skills = vec![json!({"id": 1, "name": 2, "\u{202e}description": [3]}); 15_000];
    let text = json!({"name": "a".repeat(100_000), "skills": skills}).to_string();
    assert!(text.len() < MAX_CARD_BYTES);
    let answer = registry.ask(card(text)).await;
    assert!(answer.body.len() < 4 << 20, "{}", answer.body.len());
    assert!(linted(&answer).findings.len() <= 2 * a2a_card::MAX_FINDINGS);
}

#[actix_web::test]
async fn without_a_token_an_address_lints_as_often_as_it_may_write() {
    let registry = Registry::with(|config| config.limits.anonymous_writes_per_minute = 2).await;
    let from = |request: TestRequest| request.peer_addr("192.0.2.7:1000".parse().unwrap());
    for _ in 0..2 {
        linted(&registry.ask(from(card("{\"name\": \"a\"}"))).await);
    }
    let refused = registry.ask(from(card("{\"name\": \"a\"}"))).await;
    refused.problem(429, "too-many-requests");
    linted(
        &registry
            .ask(from(bearer(card("{\"name\": \"a\"}"), ADMIN)))
            .await,
    );
}

#[actix_web::test]
async fn a_card_beyond_the_last_place_is_refused_and_a_place_is_free_again() {
    let registry = Registry::new().await;
    let places = &registry.context().lint_pool.pending;
    let taken = places
        .acquire_many(u32::try_from(MAX_PENDING_LINTS).unwrap())
        .await
        .unwrap();
    let full = registry.ask(card("{\"name\": \"a\"}")).await;
    full.problem(503, "unavailable");
    assert_eq!(full.header("retry-after"), "1");
    drop(taken);
    linted(&registry.ask(card("{\"name\": \"a\"}")).await);
    assert_eq!(places.available_permits(), MAX_PENDING_LINTS);
}
