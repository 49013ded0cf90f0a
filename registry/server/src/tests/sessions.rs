//! Tests of sessions: signing in and out, what a session may do and where, and attacks that must not create one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_api::limits::MAX_SESSIONS_PER_ACCOUNT;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_http::requests::visitor::form_token;
use a2a_registry_http::routes::api::PROTOCOL_ERRORS;
use a2a_registry_http::routes::openapi::operations::all_api_operations as operations;
use a2a_registry_http::routes::plain::PLAIN_ROUTES;
use actix_web::http::header::SET_COOKIE;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::tests::access::request;
use crate::tests::{ADMIN, Registry, TestResponse, bearer};

/// Cookie secret of a browser that has opened the sign-in form.
pub(super) const BEFORE: &str = "0123456789012345678901234567890123456789012";

pub(super) fn near(request: TestRequest) -> TestRequest {
    request
        .peer_addr("127.0.0.1:9".parse().unwrap())
        .insert_header(("host", "127.0.0.1:8080"))
}

pub(super) fn form(path: &str, fields: &[(&str, &str)]) -> TestRequest {
    near(TestRequest::post().uri(path)).set_form(fields)
}

pub(super) fn with(request: TestRequest, secret: &str) -> TestRequest {
    request.insert_header(("cookie", format!("__Host-a2a_session={secret}")))
}

async fn try_sign_in(registry: &Registry, token: &str, next: &str) -> TestResponse {
    let fields = [
        ("token", token),
        ("next", next),
        ("form_token", &form_token(BEFORE)),
    ];
    let request = form("/sign-in", &fields);
    let cookie = ("cookie", format!("__Host-a2a_form={BEFORE}"));
    let browser = request.insert_header(("accept", "text/html"));
    registry.ask(browser.insert_header(cookie)).await
}

/// Secret that a response sets as the session cookie.
fn secret_of(answer: &TestResponse) -> Option<String> {
    let mut set = answer.headers.get_all(SET_COOKIE);
    let line = set.find_map(|line| {
        let line = line.to_str().unwrap();
        line.strip_prefix("__Host-a2a_session=")
    })?;
    assert!(line.ends_with("; Path=/; Secure; HttpOnly; SameSite=Lax"));
    Some(line.split(';').next().unwrap().to_owned())
}

pub(super) async fn sign_in(registry: &Registry, token: &str) -> String {
    let answer = try_sign_in(registry, token, "/register").await;
    assert_eq!(answer.status, 303, "{answer:?}");
    assert_eq!(answer.header("location"), "/register");
    secret_of(&answer).unwrap()
}

async fn account_page(registry: &Registry, secret: &str) -> TestResponse {
    let request = near(TestRequest::get().uri("/account"));
    registry.ask(with(request, secret)).await
}

pub(super) fn text(answer: &TestResponse) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

async fn patch(registry: &Registry, account: &str, body: Value) {
    let path = format!("/v1/accounts/{account}");
    let request = TestRequest::patch().uri(&path).set_json(body);
    assert_eq!(registry.as_with(ADMIN, request).await.status, 200);
}

#[actix_web::test]
async fn somebody_signs_in_sees_the_account_and_signs_out() {
    let registry = Registry::new().await;
    let shown = near(TestRequest::get().uri("/account?x=1"));
    let shown = registry.ask(shown).await;
    assert_eq!(shown.status, 303);
    assert_eq!(shown.header("location"), "/sign-in?next=%2Faccount%3Fx%3D1");
    let own = registry.token(Role::Publisher).await;
    let secret = sign_in(&registry, &own).await;
    let page = account_page(&registry, &secret).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), "private, no-store");
    let page = text(&page);
    assert!(
        page.contains("publisher") && page.contains("this one"),
        "{page}"
    );
    assert!(!page.contains(&secret) && !page.contains(&own));
    let front = registry
        .ask(with(near(TestRequest::get().uri("/about")), &secret))
        .await;
    assert_eq!(front.header("cache-control"), "private, no-store");
    assert!(text(&front).contains("href=\"/account\""));
    let out = form("/sign-out", &[("form_token", &form_token(&secret))]);
    let out = registry.ask(with(out, &secret)).await;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(account_page(&registry, &secret).await.status, 303);
    let front = registry.get("/about").await;
    assert_eq!(front.header("cache-control"), "private, no-cache");
    assert!(text(&front).contains("href=\"/sign-in\""));
}

