//! Groups that the configuration leaves out: they have no members, so nothing may name them.

use reqwest::Method;
use serde_json::{Value, json};

use super::provider_callbacks::signed_in_browser;
use super::{STAFF, account};
use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::identity_provider::IdentityProvider;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

both_databases!(a_group_that_something_names_is_not_left_out);

/// Sends a change as an admin and curator; gives the status and the answer.
async fn send_as_admin(
    registry: &ServingRegistry,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let answer = registry.admin_request(method, path).json(body).send().await;
    let answer = answer.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or(Value::Null))
}

/// Ann is in two hundred groups, of which two matter.
async fn corp(setup: &RegistrySetup) -> IdentityProvider {
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    let others = (0..198).map(|number| format!("other-{number}"));
    let groups: Vec<String> = ["staff", "leads"].map(str::to_owned).into_iter().collect();
    let many: Vec<String> = groups.iter().cloned().chain(others).collect();
    corp.set_parts(json!({"people": {
        "ann": {"preferred_username": "ann", "groups": many},
        "bob": {"preferred_username": "bob", "groups": groups},
    }}))
    .await;
    corp
}

#[tokio::test]
async fn somebody_in_two_hundred_groups_comes_in_with_those_that_are_selected() {
    let setup = RegistrySetup::new();
    let corp = corp(&setup).await;
    let lines = format!("{STAFF}\nselect_groups = [\"leads\", \"robots\", \"other-19*\"]");
    let registry = setup
        .allow_loopback_identity()
        .add_identity_provider("corp", &corp, &lines)
        .start()
        .await;
    corp.allow_callback_of(&registry.url, "corp").await;
    signed_in_browser(&registry, "ann").await;
    let ann = account(&registry, "ann@corp").await;
    assert_eq!(ann["roles"], json!(["reader", "curator"]));
    let groups = ann["groups"].as_array().unwrap().iter();
    let names: Vec<&str> = groups
        .map(|group| group["name"].as_str().unwrap())
        .collect();
    // `leads`, `other-19`, and `other-190` to `other-197`; she is no robot.
    assert_eq!(names.len(), 10, "{names:?}");
    assert!(names.contains(&"leads") && names.contains(&"other-197"));
    registry.stop().await;
}

async fn a_group_that_something_names_is_not_left_out(url: &str) {
    let setup = RegistrySetup::new().approve_all().with_database(url);
    let corp = corp(&setup).await;
    let of = |lines: &str| {
        let lines = format!("require = {{ claim = \"groups\", values = [\"staff\"] }}\n{lines}");
        let setup = setup.clone().allow_loopback_identity();
        setup.add_identity_provider("corp", &corp, &lines)
    };
    let selecting = of("select_groups = [\"a2a-*\"]");
    let leads = format!("{}#leads", corp.issuer);
    // The map of roles.
    let roles = of("roles = { leads = [\"curator\"] }\nselect_groups = [\"staff\"]");
    let refused = roles.start_expecting_failure().await;
    assert!(
        refused.contains("roles names the group \"leads\""),
        "{refused}"
    );
    let registry = of("").start().await;
    corp.allow_callback_of(&registry.url, "corp").await;
    signed_in_browser(&registry, "bob").await;
    // The set in force.
    let all = json!({"id": "all", "text": "permit (principal, action, resource);"});
    let about = json!({"id": "about-leads", "text": format!(
        "forbid (principal in Group::\"{leads}\", action == Action::\"discover\", resource);"
    )});
    let with = json!({"reason": "a test", "policies": [all, about]});
    let without = json!({"reason": "a test", "policies": [all]});
    let (status, answer) = send_as_admin(&registry, Method::PUT, "/v1/policies", &with).await;
    assert!((200..300).contains(&status), "{answer}");
    registry.stop().await;
    let refused = selecting.start_expecting_failure().await;
    for named in [
        "corp.select_groups",
        "\"leads\"",
        "about-leads",
        "policy set 1",
    ] {
        assert!(refused.contains(named), "{named}: {refused}");
    }
    // The audience of a collection.
    let registry = of("").start().await;
    let (status, answer) = send_as_admin(&registry, Method::PUT, "/v1/policies", &without).await;
    assert!((200..300).contains(&status), "{answer}");
    let collection = json!({"filter": "tag:x", "description": "", "audience": [leads]});
    let path = "/v1/collections/for-leads";
    let (status, answer) = send_as_admin(&registry, Method::PUT, path, &collection).await;
    assert!((200..300).contains(&status), "{answer}");
    registry.stop().await;
    let refused = selecting.start_expecting_failure().await;
    assert!(refused.contains("the collection for-leads"), "{refused}");
    // The audience of an agent.
    let registry = of("").start().await;
    let gone = registry
        .admin_request(Method::DELETE, path)
        .send()
        .await
        .unwrap();
    assert_eq!(gone.status(), 204);
    let origin = Origin::start();
    origin.set_reply("/card.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.register(&origin.url("/card.json")).await;
    let agent = registry.wait_for_hit("skill=repeat").await.summary.id;
    let path = format!("/v1/agents/{agent}");
    let audience = json!({"visibility": "restricted", "groups": [leads]});
    let (status, answer) = send_as_admin(&registry, Method::PATCH, &path, &audience).await;
    assert_eq!(status, 200, "{answer}");
    registry.stop().await;
    let refused = selecting.start_expecting_failure().await;
    assert!(refused.contains(&format!("the agent {agent}")), "{refused}");
    // Where nothing names it any more, or an agent alone that is retired for good, nothing may name it again.
    let registry = of("").start().await;
    let public = json!({"visibility": "public"});
    assert_eq!(
        send_as_admin(&registry, Method::PATCH, &path, &public)
            .await
            .0,
        200
    );
    registry.stop().await;
    let registry = selecting.start().await;
    registry.stop().await;
    let registry = of("").start().await;
    assert_eq!(
        send_as_admin(&registry, Method::PATCH, &path, &audience)
            .await
            .0,
        200
    );
    let reason = json!({"reason": "a test"});
    let retire = format!("{path}:retire");
    let (status, answer) = send_as_admin(&registry, Method::POST, &retire, &reason).await;
    assert_eq!(status, 200, "{answer}");
    registry.stop().await;
    let registry = selecting.start().await;
    let (status, problem) = send_as_admin(&registry, Method::PUT, "/v1/policies", &with).await;
    assert_eq!(status, 400, "{problem}");
    assert!(
        problem.to_string().contains("/policies/1/text"),
        "{problem}"
    );
    assert!(problem.to_string().contains("select_groups"), "{problem}");
    let (status, problem) = send_as_admin(&registry, Method::PATCH, &path, &audience).await;
    assert_eq!(status, 400, "{problem}");
    let (status, problem) = send_as_admin(
        &registry,
        Method::PUT,
        "/v1/collections/for-leads",
        &collection,
    )
    .await;
    assert_eq!(status, 400, "{problem}");
    let (status, answer) = send_as_admin(&registry, Method::PUT, "/v1/policies", &without).await;
    assert!((200..300).contains(&status), "{answer}");
    registry.stop().await;
}
