//! Tests of sign-in links, and of logins of the command line.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock as _, SystemClock};
use a2a_registry_api::NewToken;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::visibility::caller::Credential;
use a2a_registry_domain::role::Role;
use a2a_registry_http::requests::visitor::form_token;
use a2a_registry_http::sessions::sign_in_links::issue_sign_in_link;
use actix_web::test::TestRequest;
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::tests::events::watcher;
use crate::tests::sessions::{BEFORE, MovedClock, form, near, sign_in, text, with};
use crate::tests::{ADMIN, Registry, TestResponse};

const STATE: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ";
const VERIFIER: &str = "the verifier that only the command has, of length 43";

async fn link(registry: &Registry, token: &str) -> String {
    let caller = authenticate_token(registry.context(), token).await.unwrap();
    let Credential::Token(id) = caller.account.unwrap().credential else {
        panic!("not a token");
    };
    issue_sign_in_link(registry.context(), id).unwrap()
}

async fn open(registry: &Registry, link: &str) -> TestResponse {
    let request = TestRequest::get().uri(link);
    let request = request.insert_header(("accept", "text/html"));
    registry.ask(near(request)).await
}

async fn confirm(registry: &Registry, link: &str) -> TestResponse {
    let (_, code) = link.split_once("?code=").unwrap();
    let fields = [("code", code), ("form_token", &form_token(BEFORE))];
    let cookie = ("cookie", format!("__Host-a2a_form={BEFORE}"));
    let request = form("/sign-in-link", &fields).insert_header(("accept", "text/html"));
    registry.ask(request.insert_header(cookie)).await
}

fn moved_clock() -> Arc<MovedClock> {
    Arc::new(MovedClock(Mutex::new(SystemClock.now())))
}

#[actix_web::test]
async fn a_link_signs_in_once_after_a_confirmation() {
    let registry = Registry::new().await;
    let token = registry.token(Role::Curator).await;
    let link = link(&registry, &token).await;
    // Programs that preview links use none up.
    for _ in 0..3 {
        let page = open(&registry, &link).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.header("cache-control"), "private, no-store");
        assert!(!page.header("set-cookie").contains("a2a_session"));
        assert!(text(&page).contains("<bdi>curator</bdi>"));
    }
    let confirmed = confirm(&registry, &link).await;
    assert_eq!(confirmed.status, 303, "{confirmed:?}");
    assert_eq!(confirmed.header("location"), "/");
    assert!(
        confirmed
            .header("set-cookie")
            .starts_with("__Host-a2a_session=")
    );
    let again = confirm(&registry, &link).await;
    assert_eq!(again.status, 401);
    assert!(text(&again).contains("was used"), "{}", text(&again));
}

#[actix_web::test]
async fn a_link_ends_after_ten_minutes_and_with_its_token() {
    let clock = moved_clock();
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let token = registry.token(Role::Reader).await;
    let (first, second) = (link(&registry, &token).await, link(&registry, &token).await);
    *clock.0.lock().unwrap() += Duration::from_secs(599);
    assert_eq!(open(&registry, &first).await.status, 200);
    *clock.0.lock().unwrap() += Duration::from_secs(1);
    assert_eq!(open(&registry, &first).await.status, 401);
    assert_eq!(confirm(&registry, &second).await.status, 401);
    let third = link(&registry, &token).await;
    let list = TestRequest::get().uri("/v1/tokens");
    let list = registry.as_with(&token, list).await.json();
    let path = format!("/v1/tokens/{}", list["tokens"][0]["id"].as_str().unwrap());
    let revoked = TestRequest::delete().uri(&path);
    assert_eq!(registry.as_with(ADMIN, revoked).await.status, 204);
    assert_eq!(confirm(&registry, &third).await.status, 401);
    for wrong in ["", "?code=", "?code=AAAA", "?code=%00"] {
        let page = open(&registry, &format!("/sign-in-link{wrong}")).await;
        assert_eq!(page.status, 401, "{wrong}");
    }
}

