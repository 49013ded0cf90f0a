//! Tokens that are renewed during a call, and credentials that leave for no other origin.

use std::sync::{Arc, Mutex};

use a2a_client::{CallError, ClientCertificate, SendOptions, TokenSource, send_text};
use futures::future::BoxFuture;
use serde_json::json;

use super::card;
use super::scripted::{Scripted, ScriptedAnswer};

/// A source with these tokens: each is returned until it is refused.
pub struct Tokens {
    left: Mutex<Vec<String>>,
    /// What was refused.
    refused: Mutex<Vec<String>>,
}

impl Tokens {
    pub fn of(tokens: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(tokens.iter().rev().map(|&text| text.to_owned()).collect()),
            refused: Mutex::default(),
        })
    }
}

impl TokenSource for Tokens {
    fn access_token<'a>(
        &'a self,
        refused: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let mut left = self.left.lock().unwrap();
            if let Some(refused) = refused {
                self.refused.lock().unwrap().push(refused.to_owned());
                left.retain(|token| token != refused);
            } else if left.is_empty() {
                return Err("the sign-in has ended".to_owned());
            }
            Ok(left.last().cloned())
        })
    }
}

fn with(tokens: &Arc<Tokens>) -> SendOptions {
    SendOptions {
        token_source: Some(Arc::clone(tokens) as Arc<dyn TokenSource>),
        ..SendOptions::new("m")
    }
}

fn unauthorized() -> ScriptedAnswer {
    ScriptedAnswer::new(401, "application/json", r#"{"error":"invalid_token"}"#)
}

fn answered() -> ScriptedAnswer {
    ScriptedAnswer::json(&json!({"result": {"message": {"parts": [{"text": "hi"}]}}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_renewed_once_and_the_request_sent_again() {
    let server = Scripted::start([unauthorized(), answered()]).await;
    let tokens = Tokens::of(&["old", "new", "newer"]);
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    send_text(&spoken, "hi", &with(&tokens)).await.unwrap();
    let seen = server.stop().await;
    let sent = seen.iter().map(|request| request.header("authorization"));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [Some("Bearer old"), Some("Bearer new")]
    );
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(*tokens.refused.lock().unwrap(), ["old"]);

    let server = Scripted::start([unauthorized(), unauthorized(), answered()]).await;
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    let tokens = Tokens::of(&["old", "new", "newer"]);
    let error = send_text(&spoken, "hi", &with(&tokens)).await.unwrap_err();
    assert!(
        matches!(&error, CallError::CredentialsRejected { status, .. } if status == "HTTP 401"),
        "{error}"
    );
    assert_eq!(server.stop().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_renews_its_token_once_whatever_it_asks_for_after_that() {
    let task = json!({"id": "t", "status": {"state": "TASK_STATE_WORKING"}});
    let working = ScriptedAnswer::json(&json!({"result": {"task": task}}));
    let server = Scripted::start([unauthorized(), working, unauthorized(), answered()]).await;
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    let options = SendOptions {
        poll_interval: std::time::Duration::from_millis(1),
        ..with(&Tokens::of(&["old", "new", "newer"]))
    };
    let answer = send_text(&spoken, "hi", &options).await.unwrap();
    let reason = answer.unfinished_reason.unwrap();
    assert!(reason.contains("refused the credentials"), "{reason}");
    assert_eq!(server.stop().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_again_after_another_refusal_or_without_another_token() {
    for (answer, tokens) in [
        (unauthorized(), &["only"][..]),
        (ScriptedAnswer::new(403, "text/plain", "no"), &["a", "b"]),
        (ScriptedAnswer::new(503, "text/plain", "busy"), &["a", "b"]),
        (ScriptedAnswer::new(400, "text/plain", "what"), &["a", "b"]),
    ] {
        let server = Scripted::start([answer, answered()]).await;
        let spoken = card(&server.base, "JSONRPC", Some("1.0"));
        assert!(
            send_text(&spoken, "hi", &with(&Tokens::of(tokens)))
                .await
                .is_err()
        );
        assert_eq!(server.stop().await.len(), 1);
    }
    let server = Scripted::start([answered()]).await;
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    let error = send_text(&spoken, "hi", &with(&Tokens::of(&[]))).await;
    let reason = "the sign-in has ended".to_owned();
    assert_eq!(error.unwrap_err(), CallError::NoToken { reason });
    assert!(server.stop().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_do_not_follow_a_redirect_or_an_interface_to_another_origin() {
    let other = Scripted::start([answered()]).await;
    for status in [301, 302, 307, 308] {
        let redirect = ScriptedAnswer::new(status, "text/plain", "")
            .with("location", format!("{}/elsewhere", other.base));
        let server = Scripted::start([redirect]).await;
        let spoken = card(&server.base, "JSONRPC", Some("1.0"));
        let error = send_text(&spoken, "hi", &with(&Tokens::of(&["t"]))).await;
        assert!(
            matches!(error, Err(CallError::Redirected { .. })),
            "{status}"
        );
        server.stop().await;
    }
    // The first interface does not know the method, so the next one would be tried, at the neighbouring port.
    let missing = ScriptedAnswer::new(404, "text/plain", "");
    let server = Scripted::start([missing.clone(), missing]).await;
    let mut spoken = card(&server.base, "JSONRPC", Some("1.0"));
    spoken
        .interfaces
        .push(super::interface(&other.base, "JSONRPC", Some("1.0")));
    let error = send_text(&spoken, "hi", &with(&Tokens::of(&["t"]))).await;
    assert!(matches!(error, Err(CallError::Http { status: 404, .. })));
    assert!(other.stop().await.is_empty());
    // Once in each form.
    assert_eq!(server.stop().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_do_not_follow_a_redirect_to_https_at_another_port() {
    let secure = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("https://{}/", secure.local_addr().unwrap());
    let redirect = ScriptedAnswer::new(307, "text/plain", "").with("location", to);
    let server = Scripted::start([redirect.clone(), redirect]).await;
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    let error = send_text(&spoken, "hi", &with(&Tokens::of(&["t"]))).await;
    assert!(
        matches!(error, Err(CallError::Redirected { .. })),
        "{error:?}"
    );
    // Without credentials the same host may be followed to https.
    let options = SendOptions::new("m");
    let (error, connected) = tokio::join!(send_text(&spoken, "hi", &options), async {
        // Closed at once, since only the attempt counts.
        secure.accept().await.is_ok()
    });
    assert!(
        connected && !matches!(error, Err(CallError::Redirected { .. })),
        "{error:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_none_is_refused_before_anything_is_sent() {
    let server = Scripted::start([answered()]).await;
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    let options = SendOptions {
        certificate: Some(ClientCertificate {
            chain: b"s3cret".to_vec(),
            key: b"s3cret".to_vec(),
        }),
        ..SendOptions::new("m")
    };
    let error = send_text(&spoken, "hi", &options).await.unwrap_err();
    assert!(matches!(error, CallError::BadCertificate { .. }), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
    assert!(server.stop().await.is_empty());
}
