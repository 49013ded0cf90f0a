//! Streams of tasks: how many, how long, for whom, and what is sent where nothing happens.

use a2a_registry_api::{CreatedToken, NewToken};
use a2a_registry_core::accounts::identity::account_of;
use a2a_registry_core::accounts::tokens::{token_create, token_revoke};
use a2a_registry_core::config::Config;
use a2a_registry_core::providers::{EntryRefusal, Holder};
use a2a_registry_domain::role::Role;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use super::served::{Served, V1, events, message};
use super::tasks::{first, rows};
use crate::collections::account;
use crate::people::holder;
use crate::support::both_databases;
use crate::support::database::Database;

both_databases!(
    a_stream_without_events_says_that_it_is_there,
    a_token_that_is_revoked_gets_nothing_more,
    whom_the_identity_provider_lets_in_no_more_gets_nothing_more,
    a_stream_of_a_task_that_asks_back_ends_with_it
);

/// A new account that reads, and a token of it.
async fn reader(served: &Served, name: &str) -> (Uuid, CreatedToken) {
    let owner = account(&served.stage, name, Role::Reader).await;
    (owner.account().unwrap().id, made(served, name).await)
}

async fn made(served: &Served, name: &str) -> CreatedToken {
    let new = NewToken {
        account: name.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&served.stage.app, &served.stage.admin, &new).await;
    made.unwrap()
}

async fn subscribe(served: &Served, token: Option<&str>, id: Uuid) -> Response {
    served
        .post(V1, token, "SubscribeToTask", &json!({"id": id}))
        .await
}

/// A comment after 15 seconds, by the registry's clock, and again after 15 more.
async fn a_stream_without_events_says_that_it_is_there(url: &str) {
    let served = Served::new(url).await;
    let id = served.foreign_task(None).await;
    let mut stream = subscribe(&served, None, id).await;
    first(&mut stream).await;
    for _ in 0..2 {
        served.stage.advance(Duration::seconds(15));
        let chunk = stream.chunk().await.unwrap().unwrap();
        assert_eq!(chunk.as_ref(), b": still working\n\n");
    }
    assert!(served.finish(id).await);
    assert_eq!(events(stream).await.len(), 2);
}

async fn a_token_that_is_revoked_gets_nothing_more(url: &str) {
    let served = Served::new(url).await;
    let (ann, made) = reader(&served, "ann").await;
    let kept = self::made(&served, "ann").await;
    let id = served.foreign_task(Some(ann)).await;
    let mut open = Vec::new();
    for token in [&made, &kept] {
        let mut stream = subscribe(&served, Some(&token.secret), id).await;
        first(&mut stream).await;
        open.push(stream);
    }
    token_revoke(&served.stage.app, &served.stage.admin, made.token.id)
        .await
        .unwrap();
    assert!(served.finish(id).await);
    let [revoked, kept] = <[Response; 2]>::try_from(open).unwrap();
    assert_eq!(events(revoked).await, Vec::<Value>::new());
    assert_eq!(events(kept).await.len(), 2);
}

/// Neither somebody whom newer claims do not let in, nor somebody about whom there were none for long.
async fn whom_the_identity_provider_lets_in_no_more_gets_nothing_more(url: &str) {
    let served = Served::with(url, |config| config.identity.max_absence = 1).await;
    let app = &served.stage.app;
    for is_refused in [true, false] {
        let subject = if is_refused { "1" } else { "2" };
        let ann = account_of(app, &holder(subject, &[], 0)).await.unwrap();
        let made = made(&served, &ann.name).await;
        if !is_refused {
            served
                .stage
                .advance(Duration::days(1) - Duration::seconds(1));
        }
        let id = served.foreign_task(Some(ann.id)).await;
        let mut stream = subscribe(&served, Some(&made.secret), id).await;
        first(&mut stream).await;
        if is_refused {
            let left = Holder {
                entry: Err(EntryRefusal {
                    text: "not let in".into(),
                    ends_access: true,
                }),
                ..holder(subject, &[], 1)
            };
            account_of(app, &left).await.unwrap_err();
        } else {
            served.stage.advance(Duration::seconds(1));
        }
        assert!(served.finish(id).await);
        assert_eq!(events(stream).await, Vec::<Value>::new());
    }
}

async fn a_stream_of_a_task_that_asks_back_ends_with_it(url: &str) {
    let served = Served::new(url).await;
    let asked = served.say("").await;
    let params = json!({"id": asked["id"]});
    let seen = events(served.post(V1, None, "SubscribeToTask", &params).await).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0]["result"]["task"], asked);
}

/// A caller has a share of the places, and callers with an account and those without cannot take each other's. All end
/// with the registry.
#[tokio::test]
async fn streams_are_bounded_and_end_with_the_registry() {
    let database = Database::sqlite();
    let served = Served::with(database.url(), |config: &mut Config| {
        config.limits.streams = 20;
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let id = served.foreign_task(None).await;
    let from = async |address: u8, path: &str, body: &Value| {
        let request = served.request(Method::POST, path, V1, None);
        let request = request.header("x-forwarded-for", format!("192.0.2.{address}"));
        request.json(body).send().await.unwrap()
    };
    let path = format!("/a2a/v1/tasks/{id}:subscribe");
    let sent = json!({"message": message(&json!([{"text": "x"}]))});
    let mut open = Vec::new();
    for address in 1..=5 {
        for _ in 0..2 {
            let mut stream = from(address, &path, &json!({})).await;
            first(&mut stream).await;
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
    assert_eq!(rows(&served).await, 1);
    let mut tokens = Vec::new();
    for number in 0..10 {
        let name = format!("reader{number}");
        let (owner, made) = reader(&served, &name).await;
        tokens.push((made.secret, served.foreign_task(Some(owner)).await));
    }
    for (token, task) in &tokens {
        for _ in 0..2 {
            let mut stream = subscribe(&served, Some(token), *task).await;
            first(&mut stream).await;
            open.push(stream);
        }
        let refused = subscribe(&served, Some(token), *task).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let refused: Value = refused.json().await.unwrap();
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!("call"), &json!(-32000))
        );
    }
    let (_, more) = reader(&served, "one-more").await;
    let request = served.request(
        Method::POST,
        "/a2a/v1/message:stream",
        V1,
        Some(&more.secret),
    );
    let refused = request.json(&sent).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(open.len(), 30);
    served.stop().await;
    for mut answer in open {
        assert!(matches!(answer.chunk().await, Ok(None) | Err(_)));
    }
}
