//! Accounts and groups: what admins change, when it acts, and what may not be lost.

use a2a_registry_domain::ids::new_id;
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::{account_group, group_member};
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::tests::{ADMIN, Registry, TestResponse};

async fn get(registry: &Registry, by: &str, path: &str) -> TestResponse {
    registry.as_with(by, TestRequest::get().uri(path)).await
}

async fn patch(registry: &Registry, account: &str, body: Value) -> TestResponse {
    let path = format!("/v1/accounts/{account}");
    let request = TestRequest::patch().uri(&path).set_json(body);
    registry.as_with(ADMIN, request).await
}

async fn put(registry: &Registry, group: &str, members: Value) -> TestResponse {
    let path = format!("/v1/groups/{group}");
    let request = TestRequest::put()
        .uri(&path)
        .set_json(json!({"members": members}));
    registry.as_with(ADMIN, request).await
}

#[actix_web::test]
async fn a_caller_is_told_who_it_is() {
    let registry = Registry::new().await;
    registry.get("/v1/me").await.problem(401, "unauthenticated");
    let me = get(&registry, ADMIN, "/v1/me").await.json();
    assert_eq!(
        (&me["name"], &me["role"]),
        (&json!("admin"), &json!("admin"))
    );
    assert_eq!(me["roles"], json!(["curator", "admin"]));
    assert_eq!(me["token"]["expires_at"], Value::Null);
    let own = registry.token(Role::Publisher).await;
    assert_eq!(
        put(&registry, "travel", json!(["publisher"])).await.status,
        200
    );
    let me = get(&registry, &own, "/v1/me").await.json();
    assert_eq!(me["scopes"], json!(["read", "register"]));
    assert_eq!(me["groups"], json!([{"origin": "admin", "name": "travel"}]));
    assert!(me["token"]["expires_at"].is_string());
    assert!(!me.to_string().contains(&own));
}

#[actix_web::test]
async fn a_change_of_roles_acts_at_the_next_request() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Curator).await;
    assert_eq!(get(&registry, &own, "/v1/reviews").await.status, 200);
    assert_eq!(
        patch(&registry, "curator", json!({"roles": ["reader"]}))
            .await
            .status,
        200
    );
    get(&registry, &own, "/v1/reviews")
        .await
        .problem(403, "forbidden");
    get(&registry, &own, "/v1/events")
        .await
        .problem(403, "forbidden");
    let roles = json!({"roles": ["curator", "admin"]});
    assert_eq!(patch(&registry, "curator", roles).await.status, 200);
    assert_eq!(get(&registry, &own, "/v1/reviews").await.status, 200);
    // The token is no wider than it was made.
    let new = json!({"name": "x", "roles": ["admin"]});
    let request = TestRequest::post().uri("/v1/accounts").set_json(new);
    registry
        .as_with(&own, request)
        .await
        .problem(403, "forbidden");
}

#[actix_web::test]
async fn a_disabled_account_has_no_tokens_and_gets_none_back() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    assert_eq!(
        patch(&registry, "publisher", json!({"disabled": true}))
            .await
            .status,
        200
    );
    get(&registry, &own, "/v1/agents")
        .await
        .problem(401, "unauthenticated");
    let new = json!({"account": "publisher", "name": "x"});
    let request = TestRequest::post().uri("/v1/tokens").set_json(new);
    registry
        .as_with(ADMIN, request)
        .await
        .problem(409, "conflict");
    let enabled = patch(&registry, "publisher", json!({"disabled": false})).await;
    assert_eq!(enabled.json()["disabled_at"], Value::Null);
    get(&registry, &own, "/v1/agents")
        .await
        .problem(401, "unauthenticated");
    let again = registry.token(Role::Publisher).await;
    assert_eq!(get(&registry, &again, "/v1/me").await.status, 200);
}

#[actix_web::test]
async fn the_last_enabled_admin_stays() {
    let registry = Registry::new().await;
    for body in [json!({"disabled": true}), json!({"roles": ["curator"]})] {
        patch(&registry, "admin", body)
            .await
            .problem(409, "conflict");
    }
    // A disabled admin does not count.
    let other = registry.admin_alone().await;
    assert_eq!(
        patch(&registry, "operator", json!({"disabled": true}))
            .await
            .status,
        200
    );
    patch(&registry, "admin", json!({"disabled": true}))
        .await
        .problem(409, "conflict");
    get(&registry, &other, "/v1/me")
        .await
        .problem(401, "unauthenticated");
    assert_eq!(
        patch(&registry, "operator", json!({"disabled": false}))
            .await
            .status,
        200
    );
    assert_eq!(
        patch(&registry, "admin", json!({"disabled": true}))
            .await
            .status,
        200
    );
    get(&registry, ADMIN, "/v1/me")
        .await
        .problem(401, "unauthenticated");
}

