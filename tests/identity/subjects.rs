//! Access tokens as subjects: a gateway asks about the holder of a token, which is only verified.

use reqwest::Method;
use serde_json::{Value, json};

use super::with_corp_in;
use crate::support::api::ApiResponse;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// The status of the answer to a gateway, and the members of its body.
async fn ask_about(registry: &ServingRegistry, agent: &str, token: &str) -> (u16, Value) {
    let request = registry
        .request(Method::GET, &format!("/v1/decide?agent={agent}"))
        .bearer_auth(ADMIN_TOKEN)
        .header("subject-authorization", format!("Bearer {token}"));
    let answer = ApiResponse::send(request).await;
    let body = serde_json::from_slice(&answer.body).unwrap();
    (answer.status.as_u16(), body)
}

#[tokio::test]
async fn the_holder_of_an_access_token_is_asked_about_without_a_trace() {
    let (corp, registry) = with_corp_in(RegistrySetup::new().approve_all()).await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let agent = registry.publish(&origin.url("/a.json")).await;
    let group = format!("{}#robots", corp.issuer);
    let policies = json!({"reason": "a test", "policies": [
        {"id": "robots", "text": format!(
            "permit (principal in Group::\"{group}\", action == Action::\"invoke\", resource);"
        )},
        {"id": "finds", "text": "permit (principal, action == Action::\"discover\", resource);"},
    ]});
    let put = registry
        .admin_request(Method::PUT, "/v1/policies")
        .json(&policies);
    assert!(put.send().await.unwrap().status().is_success());
    let token = corp.service_token("pipeline").await;
    eventually("the policies decide", async || {
        let (status, body) = ask_about(&registry, &agent, &token).await;
        (status == 200 && body["policies"] == json!(["robots"])).then_some(())
    })
    .await;
    // Nobody has come: there is no account.
    let none = registry.get_as_admin("/v1/accounts/pipeline@corp").await;
    assert_eq!(none.status, 404);
    let stranger = corp.service_token("stranger").await;
    let (status, body) = ask_about(&registry, &agent, &stranger).await;
    assert_eq!(status, 403, "{body}");
    assert!(
        body["detail"].as_str().unwrap().contains("require"),
        "{body}"
    );

    // An account that came keeps its roles and groups, whatever is asked about it.
    let me = registry.request(Method::GET, "/v1/me").bearer_auth(&token);
    assert_eq!(me.send().await.unwrap().status(), 200);
    let before: Value = registry.read_as_admin("/v1/accounts/pipeline@corp").await;
    corp.set_parts(json!({"services": {"pipeline": {"groups": ["leads", "staff"]}}}))
        .await;
    let changed = corp.service_token("pipeline").await;
    let (status, body) = ask_about(&registry, &agent, &changed).await;
    assert_eq!(status, 403, "it is in other groups: {body}");
    let after: Value = registry.read_as_admin("/v1/accounts/pipeline@corp").await;
    assert_eq!(before, after);
    for bad in ["nonsense", ADMIN_TOKEN, &format!("{token}x")] {
        let (status, body) = ask_about(&registry, &agent, bad).await;
        assert_eq!(status, 403, "{body}");
    }
    registry.stop().await;
}
