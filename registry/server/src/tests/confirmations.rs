//! Tests of confirmations: destructive forms name what will be lost, and change nothing until confirmed. The last
//! admin access cannot be removed.

use std::collections::BTreeMap;

use a2a_registry_core::config::{IdentityProviderConfig, RequiredClaimConfig};
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_http::requests::visitor::form_token;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::tests::sessions::{form, near, sign_in, text, with};
use crate::tests::{ADMIN, Registry, TestResponse};

/// Submits a form of this session like a browser.
async fn send(
    registry: &Registry,
    secret: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> TestResponse {
    let token = form_token(secret);
    let mut fields = fields.to_vec();
    fields.push(("form_token", &token));
    let browser = form(path, &fields).insert_header(("accept", "text/html"));
    registry.ask(with(browser, secret)).await
}

async fn account(registry: &Registry, secret: &str) -> TestResponse {
    let request = near(TestRequest::get().uri("/account"));
    registry.ask(with(request, secret)).await
}

/// Items that the account page can end: the ids in its forms, and the feed.
async fn endings(registry: &Registry, secret: &str) -> Vec<String> {
    let page = text(&account(registry, secret).await);
    let ids = page.split("name=\"id\" value=\"").skip(1);
    let ids = ids.map(|rest| rest.split('"').next().unwrap().to_owned());
    let feed = page.contains("End the feed").then(|| "feed".to_owned());
    ids.chain(feed).collect()
}

async fn list(registry: &Registry, by: &str, path: &str, member: &str) -> Vec<Value> {
    let request = TestRequest::get().uri(path);
    let list = registry.as_with(by, request).await.json();
    list[member].as_array().unwrap().clone()
}

/// Id of the token with this name.
async fn token_named(registry: &Registry, name: &str) -> String {
    let tokens = list(registry, ADMIN, "/v1/tokens?page_size=100", "tokens").await;
    let token = tokens.iter().find(|token| token["name"] == name).unwrap();
    token["id"].as_str().unwrap().to_owned()
}

async fn revoke(registry: &Registry, by: &str, path: &str) -> TestResponse {
    registry.as_with(by, TestRequest::delete().uri(path)).await
}

/// Submits the form, checks that the page names these losses, and confirms.
async fn confirmed(
    registry: &Registry,
    secret: &str,
    path: &str,
    fields: &[(&str, &str)],
    losses: &[&str],
) -> TestResponse {
    let before = endings(registry, secret).await;
    // Only a plain yes confirms.
    for answer in [None, Some("no"), Some("")] {
        let mut fields = fields.to_vec();
        fields.extend(answer.map(|answer| ("confirm", answer)));
        let asked = send(registry, secret, path, &fields).await;
        assert_eq!(asked.status, 200, "{path}: {asked:?}");
        let page = text(&asked);
        assert!(page.contains("What will be lost"), "{path}: {page}");
        for loss in losses {
            assert!(page.contains(loss), "{path}: {loss}: {page}");
        }
        assert!(
            page.contains(&format!("action=\"{path}\" method=\"post\"")),
            "{page}"
        );
        assert!(page.contains("name=\"confirm\" value=\"yes\""), "{page}");
        for (name, value) in fields.iter().filter(|(name, _)| *name != "confirm") {
            let field = format!("name=\"{name}\" value=\"{value}\"");
            assert!(page.contains(&field), "{path}: {field}: {page}");
        }
    }
    assert_eq!(endings(registry, secret).await, before, "{path} has acted");
    let mut fields = fields.to_vec();
    fields.push(("confirm", "yes"));
    send(registry, secret, path, &fields).await
}

#[actix_web::test]
async fn what_ends_on_the_account_page_is_named_and_confirmed() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let secret = sign_in(&registry, &own).await;
    let made = json!({"name": "ci deploy", "scopes": ["read"]});
    let request = TestRequest::post().uri("/v1/tokens").set_json(made);
    let made = registry.as_with(&own, request).await.json();
    let other = sign_in(&registry, made["secret"].as_str().unwrap()).await;
    let id = made["id"].as_str().unwrap();
    let losses = [
        "Revoke the token ci deploy?",
        "with the scopes read: requests with it will be rejected",
        "It was ",
        "The session that was started with it.",
    ];
    let path = "/account/tokens/revoke";
    let gone = confirmed(&registry, &secret, path, &[("id", id)], &losses).await;
    assert_eq!(gone.status, 303, "{gone:?}");
    assert!(!endings(&registry, &secret).await.contains(&id.to_owned()));
    assert_eq!(
        account(&registry, &other).await.status,
        303,
        "its session has ended"
    );

    let further = sign_in(&registry, &own).await;
    let sessions = list(&registry, &own, "/v1/sessions", "sessions").await;
    assert_eq!(sessions.len(), 2);
    for session in &sessions {
        let id = session["id"].as_str().unwrap();
        let asked = send(
            &registry,
            &secret,
            "/account/sessions/revoke",
            &[("id", id)],
        )
        .await;
        let page = text(&asked);
        assert!(page.contains("of the account publisher"), "{page}");
    }
    // One of the two is the current session.
    let pages = sessions.iter().map(|session| async {
        let fields = [("id", session["id"].as_str().unwrap())];
        text(&send(&registry, &secret, "/account/sessions/revoke", &fields).await)
    });
    let pages = futures::future::join_all(pages).await;
    let own_ones = pages
        .iter()
        .filter(|page| page.contains("you will be signed out"));
    assert_eq!(own_ones.count(), 1);
    let at = pages
        .iter()
        .position(|page| !page.contains("you will be signed out"));
    let id = sessions[at.unwrap()]["id"].as_str().unwrap();
    let path = "/account/sessions/revoke";
    let gone = confirmed(&registry, &secret, path, &[("id", id)], &["signed out"]).await;
    assert_eq!(gone.status, 303);
    assert_eq!(account(&registry, &further).await.status, 303);

    // The first feed URL replaces nothing; a second one does.
    let first = send(&registry, &secret, "/account/feed", &[]).await;
    assert_eq!(first.status, 201);
    let address = text(&first);
    let address = address.split_once("/feeds/").unwrap().1;
    let address = format!("/feeds/{}", address.split_once('<').unwrap().0);
    let lost = ["will stop working in every feed reader"];
    send(&registry, &secret, "/account/feed", &[]).await;
    assert_eq!(registry.get(&address).await.status, 200, "it is only asked");
    let renewed = confirmed(&registry, &secret, "/account/feed", &[], &lost).await;
    assert_eq!(renewed.status, 201);
    assert_eq!(registry.get(&address).await.status, 404);
    let ended = confirmed(&registry, &secret, "/account/feed/end", &[], &lost).await;
    assert_eq!(ended.status, 303);
    assert!(
        !endings(&registry, &secret)
            .await
            .contains(&"feed".to_owned())
    );

    let save = [("name", "trips"), ("query", "tag=travel")];
    let saved = send(&registry, &secret, "/account/searches", &save).await;
    assert_eq!(saved.status, 303);
    let searches = list(&registry, &own, "/v1/searches", "searches").await;
    let id = searches[0]["id"].as_str().unwrap();
    let path = "/account/searches/delete";
    let lost = ["The saved search trips: tag=travel"];
    let gone = confirmed(&registry, &secret, path, &[("id", id)], &lost).await;
    assert_eq!(gone.status, 303);
    assert!(
        list(&registry, &own, "/v1/searches", "searches")
            .await
            .is_empty()
    );
}

