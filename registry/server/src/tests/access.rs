//! Tests of unknown, invalid and foreign tokens at every operation of the document. The table of permissions is in
//! `tests/contract/authorisation.rs`.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_domain::role::Role;
use a2a_registry_http::routes::openapi::default_openapi_text;
use a2a_registry_http::routes::openapi::operations::{
    ApiOperation, all_api_operations as operations,
};
use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use time::OffsetDateTime;
use url::form_urlencoded;

use crate::tests::{ADMIN, Registry, TestResponse, bearer};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&default_openapi_text()).unwrap());

/// Well-formed request for an operation, so that only the caller determines the response: the document's examples
/// without optional parts.
pub(super) fn request(operation: &ApiOperation) -> TestRequest {
    let method = operation.method.to_lowercase();
    let described = &DOCUMENT["paths"][&operation.path][&method];
    let mut path = operation.path.clone();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for parameter in described["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let example = parameter["example"].as_str();
        match parameter["in"].as_str() {
            Some("path") => path = path.replace(&format!("{{{name}}}"), example.unwrap()),
            Some("query") if parameter["required"] == true => {
                query.append_pair(name, example.unwrap());
            }
            _ => {}
        }
    }
    let query = query.finish();
    let uri = match query.is_empty() {
        true => path,
        false => format!("{path}?{query}"),
    };
    let request = TestRequest::default()
        .method(operation.method.parse::<Method>().unwrap())
        .uri(&uri);
    match &described["requestBody"]["content"]["application/json"]["example"] {
        Value::Null => request,
        body => request.set_json(body),
    }
}

/// A clock that tests set manually.
#[derive(Debug)]
struct MovedClock(Mutex<OffsetDateTime>);

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

/// Every operation rejects tokens that are no longer valid, even of an admin, and even if it requires no token.
#[actix_web::test]
async fn a_token_that_has_ended_is_refused_everywhere() {
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let expired = registry.admin_alone().await;
    *clock.0.lock().unwrap() += Duration::from_secs(90 * 24 * 3600);
    let revoked = registry.token(Role::Curator).await;
    let list = registry
        .ask(bearer(TestRequest::get().uri("/v1/tokens"), ADMIN))
        .await;
    let id = list.json()["tokens"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/tokens/{id}");
    let gone = registry
        .ask(bearer(TestRequest::delete().uri(&path), ADMIN))
        .await;
    assert_eq!(gone.status, 204);
    let disabled = registry.token(Role::Auditor).await;
    let patch = TestRequest::patch()
        .uri("/v1/accounts/auditor")
        .set_json(json!({"disabled": true}));
    assert_eq!(registry.ask(bearer(patch, ADMIN)).await.status, 200);
    for operation in operations()
        .iter()
        .filter(|operation| reads_tokens(&operation.id))
    {
        for token in [&expired, &revoked, &disabled] {
            let answer = registry.ask(bearer(request(operation), token)).await;
            unauthenticated(operation, &answer);
        }
    }
}

/// Whether an operation depends on the caller: process state and published documents are the same for everyone.
fn reads_tokens(id: &str) -> bool {
    !matches!(
        id,
        "livez"
            | "readyz"
            | "metrics"
            | "own_card"
            | "own_card_0_2"
            | "own_keys"
            | "ard_catalog"
            | "ai_catalog"
            // It answers 403 to a token that has ended, as to everything else that is not allowed.
            | "gateway_decide"
    )
}

/// Asserts that a token was rejected, in the error format of the protocol.
fn unauthenticated(operation: &ApiOperation, answer: &TestResponse) {
    if operation.path.starts_with("/ard/") {
        assert_eq!(answer.status, 401, "{answer:?}");
        assert_eq!(answer.json()["errorCode"], "UNAUTHENTICATED");
        return;
    }
    answer.problem(401, "unauthenticated");
}

/// Card paths ignore a header for another host.
#[actix_web::test]
async fn a_foreign_authorization_on_card_paths_counts_as_none() {
    let registry = Registry::new().await;
    let cards = operations()
        .iter()
        .filter(|operation| operation.id.starts_with("agent_card"));
    for operation in cards {
        let bare = registry.ask(request(operation)).await;
        for foreign in [
            "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln",
            "Basic YTpi",
            "DPoP a2aq_x",
            "Bearer",
            "nonsense",
        ] {
            let asked = request(operation).insert_header(("authorization", foreign));
            let answer = registry.ask(asked).await;
            assert_eq!(answer.status, bare.status, "{} {foreign}", operation.id);
            assert_ne!(answer.status, 401);
        }
    }
}

#[actix_web::test]
async fn a_bad_token_is_refused_everywhere() {
    let registry = Registry::new().await;
    for operation in operations()
        .iter()
        .filter(|operation| reads_tokens(&operation.id))
    {
        let own = [
            "Bearer a2ar_nonsense",
            "Basic a2ar_nonsense",
            "a2ar_nonsense",
        ];
        let foreign = ["Bearer nonsense", "Bearer ", "Basic YTpi", "Bearer"];
        // Card routes ignore an `Authorization` for another host.
        let foreign = match operation.id.starts_with("agent_card") {
            true => &[],
            false => &foreign[..],
        };
        for wrong in own.iter().chain(foreign) {
            let request = request(operation).insert_header(("authorization", *wrong));
            let answer = registry.ask(request).await;
            unauthenticated(operation, &answer);
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}
