//! Tests of tokens: who creates them, their scopes, lifetime and number.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_api::limits::MAX_TOKENS_PER_ACCOUNT;
use a2a_registry_domain::role::{Role, Scope};
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::tests::{ADMIN, Registry, TestResponse};

async fn create(registry: &Registry, by: &str, body: Value) -> TestResponse {
    let request = TestRequest::post().uri("/v1/tokens").set_json(body);
    registry.as_with(by, request).await
}

async fn tokens(registry: &Registry, by: &str) -> Vec<Value> {
    let request = TestRequest::get().uri("/v1/tokens?page_size=100");
    let list = registry.as_with(by, request).await;
    list.json()["tokens"].as_array().unwrap().clone()
}

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect()
}

#[actix_web::test]
async fn an_account_makes_lists_and_revokes_its_own_tokens() {
    let registry = Registry::new().await;
    let publisher = registry.token(Role::Publisher).await;
    let made = create(&registry, &publisher, json!({"name": "second"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.header("cache-control"), "no-store");
    let made = made.json();
    assert_eq!(made["account"], "publisher");
    assert_eq!(texts(&made["scopes"]), ["read", "register"]);
    let secret = made["secret"].as_str().unwrap();
    // The prefix and 32 random bytes.
    assert_eq!((&secret[..5], secret.len()), ("a2ar_", 5 + 43));
    let listed = tokens(&registry, secret).await;
    assert!(listed.iter().all(|token| token["account"] == "publisher"));
    assert_eq!(listed.len(), 2);
    assert!(tokens(&registry, ADMIN).await.len() > 2);
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    let revoked = registry
        .as_with(&publisher, TestRequest::delete().uri(&path))
        .await;
    assert_eq!(revoked.status, 204);
    let over = registry
        .as_with(secret, TestRequest::get().uri("/v1/agents"))
        .await;
    over.problem(401, "unauthenticated");
}

/// The response does not depend on whether the account exists.
#[actix_web::test]
async fn only_an_admin_makes_or_revokes_tokens_of_others() {
    let registry = Registry::new().await;
    let victim = registry.admin_alone().await;
    let ids = tokens(&registry, &victim).await;
    let id = ids
        .iter()
        .find(|token| token["account"] == "operator")
        .unwrap();
    let path = format!("/v1/tokens/{}", id["id"].as_str().unwrap());
    for role in [Role::Reader, Role::Publisher, Role::Curator, Role::Auditor] {
        let own = registry.token(role).await;
        for (account, role) in [
            ("operator", "admin"),
            ("unheard", "reader"),
            ("admin", "admin"),
        ] {
            let body = json!({"account": account, "role": role, "name": "x"});
            create(&registry, &own, body)
                .await
                .problem(403, "forbidden");
        }
        let revoked = registry
            .as_with(&own, TestRequest::delete().uri(&path))
            .await;
        revoked.problem(404, "not-found");
        // A token cannot grant a role that the account does not have.
        let body = json!({"role": "admin", "name": "x"});
        create(&registry, &own, body).await.problem(409, "conflict");
        let body = json!({"scopes": ["admin"], "name": "x"});
        create(&registry, &own, body).await.problem(409, "conflict");
    }
    assert_eq!(
        registry
            .as_with(&victim, TestRequest::get().uri("/v1/me"))
            .await
            .status,
        200
    );
}

#[actix_web::test]
async fn a_narrow_token_makes_and_revokes_no_wider_one() {
    let registry = Registry::new().await;
    let narrow = registry.scoped(Role::Curator, &[Scope::Read]).await;
    let wide = registry.token(Role::Curator).await;
    let made = create(&registry, &narrow, json!({"name": "same"}))
        .await
        .json();
    assert_eq!(texts(&made["scopes"]), ["read"]);
    let body = json!({"name": "wider", "scopes": ["read", "curate"]});
    create(&registry, &narrow, body)
        .await
        .problem(403, "forbidden");
    let listed = tokens(&registry, &wide).await;
    let wider = listed
        .iter()
        .find(|token| texts(&token["scopes"]).len() > 1)
        .unwrap();
    let path = format!("/v1/tokens/{}", wider["id"].as_str().unwrap());
    let refused = registry
        .as_with(&narrow, TestRequest::delete().uri(&path))
        .await;
    refused.problem(403, "forbidden");
    // The token cannot register like a curator either.
    let body = json!({"card_url": "http://10.0.0.1/card.json"});
    let request = TestRequest::post().uri("/v1/domains").set_json(body);
    registry
        .as_with(&narrow, request)
        .await
        .problem(403, "forbidden");
    let deciding = registry.scoped(Role::Auditor, &[Scope::Decide]).await;
    create(&registry, &deciding, json!({"name": "x"}))
        .await
        .problem(403, "forbidden");
}

#[actix_web::test]
async fn every_token_ends() {
    let registry = Registry::new().await;
    let days = |token: &Value| {
        let at = |member: &str| {
            let text = token[member].as_str().unwrap();
            OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).unwrap()
        };
        (at("expires_at") - at("created_at")).whole_days()
    };
    let made = create(&registry, ADMIN, json!({"name": "x"})).await.json();
    assert_eq!(days(&made), 90);
    let body = json!({"name": "x", "expires_in_days": 365});
    assert_eq!(days(&create(&registry, ADMIN, body).await.json()), 365);
    for wrong in [0, 366, 3650] {
        let body = json!({"name": "x", "expires_in_days": wrong});
        create(&registry, ADMIN, body)
            .await
            .problem(400, "invalid-request");
    }
    let body = json!({"name": "x", "scopes": []});
    create(&registry, ADMIN, body)
        .await
        .problem(400, "invalid-request");
}

/// A clock that tests set manually.
#[derive(Debug)]
struct MovedClock(Mutex<OffsetDateTime>);

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

#[actix_web::test]
async fn an_account_has_a_bounded_number_of_tokens() {
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let own = registry.token(Role::Publisher).await;
    let body = || json!({"name": "x", "expires_in_days": 1});
    for _ in 1..MAX_TOKENS_PER_ACCOUNT {
        assert_eq!(create(&registry, &own, body()).await.status, 201);
    }
    create(&registry, &own, body())
        .await
        .problem(403, "limit-reached");
    let for_it = json!({"account": "publisher", "name": "x"});
    create(&registry, ADMIN, for_it)
        .await
        .problem(403, "limit-reached");
    // Other accounts are not affected, and ended tokens free capacity.
    assert_eq!(create(&registry, ADMIN, body()).await.status, 201);
    *clock.0.lock().unwrap() += Duration::from_secs(24 * 3600);
    assert_eq!(create(&registry, &own, body()).await.status, 201);
}

#[actix_web::test]
async fn the_hour_of_the_last_use_is_shown() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Reader).await;
    // The use is recorded asynchronously.
    let noted = async {
        loop {
            let listed = tokens(&registry, &own).await;
            if let Some(at) = listed[0]["last_used_at"].as_str() {
                break at.to_owned();
            }
            tokio::task::yield_now().await;
        }
    };
    let at = tokio::time::timeout(Duration::from_secs(30), noted)
        .await
        .unwrap();
    assert!(at.contains(":00:00"), "{at}");
}