#[actix_web::test]
async fn a_wrong_token_and_a_form_of_another_browser_sign_nobody_in() {
    let registry = Registry::new().await;
    let answer = try_sign_in(&registry, "a2ar_nonsense", "/").await;
    assert_eq!(answer.status, 401);
    assert_eq!(secret_of(&answer), None);
    assert!(text(&answer).contains("unknown or has expired"));
    let fields = [("token", ADMIN), ("form_token", &form_token(BEFORE))];
    registry
        .ask(form("/sign-in", &fields))
        .await
        .problem(403, "form-refused");
    let cookie = ("cookie", format!("__Host-a2a_form={BEFORE}"));
    for site in ["cross-site", "same-site"] {
        let foreign = form("/sign-in", &fields).insert_header(("sec-fetch-site", site));
        let foreign = foreign.insert_header(cookie.clone());
        registry.ask(foreign).await.problem(403, "form-refused");
    }
    let foreign = form("/sign-in", &fields).insert_header(("origin", "https://evil.example"));
    let foreign = foreign.insert_header(cookie.clone());
    registry.ask(foreign).await.problem(403, "form-refused");
    let without = form("/sign-in", &[("token", ADMIN)]).insert_header(cookie);
    registry.ask(without).await.problem(403, "form-refused");
}

#[actix_web::test]
async fn nobody_signs_in_over_plain_http_from_elsewhere() {
    let registry = Registry::new().await;
    let fields = [("token", ADMIN), ("form_token", &form_token(BEFORE))];
    let far = || "192.0.2.7:9".parse().unwrap();
    let cookie = ("cookie", format!("__Host-a2a_form={BEFORE}"));
    let sent = form("/sign-in", &fields).peer_addr(far());
    let answer = registry.ask(sent.insert_header(cookie)).await;
    assert_eq!(answer.status, 403);
    assert_eq!(secret_of(&answer), None);
    let shown = near(TestRequest::get().uri("/sign-in")).peer_addr(far());
    let shown = text(&registry.ask(shown).await);
    assert!(shown.contains("You cannot sign in over plain HTTP"));
    assert!(!shown.contains("name=\"token\""));
}

#[actix_web::test]
async fn signing_in_leads_to_no_other_site() {
    let registry = Registry::new().await;
    for next in ["https://evil.example/", "//evil.example", "/\\evil.example"] {
        let answer = try_sign_in(&registry, ADMIN, next).await;
        assert_eq!(answer.header("location"), "/account", "{next}");
    }
}

/// The API reads tokens only: a caller with only a cookie is anonymous.
#[actix_web::test]
async fn the_cookie_of_a_session_does_nothing_on_the_api() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, ADMIN).await;
    let mut closed = 0;
    for operation in operations() {
        let bare = registry.ask(request(operation)).await;
        let answer = registry.ask(with(request(operation), &secret)).await;
        assert_eq!(answer.status, bare.status, "{}", operation.id);
        assert!(answer.status.as_u16() < 500, "{}", operation.id);
        if answer.status == 401 {
            answer.problem(401, "unauthenticated");
            closed += 1;
        }
    }
    assert!(closed > 50, "{closed}");
}

/// Forms that carry their own credentials or need none, and so no form token.
const OPEN_FORMS: [&str; 5] = [
    "/register",
    "/register/lint",
    "/agents/{agent}/report",
    "/mail/{hook}/{code}",
    "/mail/{hook}/{code}/confirm",
];

