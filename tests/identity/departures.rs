//! People who leave the company: a statement of the provider ends their access, and nothing else does.

use a2a_crawler::{Clock as _, SystemClock};
use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::provider_callbacks::{CookieBrowser, signed_in_browser};
use super::{account, with_corp, with_corp_in};
use crate::support::both_databases;
use crate::support::identity_provider::{AUDIENCE, IdentityProvider};
use crate::support::polling::eventually;
use crate::support::program::join_lines;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

both_databases!(a_curator_who_has_left_is_out_by_every_way);

fn now() -> i64 {
    SystemClock.now().unix_timestamp()
}

/// Waits until the provider dates what it issues later than what it has issued before.
async fn next_second() {
    let begin = now();
    eventually("the next second", async || (now() > begin).then_some(())).await;
}

/// Somebody's own status for a path, by this token.
async fn get_status(registry: &ServingRegistry, token: &str, path: &str) -> u16 {
    let request = registry.request(Method::GET, path);
    let answer = request.header(AUTHORIZATION, format!("Bearer {token}"));
    answer.send().await.unwrap().status().as_u16()
}

/// A token of that account, with all that its roles allow.
async fn token_of(registry: &ServingRegistry, name: &str) -> String {
    let new = json!({"account": name, "name": "a test"});
    let request = registry
        .admin_request(Method::POST, "/v1/tokens")
        .json(&new);
    let made: Value = request.send().await.unwrap().json().await.unwrap();
    made["secret"].as_str().unwrap().to_owned()
}

/// An access token about ann, with these claims beside the usual ones, which was issued then.
async fn access_token(corp: &IdentityProvider, issued_at: i64, more: Value) -> String {
    let mut claims = json!({
        "iss": corp.issuer, "aud": AUDIENCE, "sub": "ann", "client_id": "tool",
        "iat": issued_at, "exp": now() + 300,
    });
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    corp.sign_token("key", json!({"typ": "at+jwt"}), &claims)
        .await
}

/// The status of the answer to signing in.
async fn sign_in(registry: &ServingRegistry, name: &str) -> u16 {
    let mut browser = CookieBrowser::new();
    let departure = browser.departure(&registry.url, "/").await;
    let back = browser.login(&departure, name).await;
    browser.get(&back).await.status().as_u16()
}

async fn set_groups(corp: &IdentityProvider, groups: Value) {
    let ann = json!({"preferred_username": "ann", "groups": groups});
    corp.set_parts(json!({"people": {"ann": ann}})).await;
}

