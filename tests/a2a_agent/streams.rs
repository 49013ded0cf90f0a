//! Streams of tasks: their number, their duration, their readers, and keep-alives while nothing happens.

use a2a_registry_api::{CreatedToken, NewToken};
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::accounts::tokens::{token_create, token_revoke};
use a2a_registry_core::config::Config;
use a2a_registry_core::providers::{GrantRejection, TokenSubject};
use a2a_registry_domain::role::Role;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use super::listening_registry::{ListeningRegistry, V1, events, message};
use super::tasks::{count_task_rows, first_event};
use crate::account_concurrency::holder;
use crate::collections::create_account;
use crate::support::both_databases;
use crate::support::database::Database;

both_databases!(
    a_stream_without_events_says_that_it_is_there,
    a_token_that_is_revoked_gets_nothing_more,
    whom_the_identity_provider_lets_in_no_more_gets_nothing_more,
    a_stream_of_a_task_that_asks_back_ends_with_it
);

/// A new account that reads, and a token of it.
async fn reader(registry: &ListeningRegistry, name: &str) -> (Uuid, CreatedToken) {
    let owner = create_account(&registry.inner, name, Role::Reader).await;
    (
        owner.require_account().unwrap().id,
        create_token(registry, name).await,
    )
}

async fn create_token(registry: &ListeningRegistry, name: &str) -> CreatedToken {
    let new = NewToken {
        account: name.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.inner.app, &registry.inner.admin, &new).await;
    made.unwrap()
}

async fn subscribe(registry: &ListeningRegistry, token: Option<&str>, id: Uuid) -> Response {
    registry
        .post(V1, token, "SubscribeToTask", &json!({"id": id}))
        .await
}

/// A comment after 15 seconds, by the registry's clock, and again after 15 more.
async fn a_stream_without_events_says_that_it_is_there(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let id = registry.foreign_task(None).await;
    let mut stream = subscribe(&registry, None, id).await;
    first_event(&mut stream).await;
    for _ in 0..2 {
        registry.inner.advance(Duration::seconds(15));
        let chunk = stream.chunk().await.unwrap().unwrap();
        assert_eq!(chunk.as_ref(), b": still working\n\n");
    }
    assert!(registry.finish(id).await);
    assert_eq!(events(stream).await.len(), 2);
}

async fn a_token_that_is_revoked_gets_nothing_more(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let (ann, made) = reader(&registry, "ann").await;
    let kept = self::create_token(&registry, "ann").await;
    let id = registry.foreign_task(Some(ann)).await;
    let mut open = Vec::new();
    for token in [&made, &kept] {
        let mut stream = subscribe(&registry, Some(&token.secret), id).await;
        first_event(&mut stream).await;
        open.push(stream);
    }
    token_revoke(&registry.inner.app, &registry.inner.admin, made.token.id)
        .await
        .unwrap();
    assert!(registry.finish(id).await);
    let [revoked, kept] = <[Response; 2]>::try_from(open).unwrap();
    assert_eq!(events(revoked).await, Vec::<Value>::new());
    assert_eq!(events(kept).await.len(), 2);
}

/// Neither somebody whom newer claims do not let in, nor somebody about whom there were none for long.
async fn whom_the_identity_provider_lets_in_no_more_gets_nothing_more(url: &str) {
    let registry =
        ListeningRegistry::with_config(url, |config| config.identity.max_absence = 1).await;
    let app = &registry.inner.app;
    for is_refused in [true, false] {
        let subject = if is_refused { "1" } else { "2" };
        let ann = resolve_subject_account(app, &holder(subject, &[], 0))
            .await
            .unwrap();
        let made = create_token(&registry, &ann.name).await;
        if !is_refused {
            registry
                .inner
                .advance(Duration::days(1) - Duration::seconds(1));
        }
        let id = registry.foreign_task(Some(ann.id)).await;
        let mut stream = subscribe(&registry, Some(&made.secret), id).await;
        first_event(&mut stream).await;
        if is_refused {
            let left = TokenSubject {
                grant: Err(GrantRejection {
                    text: "not let in".into(),
                    ends_access: true,
                }),
                ..holder(subject, &[], 1)
            };
            resolve_subject_account(app, &left).await.unwrap_err();
        } else {
            registry.inner.advance(Duration::seconds(1));
        }
        assert!(registry.finish(id).await);
        assert_eq!(events(stream).await, Vec::<Value>::new());
    }
}

async fn a_stream_of_a_task_that_asks_back_ends_with_it(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let asked = registry.send_text("").await;
    let params = json!({"id": asked["id"]});
    let seen = events(registry.post(V1, None, "SubscribeToTask", &params).await).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0]["result"]["task"], asked);
}

/// A caller has a share of the places, and callers with an account and those without cannot take each other's. All end
/// with the registry.
#[tokio::test]
async fn streams_are_bounded_and_end_with_the_registry() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.limits.streams = 20;
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let id = registry.foreign_task(None).await;
    let from = async |address: u8, path: &str, body: &Value| {
        let request = registry.request(Method::POST, path, V1, None);
        let request = request.header("x-forwarded-for", format!("192.0.2.{address}"));
        request.json(body).send().await.unwrap()
    };
    let path = format!("/a2a/v1/tasks/{id}:subscribe");
    let sent = json!({"message": message(&json!([{"text": "x"}]))});
    let mut open = Vec::new();
    for address in 1..=5 {
        for _ in 0..2 {
            let mut stream = from(address, &path, &json!({})).await;
            first_event(&mut stream).await;
            open.push(stream);
        }
        let refused = from(address, &path, &json!({})).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "30");
    }
    // All places of those without an account are taken. A stream that is refused makes no task.
    for path in [path.as_str(), "/a2a/v1/message:stream"] {
        let refused = from(6, path, &sent).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "30");
    }
    assert_eq!(count_task_rows(&registry).await, 1);
    let mut tokens = Vec::new();
    for number in 0..10 {
        let name = format!("reader{number}");
        let (owner, made) = reader(&registry, &name).await;
        tokens.push((made.secret, registry.foreign_task(Some(owner)).await));
    }
    for (token, task) in &tokens {
        for _ in 0..2 {
            let mut stream = subscribe(&registry, Some(token), *task).await;
            first_event(&mut stream).await;
            open.push(stream);
        }
        let refused = subscribe(&registry, Some(token), *task).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let refused: Value = refused.json().await.unwrap();
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!("call"), &json!(-32000))
        );
    }
    let (_, more) = reader(&registry, "one-more").await;
    let request = registry.request(
        Method::POST,
        "/a2a/v1/message:stream",
        V1,
        Some(&more.secret),
    );
    let refused = request.json(&sent).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(open.len(), 30);
    registry.stop().await;
    for mut answer in open {
        assert!(matches!(answer.chunk().await, Ok(None) | Err(_)));
    }
}