#[actix_web::test]
async fn every_form_needs_the_form_token_of_its_session_and_its_own_site() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, ADMIN).await;
    let other = sign_in(&registry, &registry.token(Role::Curator).await).await;
    // Protocol endpoints do not accept forms: they identify callers only by token.
    let is_dialect = |path: &str| PROTOCOL_ERRORS.iter().any(|one| path.starts_with(one.path));
    let forms = PLAIN_ROUTES.iter().filter(|(_, method)| *method == "POST");
    let forms = forms.filter(|(path, _)| !is_dialect(path));
    for (path, _) in forms.filter(|(path, _)| !OPEN_FORMS.contains(path)) {
        let id = "018f0000-0000-7000-8000-000000000000";
        let path = path.replace("{domain}", "nowhere.example");
        let path = path.replace("{review}", id);
        // Sign-in forms belong to a browser, before there is a session.
        let before_session = path.starts_with("/sign-in");
        let (own, cookie) = match before_session {
            true => (BEFORE, format!("__Host-a2a_form={BEFORE}")),
            false => (&*secret, format!("__Host-a2a_session={secret}")),
        };
        let base = [("id", id), ("name", "x"), ("target", "a.example")];
        let send = |token: Option<String>| {
            let mut fields = base.to_vec();
            if let Some(token) = &token {
                fields.push(("form_token", token));
            }
            form(&path, &fields).insert_header(("cookie", cookie.clone()))
        };
        for wrong in [
            None,
            Some(String::new()),
            Some(form_token(&other)),
            Some(own.to_owned()),
        ] {
            let answer = registry.ask(send(wrong)).await;
            answer.problem(403, "form-refused");
        }
        let good = || send(Some(form_token(own)));
        for header in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "http://127.0.0.1:9999"),
            ("origin", "null"),
        ] {
            let answer = registry.ask(good().insert_header(header)).await;
            answer.problem(403, "form-refused");
        }
        // The form token is the only reason for the rejection.
        if before_session {
            assert_ne!(registry.ask(good()).await.status, 403, "{path}");
        }
        // An API token is not a session.
        let fields = [("form_token", form_token(own))];
        let by_token = bearer(near(TestRequest::post().uri(&path)).set_form(fields), ADMIN);
        assert!(
            registry.ask(by_token).await.status.is_client_error(),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn a_session_may_do_no_more_than_its_token() {
    let registry = Registry::new().await;
    let narrow = registry.scoped(Role::Admin, &[Scope::Read]).await;
    let secret = sign_in(&registry, &narrow).await;
    let token = form_token(&secret);
    let make = |scope| {
        let fields = [("name", "wide"), ("scope", scope), ("form_token", &token)];
        with(form("/account/tokens", &fields), &secret)
    };
    let answer = registry.ask(make("admin")).await;
    assert_eq!(answer.status, 403);
    assert!(!text(&answer).contains("a2ar_"));
    let long = [
        ("name", "long"),
        ("days", "366"),
        ("scope", "read"),
        ("form_token", &token),
    ];
    let long = with(form("/account/tokens", &long), &secret);
    let long = registry
        .ask(long.insert_header(("accept", "text/html")))
        .await;
    assert_eq!(long.status, 400);
    for kept in [
        "A token must expire after 1 to 365 days.",
        "value=\"long\"",
        "value=\"366\"",
        "type=\"checkbox\" value=\"read\" checked",
    ] {
        assert!(text(&long).contains(kept), "{kept}: {}", text(&long));
    }
    // Without a scope the token would have all of them.
    let fields = [("name", "unscoped"), ("form_token", &token)];
    let unscoped = with(form("/account/tokens", &fields), &secret);
    let unscoped = registry
        .ask(unscoped.insert_header(("accept", "text/html")))
        .await;
    assert_eq!(unscoped.status, 400);
    let page = text(&unscoped);
    assert!(
        page.contains("must have at least one scope") && page.contains("value=\"unscoped\""),
        "{page}"
    );
    assert!(!page.contains("shown only once") && !page.contains("value=\"read\" checked"));
    let answer = registry.ask(make("read")).await;
    assert_eq!(answer.status, 201);
    assert!(text(&answer).contains("a2ar_"));
    let register = [("target", "a.example"), ("form_token", &token)];
    let register = with(form("/account/domains", &register), &secret);
    registry.ask(register).await.problem(403, "forbidden");
    // So the page has no such form.
    let page = with(near(TestRequest::get().uri("/register")), &secret);
    let page = text(&registry.ask(page).await);
    assert!(page.contains("Your account may not register"), "{page}");
    assert!(!page.contains("/account/domains"), "{page}");
    let full = sign_in(&registry, &registry.token(Role::Publisher).await).await;
    let page = with(near(TestRequest::get().uri("/register")), &full);
    let page = text(&registry.ask(page).await);
    assert!(page.contains("action=\"/account/domains\""), "{page}");
}

#[actix_web::test]
async fn a_session_ends_with_its_token_and_with_its_account() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let secret = sign_in(&registry, &own).await;
    let me = registry
        .as_with(&own, TestRequest::get().uri("/v1/me"))
        .await
        .json();
    let path = format!("/v1/tokens/{}", me["token"]["id"].as_str().unwrap());
    let gone = registry
        .as_with(ADMIN, TestRequest::delete().uri(&path))
        .await;
    assert_eq!(gone.status, 204);
    assert_eq!(account_page(&registry, &secret).await.status, 303);
    let again = registry.token(Role::Publisher).await;
    let secret = sign_in(&registry, &again).await;
    assert_eq!(account_page(&registry, &secret).await.status, 200);
    patch(&registry, "publisher", json!({"disabled": true})).await;
    assert_eq!(account_page(&registry, &secret).await.status, 303);
    patch(&registry, "publisher", json!({"disabled": false})).await;
    assert_eq!(account_page(&registry, &secret).await.status, 303);
}