#[actix_web::test]
async fn a_change_of_something_else_than_was_seen_is_refused() {
    let registry = Registry::new().await;
    registry.token(Role::Publisher).await;
    let seen = get(&registry, ADMIN, "/v1/accounts/publisher").await;
    let tag = seen.header("etag").to_owned();
    let change = |roles: Value| {
        TestRequest::patch()
            .uri("/v1/accounts/publisher")
            .insert_header(("if-match", tag.clone()))
            .set_json(json!({"roles": roles}))
    };
    let first = registry.as_with(ADMIN, change(json!(["curator"]))).await;
    assert_eq!(first.status, 200);
    assert_ne!(first.header("etag"), tag);
    let second = registry.as_with(ADMIN, change(json!(["auditor"]))).await;
    second.problem(412, "changed-meanwhile");
    let now = get(&registry, ADMIN, "/v1/accounts/publisher").await;
    assert_eq!(now.json()["roles"], json!(["curator"]));
    assert_eq!(now.header("etag"), first.header("etag"));

    let group = put(&registry, "travel", json!([])).await;
    let tag = group.header("etag").to_owned();
    put(&registry, "travel", json!(["publisher"])).await;
    let request = || {
        TestRequest::delete()
            .uri("/v1/groups/travel")
            .insert_header(("if-match", tag.clone()))
    };
    registry
        .as_with(ADMIN, request())
        .await
        .problem(412, "changed-meanwhile");
    let anything = TestRequest::put()
        .uri("/v1/groups/new")
        .insert_header(("if-match", "*"))
        .set_json(json!({"members": []}));
    registry
        .as_with(ADMIN, anything)
        .await
        .problem(412, "changed-meanwhile");
}

#[actix_web::test]
async fn accounts_are_made_and_changed_as_they_are_named() {
    let registry = Registry::new().await;
    let create = async |body: Value| {
        let request = TestRequest::post().uri("/v1/accounts").set_json(body);
        registry.as_with(ADMIN, request).await
    };
    let new = json!({"name": "ann", "roles": ["reader", "auditor"]});
    let made = create(new.clone()).await;
    assert_eq!(made.status, 201);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    create(new).await.problem(409, "conflict");
    create(json!({"name": id, "roles": ["reader"]}))
        .await
        .problem(400, "invalid-request");
    create(json!({"name": "bob", "roles": []}))
        .await
        .problem(400, "invalid-request");
    let unheard = json!({"name": "bob", "roles": ["reader"], "groups": ["none"]});
    create(unheard).await.problem(409, "conflict");
    // Nothing is left of what was refused.
    get(&registry, ADMIN, "/v1/accounts/bob")
        .await
        .problem(404, "not-found");
    put(&registry, "travel", json!([])).await;
    put(&registry, "money", json!(["ann"])).await;
    let changed = patch(&registry, &id, json!({"groups": ["travel"]}))
        .await
        .json();
    assert_eq!(
        changed["groups"],
        json!([{"origin": "admin", "name": "travel"}])
    );
    put(&registry, "travel", json!(["unheard"]))
        .await
        .problem(409, "conflict");
    let listed = get(&registry, ADMIN, "/v1/groups").await.json();
    let of = |name: &str| {
        let groups = listed["groups"].as_array().unwrap();
        let group = groups.iter().find(|group| group["name"] == name).unwrap();
        group["members"].clone()
    };
    assert_eq!((of("travel"), of("money")), (json!(["ann"]), json!([])));
    let events = get(&registry, ADMIN, "/v1/events?page_size=100")
        .await
        .json();
    let events = events["events"].as_array().unwrap();
    for kind in ["account.created", "account.changed", "group.changed"] {
        let mut of_kind = events.iter().filter(|event| event["kind"] == kind);
        assert!(of_kind.any(|event| event["actor"] == "admin"), "{kind}");
    }
}

/// A group of the same name at another issuer is another group: nothing done to ours touches it, nor the other way.
#[actix_web::test]
async fn groups_of_two_origins_are_two_groups() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let me = get(&registry, &own, "/v1/me").await.json();
    let context = registry.context();
    let row = account_group::Model {
        id: new_id(context.now(), context.entropy.as_ref()),
        origin: "https://issuer.example".into(),
        name: "travel".into(),
        created_at: context.now().0,
    };
    let member = group_member::Model {
        group_id: row.id,
        account_id: me["id"].as_str().unwrap().parse().unwrap(),
    };
    let write = context.store.write().await.unwrap();
    write.group_insert(row).await.unwrap();
    write.members_add(vec![member]).await.unwrap();
    write.commit().await.unwrap();
    let theirs = json!({"origin": "https://issuer.example", "name": "travel"});
    get(&registry, ADMIN, "/v1/groups/travel")
        .await
        .problem(404, "not-found");
    let gone = registry
        .as_with(ADMIN, TestRequest::delete().uri("/v1/groups/travel"))
        .await;
    gone.problem(404, "not-found");
    patch(&registry, "publisher", json!({"groups": ["travel"]}))
        .await
        .problem(409, "conflict");
    put(&registry, "travel", json!(["publisher"])).await;
    let both = get(&registry, &own, "/v1/me").await.json();
    assert_eq!(both["groups"].as_array().unwrap().len(), 2);
    patch(&registry, "publisher", json!({"groups": []})).await;
    let me = get(&registry, &own, "/v1/me").await.json();
    assert_eq!(me["groups"], json!([theirs]));
    let gone = registry
        .as_with(ADMIN, TestRequest::delete().uri("/v1/groups/travel"))
        .await;
    assert_eq!(gone.status, 204);
    let me = get(&registry, &own, "/v1/me").await.json();
    assert_eq!(me["groups"], json!([theirs]));
}
