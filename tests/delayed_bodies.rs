//! Requests whose body arrives late: the permissions of the caller are those at the time when the body is complete.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::DEADLINE;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// A request whose caller is known to the registry, and whose body has not come.
struct DelayedRequest {
    stream: TcpStream,
    body: String,
}

impl DelayedRequest {
    /// Sends everything but the body, and returns when the registry asks for that.
    async fn begin(registry: &ServingRegistry, path: &str, token: &str, body: &Value) -> Self {
        let address = registry.api.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut asked = [0; 25];
        timeout(DEADLINE, stream.read_exact(&mut asked))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        Self { stream, body }
    }

    /// Sends the body; returns the first line of the response.
    async fn end(mut self) -> String {
        self.stream.write_all(self.body.as_bytes()).await.unwrap();
        let mut all = String::new();
        timeout(DEADLINE, self.stream.read_to_string(&mut all))
            .await
            .unwrap()
            .unwrap();
        all.lines().next().unwrap_or_default().to_owned()
    }
}

/// The names of all tokens.
async fn token_names(registry: &ServingRegistry) -> Vec<String> {
    let list = registry.admin_request(Method::GET, "/v1/tokens?page_size=100");
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    let names = list["tokens"].as_array().unwrap().iter();
    names
        .map(|token| token["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_body_that_comes_late_does_nothing_for_who_was_disabled() {
    let registry = RegistrySetup::new().start().await;
    let late = json!({"account": "olga", "name": "late"});
    let path = "/v1/tokens";
    // While nothing changes, a late body is as good as any.
    let token = registry.create_token("olga", "admin").await;
    let held = DelayedRequest::begin(&registry, path, &token, &late).await;
    assert!(held.end().await.contains(" 201 "));
    assert!(token_names(&registry).await.contains(&"late".to_owned()));

    let changes = [json!({"disabled": true}), json!({"roles": ["reader"]})];
    for (at, change) in changes.iter().enumerate() {
        let account = format!("admin-{at}");
        let token = registry.create_token(&account, "admin").await;
        let wanted = json!({"account": "olga", "name": format!("later-{at}")});
        let held = DelayedRequest::begin(&registry, path, &token, &wanted).await;
        let change = registry
            .admin_request(Method::PATCH, &format!("/v1/accounts/{account}"))
            .json(change);
        assert_eq!(change.send().await.unwrap().status(), 200);
        let answer = held.end().await;
        assert!(answer.contains(" 401 "), "{answer}");
    }

    let token = registry.create_token("walter", "admin").await;
    let wanted = json!({"account": "walter", "name": "later-2"});
    let held = DelayedRequest::begin(&registry, path, &token, &wanted).await;
    let mine = registry
        .request(Method::GET, "/v1/tokens")
        .bearer_auth(&token);
    let mine: Value = mine.send().await.unwrap().json().await.unwrap();
    let mine = mine["tokens"].as_array().unwrap().iter();
    let mut mine = mine.filter(|one| one["account"] == "walter");
    let id = mine.next().unwrap()["id"].as_str().unwrap().to_owned();
    let revoked = registry.admin_request(Method::DELETE, &format!("/v1/tokens/{id}"));
    assert!(revoked.send().await.unwrap().status().is_success());
    let answer = held.end().await;
    assert!(answer.contains(" 401 "), "{answer}");
    let names = token_names(&registry).await;
    assert!(
        !names.iter().any(|name| name.starts_with("later")),
        "{names:?}"
    );
}
