//! Signing in with an identity provider, as far as it needs none.

use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::sign_in_attempt;
use a2a_registry_store::identities::{attempt_by_state, attempt_count};
use actix_web::test::TestRequest;

use crate::accounts::attempts::{MAX_ATTEMPTS, attempt_keep};
use crate::config::{AllowPorts, ProviderConfig};
use crate::http::visitor::form_token;
use crate::tests::sessions::{BEFORE, form, near, text};
use crate::tests::{ADMIN, Registry, TestResponse, bearer};

/// A registry with a provider that does not respond.
async fn registry() -> Registry {
    Registry::with(|config| {
        config.identity.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.identity.allow_http = true;
        config.identity.allow_ports = AllowPorts::Word("any".into());
        let provider = |port: u16, client_id: &str| ProviderConfig {
            issuer: format!("http://127.0.0.1:{port}"),
            title: "Corp <b>".into(),
            client_id: client_id.into(),
            ..ProviderConfig::default()
        };
        let providers = [
            ("corp", provider(1, "registry")),
            ("robots", provider(2, "")),
        ];
        config.identity.providers = providers.map(|(name, own)| (name.to_owned(), own)).into();
    })
    .await
}

fn begin(provider: &str) -> TestRequest {
    let fields = [("form_token", form_token(BEFORE)), ("next", "/".into())];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    form(&format!("/sign-in/{provider}"), &fields)
        .insert_header(("cookie", format!("__Host-a2a_form={BEFORE}")))
        .insert_header(("accept", "text/html"))
}

async fn begun(registry: &Registry, provider: &str) -> TestResponse {
    registry.ask(begin(provider)).await
}

#[actix_web::test]
async fn a_provider_that_does_not_respond_says_so_and_attempts_are_limited() {
    let registry = registry().await;
    let page = text(&registry.ask(near(TestRequest::get().uri("/sign-in"))).await);
    assert!(
        page.contains("Corp &#60;b&#62;") && page.contains("/sign-in/corp"),
        "{page}"
    );
    // Nobody signs in with one that only issues access tokens.
    assert!(!page.contains("/sign-in/robots"), "{page}");
    for unknown in ["robots", "nobody", "Corp"] {
        assert_eq!(begun(&registry, unknown).await.status, 404, "{unknown}");
    }
    for _ in 0..10 {
        let answer = begun(&registry, "corp").await;
        assert_eq!(answer.status, 503);
        assert!(text(&answer).contains("does not respond"));
    }
    assert_eq!(begun(&registry, "corp").await.status, 429);
}

/// However many attempts somebody begins, the next person's is kept.
#[actix_web::test]
async fn of_too_many_attempts_the_oldest_makes_way() {
    let registry = registry().await;
    let context = registry.context();
    let now = context.now();
    let attempt = |number: u64| sign_in_attempt::Model {
        state: format!("s{number}"),
        browser: "b".into(),
        issuer: "http://127.0.0.1:1".into(),
        next: "/".into(),
        expires_at: now.plus(MINUTE).0 + i64::try_from(number).unwrap(),
    };
    let write = context.store.write().await.unwrap();
    for number in 0..MAX_ATTEMPTS {
        write.attempt_insert(attempt(number)).await.unwrap();
    }
    write.commit().await.unwrap();
    attempt_keep(context, attempt(MAX_ATTEMPTS)).await.unwrap();
    let store = &context.store;
    assert_eq!(attempt_count(store).await.unwrap(), MAX_ATTEMPTS);
    for (number, is_kept) in [(0, false), (1, true), (MAX_ATTEMPTS, true)] {
        let found = attempt_by_state(store, &format!("s{number}")).await;
        assert_eq!(found.unwrap().is_some(), is_kept, "{number}");
    }
}

#[actix_web::test]
async fn nobody_signs_in_with_a_provider_in_the_clear_or_by_the_form_of_another_site() {
    let registry = registry().await;
    let far = || "192.0.2.7:9".parse().unwrap();
    let answer = registry.ask(begin("corp").peer_addr(far())).await;
    assert_eq!(answer.status, 403);
    assert!(text(&answer).contains("Nobody can sign in over plain HTTP"));
    let back = near(TestRequest::get().uri("/sign-in/corp/callback?state=x&code=y"));
    let answer = registry.ask(back.peer_addr(far())).await;
    assert_eq!(answer.status, 403);
    let foreign = begin("corp").insert_header(("sec-fetch-site", "cross-site"));
    assert_eq!(registry.ask(foreign).await.status, 403);
    let without = form("/sign-in/corp", &[("form_token", &form_token(BEFORE))]);
    registry.ask(without).await.problem(403, "form-refused");
}

/// Whatever names a configured issuer is for this registry, and is refused while it cannot be verified.
#[actix_web::test]
async fn a_token_that_cannot_be_verified_is_nobodys() {
    use data_encoding::BASE64URL_NOPAD as BASE64;
    let registry = registry().await;
    let token = |issuer: &str, alg: &str| {
        let part = |text: String| BASE64.encode(text.as_bytes());
        let header = part(format!("{{\"alg\":\"{alg}\",\"typ\":\"at+jwt\"}}"));
        let claims = part(format!("{{\"iss\":\"{issuer}\",\"sub\":\"admin\"}}"));
        format!("{header}.{claims}.AAAA")
    };
    let card = "/agents/018f0000-0000-7000-8000-000000000000/.well-known/agent-card.json";
    for (issuer, alg, path, status) in [
        ("http://127.0.0.1:1", "none", "/v1/agents", 401),
        ("http://127.0.0.1:1", "HS256", card, 401),
        ("http://127.0.0.1:1", "RS256", "/v1/agents", 503),
        ("http://127.0.0.1:1", "RS256", card, 503),
        ("http://127.0.0.1:2", "RS256", "/v1/me", 503),
        ("http://127.0.0.1:3", "RS256", "/v1/me", 401),
        ("http://127.0.0.1:3", "RS256", card, 404),
    ] {
        let request = bearer(TestRequest::get().uri(path), &token(issuer, alg));
        let answer = registry.ask(request).await;
        assert_eq!(answer.status.as_u16(), status, "{issuer} {alg} {path}");
    }
    // The registry's own tokens need no provider.
    let own = bearer(TestRequest::get().uri("/v1/me"), ADMIN);
    assert_eq!(registry.ask(own).await.status, 200);
}