#[actix_web::test]
async fn a_change_of_roles_acts_at_once_and_gives_the_session_another_secret() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Curator).await;
    let secret = sign_in(&registry, &own).await;
    patch(&registry, "curator", json!({"roles": ["reader"]})).await;
    let register = [
        ("target", "a.example"),
        ("form_token", &form_token(&secret)),
    ];
    let register = with(form("/account/domains", &register), &secret);
    registry.ask(register).await.problem(403, "forbidden");
    let page = account_page(&registry, &secret).await;
    assert!(text(&page).contains("<dd>reader</dd>"), "{}", text(&page));
    let rotated = secret_of(&page).unwrap();
    assert_ne!(rotated, secret);
    assert!(text(&page).contains(&form_token(&rotated)));
    assert_eq!(account_page(&registry, &secret).await.status, 303);
    let page = account_page(&registry, &rotated).await;
    assert_eq!((page.status.as_u16(), secret_of(&page)), (200, None));
}

/// The sign-in form sets its own cookie in addition to the session cookie.
#[actix_web::test]
async fn the_form_of_signing_in_gives_a_session_its_other_secret_too() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, &registry.token(Role::Curator).await).await;
    patch(&registry, "curator", json!({"roles": ["reader"]})).await;
    let page = near(TestRequest::get().uri("/sign-in"));
    let page = registry.ask(with(page, &secret)).await;
    assert_eq!(page.headers.get_all(SET_COOKIE).count(), 2);
    let rotated = secret_of(&page).unwrap();
    assert_ne!(rotated, secret);
    assert_eq!(account_page(&registry, &rotated).await.status, 200);
    assert_eq!(account_page(&registry, &secret).await.status, 303);
}