#[actix_web::test]
async fn a_hook_is_deleted_when_that_is_confirmed() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Reader).await;
    let secret = sign_in(&registry, &own).await;
    // No such host exists, so the hook stays unconfirmed.
    let new = json!({"name": "trips", "url": "https://hooks.agents-test.com/x"});
    let make = TestRequest::post().uri("/v1/hooks").set_json(new);
    assert_eq!(registry.as_with(&own, make).await.status, 201);
    let hooks = list(&registry, &own, "/v1/hooks", "hooks").await;
    let fields = [("id", hooks[0]["id"].as_str().unwrap()), ("act", "delete")];
    let lost = ["The hook trips, with 0 deliveries that wait and 0 that were given up"];
    let path = "/account/hooks/act";
    let gone = confirmed(&registry, &secret, path, &fields, &lost).await;
    assert_eq!(gone.status, 200);
    assert!(list(&registry, &own, "/v1/hooks", "hooks").await.is_empty());
}

#[actix_web::test]
async fn a_saved_search_is_replaced_when_that_is_confirmed() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Reader).await;
    let secret = sign_in(&registry, &own).await;
    let path = "/account/searches";
    let stored = async || {
        let searches = list(&registry, &own, "/v1/searches", "searches").await;
        assert_eq!(searches.len(), 1);
        searches[0]["query"].as_str().unwrap().to_owned()
    };
    let first = [("name", "trips"), ("query", "tag=travel")];
    let save = async || send(&registry, &secret, path, &first).await;
    assert_eq!(save().await.status, 303);
    // Nothing is lost with the same search.
    assert_eq!(save().await.status, 303);
    let other = [("name", "trips"), ("query", "tag=food")];
    let losses = [
        "Replace the saved search trips?",
        "The saved search trips: tag=travel",
    ];
    assert_eq!(send(&registry, &secret, path, &other).await.status, 200);
    assert_eq!(stored().await, "tag=travel");
    let replaced = confirmed(&registry, &secret, path, &other, &losses).await;
    assert_eq!(replaced.status, 303);
    assert_eq!(stored().await, "tag=food");
}