async fn a_curator_who_has_left_is_out_by_every_way(url: &str) {
    let (corp, registry) = with_corp_in(RegistrySetup::new().with_database(url)).await;
    let mut browser = signed_in_browser(&registry, "ann").await;
    let issued_before = now();
    let token = token_of(&registry, "ann@corp").await;
    let feed = registry
        .request(Method::POST, "/v1/me/feed")
        .bearer_auth(&token);
    let feed: Value = feed.send().await.unwrap().json().await.unwrap();
    let address = feed["url"].as_str().unwrap().to_owned();
    let feed = address[address.find("/feeds/").unwrap()..].to_owned();
    assert_eq!(get_status(&registry, &token, "/v1/events").await, 200);
    assert_eq!(registry.get(&feed).await.status, 200);
    next_second().await;
    // What is older, or says nothing of what is required, refuses and ends nothing.
    let older = access_token(&corp, issued_before - 60, json!({"groups": ["visitors"]})).await;
    let silent = access_token(&corp, now(), json!({})).await;
    let elsewhere = json!({"_claim_names": {"groups": "src1"}, "hasgroups": true});
    let elsewhere = access_token(&corp, now(), elsewhere).await;
    for refused in [&older, &silent, &elsewhere] {
        assert_eq!(get_status(&registry, refused, "/v1/me").await, 403);
    }
    assert_eq!(get_status(&registry, &token, "/v1/events").await, 200);
    let valid = access_token(&corp, now(), json!({"groups": ["staff", "leads"]})).await;
    assert_eq!(get_status(&registry, &valid, "/v1/events").await, 200);
    // The provider says that she has left, and a sign-in brings that here.
    set_groups(&corp, json!(["visitors"])).await;
    next_second().await;
    assert_eq!(sign_in(&registry, "ann").await, 403);
    assert_eq!(get_status(&registry, &token, "/v1/events").await, 401);
    assert_eq!(get_status(&registry, &valid, "/v1/events").await, 403);
    assert_eq!(registry.get(&feed).await.status, 404);
    assert_eq!(browser.signed_in_as(&registry.url).await, None);
    let known = account(&registry, "ann@corp").await;
    assert_eq!(
        (&known["roles"], &known["groups"]),
        (&json!([]), &json!([]))
    );
    assert!(known["access_ended_at"].is_string(), "{known}");
    let shown = registry
        .run_admin_command(&["account", "show", "ann@corp"])
        .await;
    assert!(
        join_lines(&shown.stdout).contains("access ended"),
        "{shown:?}"
    );
    let events: Value = registry.read_as_admin("/v1/events?page_size=100").await;
    let events = events["events"].as_array().unwrap().clone();
    let ended = events
        .iter()
        .filter(|event| event["kind"] == "account.access_ended");
    let ended: Vec<&Value> = ended.collect();
    assert_eq!(ended.len(), 1, "{events:?}");
    assert_eq!(ended[0]["actor"], json!(corp.issuer));
    assert_eq!(ended[0]["data"]["roles_before"], "reader,curator");
    // Back in the company, she comes back with what the provider gives then.
    set_groups(&corp, json!(["staff"])).await;
    next_second().await;
    assert_eq!(sign_in(&registry, "ann").await, 303);
    assert_eq!(
        account(&registry, "ann@corp").await["roles"],
        json!(["reader"])
    );
    assert_eq!(get_status(&registry, &token, "/v1/me").await, 401);
    registry.stop().await;
}

/// A claim that the identity token lacks and userinfo lacks too is not there.
#[tokio::test]
async fn a_claim_that_neither_token_nor_userinfo_has_is_gone() {
    let (corp, registry) = with_corp().await;
    corp.set_parts(json!({"tellsApart": true})).await;
    assert_eq!(sign_in(&registry, "ann").await, 303);
    let token = token_of(&registry, "ann@corp").await;
    let ann = json!({"preferred_username": "ann"});
    corp.set_parts(json!({"people": {"ann": ann}})).await;
    next_second().await;
    assert_eq!(sign_in(&registry, "ann").await, 403);
    assert_eq!(get_status(&registry, &token, "/v1/me").await, 401);
    registry.stop().await;
}

/// An access token that carries the claim says as much as a sign-in.
#[tokio::test]
async fn an_access_token_without_what_is_required_ends_what_the_account_had() {
    let (corp, registry) = with_corp().await;
    assert_eq!(sign_in(&registry, "ann").await, 303);
    let token = token_of(&registry, "ann@corp").await;
    next_second().await;
    let left = access_token(&corp, now(), json!({"groups": ["visitors"]})).await;
    assert_eq!(get_status(&registry, &left, "/v1/me").await, 403);
    assert_eq!(get_status(&registry, &token, "/v1/me").await, 401);
    registry.stop().await;
}

/// While a provider is away nobody can be said to have left.
#[tokio::test]
async fn a_provider_that_is_away_ends_nothing() {
    let (corp, registry) = with_corp().await;
    assert_eq!(sign_in(&registry, "ann").await, 303);
    let token = token_of(&registry, "ann@corp").await;
    set_groups(&corp, json!(["visitors"])).await;
    next_second().await;
    let mut browser = CookieBrowser::new();
    let departure = browser.departure(&registry.url, "/").await;
    let back = browser.login(&departure, "ann").await;
    let away = corp.stop().await;
    assert_eq!(browser.get(&back).await.status(), 503);
    assert_eq!(get_status(&registry, &token, "/v1/events").await, 200);
    let _corp = away.restart().await;
    assert_eq!(sign_in(&registry, "ann").await, 403);
    assert_eq!(get_status(&registry, &token, "/v1/events").await, 401);
    registry.stop().await;
}
