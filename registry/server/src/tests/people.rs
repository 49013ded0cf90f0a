//! Tests of accounts and groups: changes by admins, when they take effect, and what cannot be removed.

use a2a_registry_api::limits::{MAX_GROUP_MEMBERS, MAX_GROUPS, MAX_GROUPS_PER_ACCOUNT};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Role;
use a2a_registry_store::accounts;
use a2a_registry_store::entity::{account, account_group, group_member};
use a2a_registry_store::groups::group_by_name;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use uuid::Uuid;

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
async fn the_groups_of_a_caller_are_known_with_the_request() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let groups = async || {
        let caller = authenticate_token(registry.context(), &own).await.unwrap();
        caller.account.unwrap().groups
    };
    assert!(groups().await.is_empty());
    for name in ["travel", "books"] {
        assert_eq!(put(&registry, name, json!(["publisher"])).await.status, 200);
    }
    let named = async |name| {
        let found = group_by_name(&registry.context().store, "admin", name).await;
        found.unwrap().unwrap().id
    };
    let mut both = [named("travel").await, named("books").await];
    both.sort_unstable();
    assert_eq!(groups().await, both);
    assert_eq!(put(&registry, "books", json!([])).await.status, 200);
    assert_eq!(groups().await, [named("travel").await]);
}

#[actix_web::test]
async fn a_change_of_roles_acts_at_the_next_request() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Curator).await;
    assert_eq!(get(&registry, &own, "/v1/policies").await.status, 200);
    assert_eq!(
        patch(&registry, "curator", json!({"roles": ["reader"]}))
            .await
            .status,
        200
    );
    get(&registry, &own, "/v1/policies")
        .await
        .problem(403, "forbidden");
    get(&registry, &own, "/v1/events")
        .await
        .problem(403, "forbidden");
    let roles = json!({"roles": ["curator", "admin"]});
    assert_eq!(patch(&registry, "curator", roles).await.status, 200);
    assert_eq!(get(&registry, &own, "/v1/policies").await.status, 200);
    // The token does not get more permissions than at its creation.
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
    // An admin without access does not count either: its tokens ended when it was disabled.
    patch(&registry, "admin", json!({"disabled": true}))
        .await
        .problem(409, "conflict");
    registry.admin_alone().await;
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
    // The rejected request has changed nothing.
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

/// A group with the same name from another issuer is a separate group: changes to one do not affect the other.
#[actix_web::test]
async fn groups_of_two_origins_are_two_groups() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let me = get(&registry, &own, "/v1/me").await.json();
    let context = registry.context();
    let row = account_group::Model {
        id: new_uuid(context.now(), context.entropy.as_ref()),
        origin: "https://issuer.example".into(),
        name: "travel".into(),
        created_at: context.now().0,
    };
    let member = group_member::Model {
        group_id: row.id,
        account_id: me["id"].as_str().unwrap().parse().unwrap(),
    };
    let write = context.store.begin_write().await.unwrap();
    write.insert_group(row).await.unwrap();
    write.insert_group_members(vec![member]).await.unwrap();
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

/// Adds `count` groups, each with this member, without the API.
async fn add_groups(registry: &Registry, count: u128, member: Option<Uuid>) {
    let write = registry.context().store.begin_write().await.unwrap();
    for number in 0..count {
        let group = account_group::Model {
            id: Uuid::from_u128(number + 1),
            origin: "admin".into(),
            name: format!("group-{number}"),
            created_at: 0,
        };
        let row = member.map(|account_id| group_member::Model {
            group_id: group.id,
            account_id,
        });
        write.insert_group(group).await.unwrap();
        write
            .insert_group_members(row.into_iter().collect())
            .await
            .unwrap();
    }
    write.commit().await.unwrap();
}

#[actix_web::test]
async fn an_account_is_in_a_bounded_number_of_groups() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let me = get(&registry, &own, "/v1/me").await.json();
    let me = me["id"].as_str().unwrap().parse().unwrap();
    add_groups(&registry, MAX_GROUPS_PER_ACCOUNT as u128 - 1, Some(me)).await;
    for _ in 0..2 {
        let last = put(&registry, "last", json!(["publisher"])).await;
        assert_eq!(last.status, 200);
    }
    put(&registry, "more", json!(["publisher"]))
        .await
        .problem(403, "limit-reached");
    // The rejected group does not exist.
    get(&registry, ADMIN, "/v1/groups/more")
        .await
        .problem(404, "not-found");
    let names: Vec<String> = (0..=MAX_GROUPS_PER_ACCOUNT)
        .map(|number| format!("group-{number}"))
        .collect();
    patch(&registry, "publisher", json!({"groups": names}))
        .await
        .problem(400, "invalid-request");
}

#[actix_web::test]
async fn groups_and_their_members_are_bounded() {
    let registry = Registry::new().await;
    registry.token(Role::Publisher).await;
    add_groups(&registry, u128::from(MAX_GROUPS), None).await;
    put(&registry, "more", json!([]))
        .await
        .problem(403, "limit-reached");
    assert_eq!(
        put(&registry, "group-1", json!(["admin"])).await.status,
        200
    );
    let names: Vec<String> = (0..=MAX_GROUP_MEMBERS)
        .map(|number| format!("a{number}"))
        .collect();
    put(&registry, "group-1", json!(names))
        .await
        .problem(400, "invalid-request");
    let write = registry.context().store.begin_write().await.unwrap();
    for (number, name) in names.iter().enumerate().skip(2) {
        let row = account::Model {
            id: Uuid::from_u128(number as u128),
            name: name.clone(),
            role: Role::Reader.into(),
            roles: None,
            disabled_at: None,
            claims_valid_at: None,
            access_ended_at: None,
            news_seen_at: None,
            created_at: 0,
        };
        write.insert_account(row).await.unwrap();
    }
    write.commit().await.unwrap();
    let mut members: Vec<&str> = names.iter().skip(2).map(String::as_str).collect();
    members.push("admin");
    assert_eq!(members.len(), MAX_GROUP_MEMBERS);
    assert_eq!(put(&registry, "group-1", json!(members)).await.status, 200);
    patch(&registry, "publisher", json!({"groups": ["group-1"]}))
        .await
        .problem(403, "limit-reached");
}

#[actix_web::test]
async fn more_accounts_than_one_statement_can_name_are_looked_up() {
    let registry = Registry::new().await;
    let ids: Vec<Uuid> = (0..70_000).map(Uuid::from_u128).collect();
    let found = accounts::accounts_by_ids(&registry.context().store, &ids).await;
    assert_eq!(found.unwrap(), []);
}

#[actix_web::test]
async fn a_disabled_account_is_given_no_domain() {
    let registry = Registry::new().await;
    registry.token(Role::Publisher).await;
    let request = TestRequest::post().uri("/v1/domains");
    let made = request.set_json(json!({"domain": "flights-a2a.com"}));
    assert_eq!(registry.as_with(ADMIN, made).await.status, 202);
    for (disabled, status) in [(true, 400), (false, 200)] {
        patch(&registry, "publisher", json!({"disabled": disabled})).await;
        for act in ["vouch", "transfer"] {
            let path = format!("/v1/domains/flights-a2a.com:{act}");
            let mut body = json!({"account": "publisher"});
            if act == "vouch" {
                body["reason"] = "a test".into();
            }
            let request = TestRequest::post().uri(&path).set_json(body);
            let answer = registry.as_with(ADMIN, request).await;
            assert_eq!(answer.status.as_u16(), status, "{act}: {answer:?}");
        }
    }
}
