//! Tests of sign-in with an identity provider that need no provider.

use a2a_registry_core::accounts::one_time_codes::MAX_RECORDED_USES;
use a2a_registry_core::config::{AllowPorts, IdentityProviderConfig};
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_http::requests::visitor::form_token;
use a2a_registry_http::sessions::sign_in_attempts::CompletedSignIn;
use a2a_registry_http::sessions::{SessionClient, begin_session_with_provider};
use a2a_registry_store::entity::used_sign_in_attempt;
use a2a_registry_store::identities::{is_sign_in_attempt_used, used_sign_in_attempt_count};
use actix_web::test::TestRequest;

use crate::tests::sessions::{BEFORE, form, near, sign_in, text, with};
use crate::tests::{ADMIN, Registry, TestResponse, bearer};

/// A registry with a provider that does not respond.
pub(crate) async fn registry() -> Registry {
    Registry::with(|config| {
        config.identity.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.identity.allow_http = true;
        config.identity.allow_ports = AllowPorts::Word("any".into());
        let provider = |port: u16, client_id: &str| IdentityProviderConfig {
            issuer: format!("http://127.0.0.1:{port}"),
            title: "Corp <b>".into(),
            client_id: client_id.into(),
            ..IdentityProviderConfig::default()
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
    // A provider that only issues access tokens cannot be used for sign-in.
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

/// Creates a session of the admin with an attempt with this state.
async fn session_by(registry: &Registry, state: &str) -> Result<String, AppError> {
    let context = registry.context();
    let account = registry.admin().await.account.unwrap().id;
    let attempt = CompletedSignIn {
        state_hash: state.into(),
        issuer: "http://127.0.0.1:1".into(),
    };
    let client = SessionClient::default();
    begin_session_with_provider(context, account, &attempt, &client).await
}

#[actix_web::test]
async fn a_session_has_its_provider_by_the_title_that_the_button_had() {
    let registry = registry().await;
    let secret = sign_in(&registry, ADMIN).await;
    session_by(&registry, "begun").await.unwrap();
    let account = near(TestRequest::get().uri("/account"));
    let page = text(&registry.ask(with(account, &secret)).await);
    let told = "Signed in with <bdi title=\"http://127.0.0.1:1\">Corp &#60;b&#62;</bdi>";
    assert!(page.contains(told), "{page}");
}

/// Records of used attempts are never evicted, because an attempt without a record could be used again.
#[actix_web::test]
async fn while_no_more_used_attempts_can_be_recorded_nobody_signs_in() {
    let registry = registry().await;
    let context = registry.context();
    let end = context.now().plus_micros(MINUTE).0;
    let used = |number: u64, expires_at: i64| used_sign_in_attempt::Model {
        state: format!("s{number}"),
        expires_at,
    };
    let write = context.store.begin_write().await.unwrap();
    for number in 1..MAX_RECORDED_USES {
        write
            .mark_sign_in_attempt_used(used(number, end))
            .await
            .unwrap();
    }
    write.commit().await.unwrap();
    session_by(&registry, "last").await.unwrap();
    let error = session_by(&registry, "more").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.retry_after.is_some());
    for state in ["s1", "last"] {
        assert!(
            is_sign_in_attempt_used(&context.store, state)
                .await
                .unwrap()
        );
    }
    // Expired records are deleted and free capacity.
    let write = context.store.begin_write().await.unwrap();
    write
        .delete_expired_sign_in_attempts(end - 1)
        .await
        .unwrap();
    assert_eq!(
        used_sign_in_attempt_count(&write).await.unwrap(),
        MAX_RECORDED_USES
    );
    write.delete_expired_sign_in_attempts(end).await.unwrap();
    write.mark_sign_in_attempt_used(used(0, 1)).await.unwrap();
    write.commit().await.unwrap();
    session_by(&registry, "more").await.unwrap();
    let kept = used_sign_in_attempt_count(&context.store).await.unwrap();
    assert_eq!(kept, 2, "the one that lasts, and the new one");
}

#[actix_web::test]
async fn nobody_signs_in_with_a_provider_in_the_clear_or_by_the_form_of_another_site() {
    let registry = registry().await;
    let far = || "192.0.2.7:9".parse().unwrap();
    let answer = registry.ask(begin("corp").peer_addr(far())).await;
    assert_eq!(answer.status, 403);
    assert!(text(&answer).contains("You cannot sign in over plain HTTP"));
    let back = near(TestRequest::get().uri("/sign-in/corp/callback?state=x&code=y"));
    let answer = registry.ask(back.peer_addr(far())).await;
    assert_eq!(answer.status, 403);
    let foreign = begin("corp").insert_header(("sec-fetch-site", "cross-site"));
    assert_eq!(registry.ask(foreign).await.status, 403);
    let without = form("/sign-in/corp", &[("form_token", &form_token(BEFORE))]);
    registry.ask(without).await.problem(403, "form-refused");
}

/// A token that names a configured issuer is meant for this registry, and is rejected while it cannot be verified.
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