#[actix_web::test]
async fn a_link_of_a_suspended_account_signs_nobody_in() {
    let clock = moved_clock();
    let registry = Registry::by(clock.clone(), |config| config.identity.max_absence = 2).await;
    let subject = watcher(clock.now().unix_timestamp(), true);
    resolve_subject_account(registry.context(), &subject)
        .await
        .unwrap();
    let new = NewToken {
        account: "watcher".into(),
        name: "test".into(),
        expires_in_days: Some(3),
        ..NewToken::default()
    };
    let admin = registry.admin().await;
    let created = token_create(registry.context(), &admin, &new)
        .await
        .unwrap();
    *clock.0.lock().unwrap() += Duration::from_secs(2 * 24 * 3600 - 60);
    let link = link(&registry, &created.secret).await;
    assert_eq!(open(&registry, &link).await.status, 200);
    *clock.0.lock().unwrap() += Duration::from_secs(60);
    for answer in [
        open(&registry, &link).await,
        confirm(&registry, &link).await,
    ] {
        assert_eq!(answer.status, 401);
        assert!(text(&answer).contains("suspended"), "{}", text(&answer));
        assert!(!answer.header("set-cookie").contains("a2a_session"));
    }
}

#[actix_web::test]
async fn a_link_is_opened_on_this_machine_or_over_https_only() {
    let registry = Registry::new().await;
    let token = registry.token(Role::Reader).await;
    let link = link(&registry, &token).await;
    let far = TestRequest::get()
        .uri(&link)
        .peer_addr("192.0.2.7:9".parse().unwrap())
        .insert_header(("host", "registry.example:8080"));
    assert!(registry.ask(far).await.status.is_client_error());
    assert_eq!(confirm(&registry, &link).await.status, 303);
}

fn challenge() -> String {
    BASE64URL_NOPAD.encode(digest(&SHA256, VERIFIER.as_bytes()).as_ref())
}

/// Allows a login in the browser, and returns the page that leads back to the command.
async fn allow(registry: &Registry, session: &str, scopes: &[&str]) -> TestResponse {
    let (challenge, token) = (challenge(), form_token(session));
    let mut fields = vec![
        ("port", "4711"),
        ("state", STATE),
        ("challenge", challenge.as_str()),
        ("days", "7"),
        ("form_token", token.as_str()),
    ];
    fields.extend(scopes.iter().map(|scope| ("scope", *scope)));
    let request = form("/login", &fields).insert_header(("accept", "text/html"));
    registry.ask(with(request, session)).await
}

fn code_of(page: &TestResponse) -> String {
    let page = text(page);
    let (_, rest) = page
        .split_once("http://127.0.0.1:4711/callback?code=")
        .unwrap_or_else(|| panic!("{page}"));
    let code = rest.split(['&', '"']).next().unwrap();
    assert!(rest[code.len()..].contains(STATE), "{rest}");
    code.to_owned()
}

async fn exchange(registry: &Registry, code: &str, verifier: &str) -> TestResponse {
    let body = json!({"code": code, "verifier": verifier});
    let request = TestRequest::post().uri("/v1/tokens:exchange");
    registry.ask(near(request).set_json(body)).await
}

fn scopes(answer: &Value) -> Vec<&str> {
    let scopes = answer["scopes"].as_array().unwrap();
    scopes.iter().map(|scope| scope.as_str().unwrap()).collect()
}