/// A caller who may not end something gets the error of the action before any confirmation.
#[actix_web::test]
async fn nobody_is_asked_about_what_is_not_theirs() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let stranger = sign_in(&registry, &registry.token(Role::Curator).await).await;
    sign_in(&registry, &own).await;
    let sessions = list(&registry, &own, "/v1/sessions", "sessions").await;
    let session = sessions[0]["id"].as_str().unwrap();
    let none = uuid::Uuid::nil().to_string();
    for (path, id) in [
        ("/account/tokens/revoke", none.as_str()),
        ("/account/sessions/revoke", session),
        ("/account/searches/delete", none.as_str()),
        ("/account/searches/delete", "x"),
        ("/waivers/end", none.as_str()),
    ] {
        let refused = send(&registry, &stranger, path, &[("id", id)]).await;
        assert_eq!(refused.status, 404, "{path}");
    }
    let narrow = registry.scoped(Role::Publisher, &[Scope::Read]).await;
    let narrow = sign_in(&registry, &narrow).await;
    let tokens = list(&registry, &own, "/v1/tokens", "tokens").await;
    let wide = tokens.iter().find(|one| one["name"] == "test").unwrap();
    let wide = [("id", wide["id"].as_str().unwrap())];
    let refused = send(&registry, &narrow, "/account/tokens/revoke", &wide).await;
    assert_eq!(refused.status, 403);
    let absent = send(&registry, &narrow, "/account/feed/end", &[]).await;
    assert_eq!(absent.status, 404);
}

