//! Tests of the `Authorization` header on card routes, where SDKs may send credentials for another agent.

use a2a_registry_domain::role::Role;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::tests::cards::with_agents;
use crate::tests::{ADMIN, Registry, TestResponse, bearer};

/// Header values for another host.
const FOREIGN: [&str; 8] = [
    "Bearer eyJhbGciOiJub25lIn0.e30.",
    "Bearer nonsense",
    "Bearer",
    "Bearer ",
    "Basic YTpi",
    "DPoP xyz",
    "Digest username=\"x\"",
    "\u{e9}",
];

fn paths(id: &str) -> [String; 4] {
    [
        format!("/v1/agents/{id}/card"),
        format!("/v1/agents/{id}/card?as=0.3"),
        format!("/agents/{id}/.well-known/agent-card.json"),
        format!("/agents/{id}/.well-known/agent.json"),
    ]
}

/// Parts of a response that depend on the caller.
fn content(answer: &TestResponse) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| *name != "x-request-id")
        .map(|(name, value)| (name.to_string(), format!("{value:?}")))
        .collect();
    headers.sort();
    (answer.status.as_u16(), headers, answer.body.to_vec())
}

#[actix_web::test]
async fn a_foreign_authorization_counts_as_none_where_cards_are_read() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, samples) = with_agents(&registry).await;
    for path in paths(&id) {
        let anonymous = content(&registry.get(&path).await);
        assert_eq!(anonymous.0, 200, "{path}");
        for foreign in FOREIGN {
            let request = TestRequest::get()
                .uri(&path)
                .insert_header(("authorization", foreign));
            let answer = content(&registry.ask(request).await);
            assert_eq!(answer, anonymous, "{path} {foreign}");
        }
        let twice = TestRequest::get()
            .uri(&path)
            .append_header(("authorization", "Bearer one"))
            .append_header(("authorization", "Basic dHdv"));
        assert_eq!(content(&registry.ask(twice).await), anonymous, "{path}");
    }

    // A foreign header does not make other owners' agents visible; a caller with access sees them with a token of any
    // age.
    let suspend = TestRequest::post().uri(&format!("/v1/agents/{id}:suspend"));
    let suspend = bearer(suspend, ADMIN).set_json(json!({"reason": "a test"}));
    assert_eq!(registry.ask(suspend).await.status, 200);
    let curator = registry.token(Role::Curator).await;
    assert!(curator.starts_with("a2ar_") && !ADMIN.starts_with("a2ar_"));
    for path in paths(&id) {
        for foreign in FOREIGN {
            let request = TestRequest::get()
                .uri(&path)
                .insert_header(("authorization", foreign));
            registry.ask(request).await.problem(404, "not-found");
        }
        for token in [ADMIN, &curator] {
            let seen = registry
                .ask(bearer(TestRequest::get().uri(&path), token))
                .await;
            assert_eq!(seen.status, 200, "{path}");
            assert_eq!(seen.header("access-control-allow-origin"), "");
        }
    }
    jobs.stop().await;
    samples.stop().await;
}

/// A revoked token of this registry is rejected on card routes too.
#[actix_web::test]
async fn an_own_token_that_has_ended_is_refused_where_cards_are_read() {
    let registry = Registry::new().await;
    let token = registry.token(Role::Curator).await;
    let tokens = registry
        .ask(bearer(TestRequest::get().uri("/v1/tokens"), ADMIN))
        .await
        .json();
    let revoked = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    let revoke = TestRequest::delete().uri(&format!("/v1/tokens/{revoked}"));
    assert_eq!(registry.ask(bearer(revoke, ADMIN)).await.status, 204);
    for path in paths("018f0000-0000-7000-8000-000000000000") {
        let ended = registry
            .ask(bearer(TestRequest::get().uri(&path), &token))
            .await;
        ended.problem(401, "unauthenticated");
        let two = bearer(TestRequest::get().uri(&path), &token)
            .append_header(("authorization", "Basic YTpi"));
        registry.ask(two).await.problem(401, "unauthenticated");
        registry.get(&path).await.problem(404, "not-found");
    }
}