#[actix_web::test]
async fn sessions_are_listed_revoked_and_bounded() {
    let registry = Registry::new().await;
    let own = registry.token(Role::Publisher).await;
    let mut secrets = Vec::new();
    for _ in 0..=MAX_SESSIONS_PER_ACCOUNT {
        // The limit of attempts is per address and account, and in the memory of one process.
        let context = registry.context();
        let caller = a2a_registry_core::accounts::authentication::authenticate_token(context, &own)
            .await
            .unwrap();
        let client = a2a_registry_http::sessions::SessionClient {
            user_agent: "curl",
            address: None,
        };
        let begun =
            a2a_registry_http::sessions::begin_session_with_token(context, &caller, &client).await;
        secrets.push(begun.unwrap());
    }
    assert_eq!(account_page(&registry, &secrets[0]).await.status, 303);
    assert_eq!(account_page(&registry, &secrets[1]).await.status, 200);
    let list = async |by: String| {
        let request = TestRequest::get().uri("/v1/sessions?page_size=100");
        let list = registry.ask(bearer(request, &by)).await.json();
        list["sessions"].as_array().unwrap().clone()
    };
    let listed = list(own.clone()).await;
    assert_eq!(listed.len(), MAX_SESSIONS_PER_ACCOUNT);
    assert_eq!(listed[0]["account"], "publisher");
    assert_eq!(listed[0]["browser"], "curl");
    let stranger = registry.token(Role::Curator).await;
    assert!(list(stranger.clone()).await.is_empty());
    assert_eq!(list(ADMIN.to_owned()).await.len(), MAX_SESSIONS_PER_ACCOUNT);
    // Sessions of the same millisecond have no order, so each is identified by its secret.
    let id_of = async |secret: &str| {
        let (store, now) = (&registry.context().store, registry.context().now().0);
        let hash = a2a_registry_core::accounts::authentication::sha256_hex(secret);
        let found = a2a_registry_store::sessions::session_by_hash(store, &hash, now).await;
        found.unwrap().unwrap().0.id.to_string()
    };
    let path = format!("/v1/sessions/{}", id_of(secrets.last().unwrap()).await);
    let revoke = || TestRequest::delete().uri(&path);
    registry
        .as_with(&stranger, revoke())
        .await
        .problem(404, "not-found");
    assert_eq!(registry.as_with(&own, revoke()).await.status, 204);
    assert_eq!(
        account_page(&registry, secrets.last().unwrap())
            .await
            .status,
        303
    );
    registry
        .as_with(&own, revoke())
        .await
        .problem(404, "not-found");
    // A user can revoke an own session on the page, but not one of another account.
    let secret = &secrets[1];
    let id = id_of(&secrets[2]).await;
    let fields = [
        ("id", id.as_str()),
        ("form_token", &form_token(secret)),
        ("confirm", "yes"),
    ];
    let page = form("/account/sessions/revoke", &fields);
    assert_eq!(registry.ask(with(page, secret)).await.status, 303);
    let foreign = sign_in(&registry, &stranger).await;
    let id = listed[2]["id"].as_str().unwrap();
    let fields = [("id", id), ("form_token", &form_token(&foreign))];
    let page = form("/account/sessions/revoke", &fields);
    registry
        .ask(with(page, &foreign))
        .await
        .problem(404, "not-found");
}

#[actix_web::test]
async fn attempts_to_sign_in_are_limited_by_address() {
    let registry = Registry::new().await;
    for _ in 0..10 {
        assert_eq!(try_sign_in(&registry, "a2ar_x", "/").await.status, 401);
    }
    let refused = try_sign_in(&registry, ADMIN, "/").await;
    assert_eq!(refused.status, 429);
    assert_eq!(secret_of(&refused), None);
}

/// A clock that tests set manually.
#[derive(Debug)]
pub(super) struct MovedClock(pub(super) Mutex<OffsetDateTime>);

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