#[actix_web::test]
async fn a_collection_names_what_loses_it() {
    let registry = Registry::new().await;
    let curator = sign_in(&registry, &registry.token(Role::Curator).await).await;
    let content = json!({"filter": "tag:tax", "description": "", "owners": [], "audience": []});
    let put = TestRequest::put()
        .uri("/v1/collections/tax")
        .set_json(content);
    assert_eq!(registry.as_with(ADMIN, put).await.status, 200);
    let asks =
        "forbid (principal, action, resource) when { resource.collections.contains(\"tax\") };";
    let set = json!({"reason": "x", "policies": [
        {"id": "everybody", "text": "permit (principal, action, resource);"},
        {"id": "no-tax", "text": asks},
    ]});
    let set = TestRequest::put().uri("/v1/policies").set_json(set);
    let made = registry.as_with(ADMIN, set).await;
    assert!(made.status.is_success(), "{made:?}");
    let page = near(TestRequest::get().uri("/collections/tax"));
    let page = text(&registry.ask(with(page, &curator)).await);
    let seen = page.split("id=\"delete\"").nth(1).unwrap();
    let seen = seen.split("name=\"seen\" value=\"").nth(1).unwrap();
    let seen = seen.split('"').next().unwrap().replace("&#34;", "\"");
    let fields = [("act", "delete"), ("seen", seen.as_str())];
    let asked = send(&registry, &curator, "/collections/tax", &fields).await;
    let page = text(&asked);
    for told in [
        "Delete the collection tax?",
        "The collection tax: tag:tax",
        "0 agents that you find",
        "shown to its owners and curators",
        "The policy no-tax refers to it",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let shown = TestRequest::get().uri("/v1/collections/tax");
    assert_eq!(registry.as_with(ADMIN, shown).await.status, 200);
    let stale = [("act", "delete"), ("seen", "\"x\"")];
    let stale = send(&registry, &curator, "/collections/tax", &stale).await;
    assert_eq!(stale.status, 412, "it is not asked about what has changed");
}

/// Id of the token of a request.
async fn own_id(registry: &Registry, token: &str) -> String {
    let me = registry
        .as_with(token, TestRequest::get().uri("/v1/me"))
        .await;
    me.json()["token"]["id"].as_str().unwrap().to_owned()
}

#[actix_web::test]
async fn the_last_way_in_of_an_admin_is_kept() {
    let registry = Registry::new().await;
    let bootstrap = format!("/v1/tokens/{}", own_id(&registry, ADMIN).await);
    let refused = revoke(&registry, ADMIN, &bootstrap).await;
    let told = refused.problem(409, "conflict");
    let told = told["detail"].as_str().unwrap();
    assert!(
        told.contains("Create another token with the scope admin first"),
        "{told}"
    );
    // A session that was started with the token ends with it, so it is not another admin access.
    let secret = sign_in(&registry, ADMIN).await;
    revoke(&registry, ADMIN, &bootstrap)
        .await
        .problem(409, "conflict");
    let id = own_id(&registry, ADMIN).await;
    let fields = [("id", id.as_str()), ("confirm", "yes")];
    let page = send(&registry, &secret, "/account/tokens/revoke", &fields).await;
    assert_eq!(page.status, 409);
    assert!(text(&page).contains("last admin access"), "{}", text(&page));
    // A token without the admin scope, a token of another role, or a token of a disabled admin does not count either.
    registry.scoped(Role::Admin, &[Scope::Read]).await;
    registry.token(Role::Curator).await;
    let disabled = registry.admin_alone().await;
    let patch = TestRequest::patch()
        .uri("/v1/accounts/operator")
        .set_json(json!({"disabled": true}));
    assert_eq!(registry.as_with(ADMIN, patch).await.status, 200);
    revoke(&registry, ADMIN, &bootstrap)
        .await
        .problem(409, "conflict");
    let me = registry
        .as_with(&disabled, TestRequest::get().uri("/v1/me"))
        .await;
    assert_eq!(me.status, 401);
    // Other tokens can still be revoked, and so can the sessions while the token exists.
    let narrow = token_named(&registry, "narrow").await;
    let path = format!("/v1/tokens/{narrow}");
    assert_eq!(revoke(&registry, ADMIN, &path).await.status, 204);
    let sessions = list(&registry, ADMIN, "/v1/sessions", "sessions").await;
    let path = format!("/v1/sessions/{}", sessions[0]["id"].as_str().unwrap());
    assert_eq!(revoke(&registry, ADMIN, &path).await.status, 204);
    // With another token the first one can be revoked, and then the other cannot.
    let made = TestRequest::post()
        .uri("/v1/tokens")
        .set_json(json!({"name": "another"}));
    let another = registry.as_with(ADMIN, made).await.json();
    let another = another["secret"].as_str().unwrap().to_owned();
    assert_eq!(revoke(&registry, ADMIN, &bootstrap).await.status, 204);
    let last = format!("/v1/tokens/{}", own_id(&registry, &another).await);
    revoke(&registry, &another, &last)
        .await
        .problem(409, "conflict");
}

/// An identity provider that grants the admin role counts as admin access; one that grants none or admits no one does
/// not.
#[actix_web::test]
async fn an_identity_provider_that_makes_admins_is_a_way_in() {
    let admins = || BTreeMap::from([("ops".to_owned(), vec![Role::Admin])]);
    let require = || {
        Some(RequiredClaimConfig {
            claim: "groups".into(),
            values: vec!["ops".into()],
        })
    };
    for (roles, require, is_way_in) in [
        (admins(), require(), true),
        (admins(), None, false),
        (BTreeMap::new(), require(), false),
    ] {
        let provider = IdentityProviderConfig {
            issuer: "http://127.0.0.1:9/idp".into(),
            client_id: "registry".into(),
            roles,
            require,
            ..IdentityProviderConfig::default()
        };
        let providers = [("corp".to_owned(), provider)];
        let registry = Registry::with(|config| config.identity.providers = providers.into()).await;
        let path = format!("/v1/tokens/{}", own_id(&registry, ADMIN).await);
        let revoked = revoke(&registry, ADMIN, &path).await;
        match is_way_in {
            true => assert_eq!(revoked.status, 204, "{revoked:?}"),
            false => drop(revoked.problem(409, "conflict")),
        }
    }
}

/// Disabling or demoting the only admin with access is rejected like revoking its token.
#[actix_web::test]
async fn the_only_admin_who_gets_in_stays_one() {
    let registry = Registry::new().await;
    let made = TestRequest::post()
        .uri("/v1/accounts")
        .set_json(json!({"name": "absent", "roles": ["admin"]}));
    assert_eq!(registry.as_with(ADMIN, made).await.status, 201);
    for change in [json!({"disabled": true}), json!({"roles": ["reader"]})] {
        let patch = TestRequest::patch()
            .uri("/v1/accounts/admin")
            .set_json(change);
        let refused = registry.as_with(ADMIN, patch).await;
        let told = refused.problem(409, "conflict");
        assert!(
            told["detail"]
                .as_str()
                .unwrap()
                .contains("last admin access"),
            "{told}"
        );
    }
    let made = TestRequest::post()
        .uri("/v1/tokens")
        .set_json(json!({"account": "absent", "name": "present"}));
    assert_eq!(registry.as_with(ADMIN, made).await.status, 201);
    let patch = TestRequest::patch()
        .uri("/v1/accounts/admin")
        .set_json(json!({"roles": ["reader"]}));
    assert_eq!(registry.as_with(ADMIN, patch).await.status, 200);
}