#[actix_web::test]
async fn a_login_gets_a_token_with_the_scopes_that_were_allowed() {
    let registry = Registry::new().await;
    let token = registry.token(Role::Publisher).await;
    let session = sign_in(&registry, &token).await;
    let query = format!(
        "/login?port=4711&state={STATE}&challenge={}&days=7&scope=read&scope=register&scope=admin",
        challenge()
    );
    let asked = registry
        .ask(with(near(TestRequest::get().uri(&query)), &session))
        .await;
    assert_eq!(asked.status, 200, "{asked:?}");
    let page = text(&asked);
    assert!(page.contains("<code>register</code>") && !page.contains("<code>admin</code>"));
    let nobody = registry.ask(near(TestRequest::get().uri(&query))).await;
    assert_eq!(nobody.status, 303);
    assert!(
        nobody
            .header("location")
            .starts_with("/sign-in?next=%2Flogin")
    );

    let code = code_of(&allow(&registry, &session, &["read", "register", "admin"]).await);
    assert_eq!(
        exchange(&registry, &code, "another verifier").await.status,
        401
    );
    let created = exchange(&registry, &code, VERIFIER).await;
    assert_eq!(created.status, 201, "{created:?}");
    let created = created.json();
    assert_eq!(created["account"], "publisher");
    assert_eq!(scopes(&created), ["read", "register"]);
    assert!(created["expires_at"].is_string());
    let secret = created["secret"].as_str().unwrap();
    assert!(secret.starts_with("a2ar_"));
    let me = registry
        .as_with(secret, TestRequest::get().uri("/v1/me"))
        .await;
    assert_eq!(me.json()["name"], "publisher");
    assert_eq!(exchange(&registry, &code, VERIFIER).await.status, 401);
}

#[actix_web::test]
async fn a_code_ends_after_ten_minutes_and_with_its_session() {
    let clock = moved_clock();
    let registry = Registry::by(clock.clone(), |_| {}).await;
    let token = registry.token(Role::Reader).await;
    let session = sign_in(&registry, &token).await;
    let code = code_of(&allow(&registry, &session, &["read"]).await);
    *clock.0.lock().unwrap() += Duration::from_secs(600);
    assert_eq!(exchange(&registry, &code, VERIFIER).await.status, 401);
    let code = code_of(&allow(&registry, &session, &["read"]).await);
    let out = form("/sign-out", &[("form_token", &form_token(&session))]);
    assert_eq!(registry.ask(with(out, &session)).await.status, 303);
    assert_eq!(exchange(&registry, &code, VERIFIER).await.status, 401);
}

#[actix_web::test]
async fn a_page_of_another_site_gets_no_code() {
    let registry = Registry::new().await;
    let token = registry.token(Role::Reader).await;
    let session = sign_in(&registry, &token).await;
    assert_eq!(allow(&registry, &session, &["admin"]).await.status, 403);
    let challenge = challenge();
    for (port, state, days) in [
        ("0", STATE, "7"),
        ("70000", STATE, "7"),
        ("evil.example", STATE, "7"),
        ("4711", "short", "7"),
        ("4711", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO&x", "7"),
        ("4711", STATE, "0"),
        ("4711", STATE, "366"),
    ] {
        let fields = [
            ("port", port),
            ("state", state),
            ("challenge", &challenge),
            ("days", days),
            ("scope", "read"),
            ("form_token", &form_token(&session)),
        ];
        let answer = registry.ask(with(form("/login", &fields), &session)).await;
        assert!(
            answer.status.is_client_error(),
            "{port} {state}: {answer:?}"
        );
    }
    let fields = [
        ("port", "4711"),
        ("state", STATE),
        ("challenge", &challenge),
        ("days", "7"),
        ("scope", "read"),
        ("form_token", "of another session"),
    ];
    let answer = registry.ask(with(form("/login", &fields), &session)).await;
    assert_eq!(answer.status, 403);
}

#[actix_web::test]
async fn the_sign_in_page_says_whom_to_ask() {
    let registry = Registry::with(|config| {
        config.server.contact = "mailto:agents@example.com?subject=Account".to_owned();
    });
    let page = registry
        .await
        .ask(near(TestRequest::get().uri("/sign-in")))
        .await;
    let page = text(&page);
    assert!(
        page.contains("href=\"mailto:agents@example.com?subject=Account\""),
        "{page}"
    );
    assert!(page.contains("<bdi>agents@example.com</bdi>"), "{page}");
    let without = Registry::new().await;
    let page = without.ask(near(TestRequest::get().uri("/sign-in"))).await;
    assert!(!text(&page).contains("id=\"contact\""));
}