#[actix_web::test]
async fn a_session_ends_unused_after_eight_hours_and_in_any_case_after_a_day() {
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let hours = |hours: u64| *clock.0.lock().unwrap() += Duration::from_secs(hours * 3600);
    let own = registry.token(Role::Publisher).await;
    let idle = sign_in(&registry, &own).await;
    hours(8);
    assert_eq!(account_page(&registry, &idle).await.status, 303);
    let used = sign_in(&registry, &own).await;
    let store = &registry.context().store;
    for _ in 0..3 {
        hours(7);
        assert_eq!(account_page(&registry, &used).await.status, 200);
        // The use is recorded asynchronously; here the test ensures that it is recorded.
        let hash = a2a_registry_core::accounts::authentication::sha256_hex(&used);
        let now = registry.context().now().0;
        let found = a2a_registry_store::sessions::session_by_hash(store, &hash, now).await;
        let write = store.begin_write().await.unwrap();
        write
            .record_session_use(found.unwrap().unwrap().0.id, now)
            .await
            .unwrap();
        write.commit().await.unwrap();
    }
    hours(3);
    assert_eq!(account_page(&registry, &used).await.status, 303);
    let write = store.begin_write().await.unwrap();
    let now = registry.context().now().0;
    assert_eq!(write.delete_ended_sessions(now).await.unwrap(), 2);
}

/// The queue, reviews and the inbox are pages for signed-in visitors, and their forms require the form token.
#[actix_web::test]
async fn reviews_are_decided_only_by_a_form_of_the_own_session() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, &registry.token(Role::Curator).await).await;
    for path in ["/reviews", "/waiting", "/reviews?state=all&mine=true"] {
        let page = registry.ask(with(near(TestRequest::get().uri(path)), &secret));
        let page = page.await;
        assert_eq!(page.status, 200, "{page:?}");
    }
    let missing = "018f0000-0000-7000-8000-000000000000";
    let pick = format!("{missing} sha256:0");
    let token = form_token(&secret);
    let fields = |token: &str| {
        let fields = [
            ("pick", pick.as_str()),
            ("verdict", "approve"),
            ("reason", "a test"),
            ("form_token", token),
        ];
        form("/reviews", &fields)
    };
    let without = registry.ask(with(fields("bm90aGluZw"), &secret)).await;
    without.problem(403, "form-refused");
    let decided = registry.ask(with(fields(&token), &secret)).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    assert!(text(&decided).contains("not decided"));
    let path = format!("/reviews/{missing}");
    let comment = [("act", "comment"), ("text", "hm"), ("form_token", &token)];
    let comment = registry.ask(with(form(&path, &comment), &secret)).await;
    comment.problem(404, "not-found");
    // A publisher's session cannot decide reviews.
    let other = sign_in(&registry, &registry.token(Role::Publisher).await).await;
    let token = form_token(&other);
    let refused = registry.ask(with(fields(&token), &other)).await;
    refused.problem(403, "forbidden");
}

/// The session cookie is for pages only: protocol endpoints treat a caller with only a cookie as anonymous.
#[actix_web::test]
async fn a_session_is_no_caller_of_a_dialect() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, ADMIN).await;
    let listed = |request: TestRequest| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let request = request.uri("/mcp").insert_header(("host", "127.0.0.1"));
        let request = request.insert_header(("accept", "application/json, text/event-stream"));
        request.set_json(message)
    };
    let cookie = ("cookie", format!("__Host-a2a_session={secret}"));
    let by_session = listed(TestRequest::post().insert_header(cookie));
    let answer = registry.ask(by_session).await.json();
    assert_eq!(answer["result"]["cacheScope"], "public", "{answer}");
    let by_token = registry
        .as_with(ADMIN, listed(TestRequest::post()))
        .await
        .json();
    assert_eq!(by_token["result"]["cacheScope"], "private", "{by_token}");
}
