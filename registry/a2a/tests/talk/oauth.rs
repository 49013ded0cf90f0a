//! Signing in: what authorization servers are sent, and what of their answers is taken.

use a2a_client::oauth::{
    AuthorizationServer, LoopbackRedirect, MAX_RESPONSE_BYTES, OauthClientConfig, OauthEndpoints,
    OauthError, OauthServerMetadata, parse_oauth_url,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::scripted::{Scripted, ScriptedAnswer};

/// 43 characters, as a verifier must have.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

fn client(secret: Option<&str>) -> OauthClientConfig {
    OauthClientConfig {
        id: "cli".to_owned(),
        secret: secret.map(str::to_owned),
    }
}

fn provider(server: &Scripted, secret: Option<&str>) -> AuthorizationServer {
    let at = |path: &str| parse_oauth_url(&format!("{}{path}", server.base)).unwrap();
    let endpoints = OauthEndpoints {
        authorization: Some(at("/authorize")),
        device: Some(at("/device")),
        ..OauthEndpoints::from_token_url(at("/token"))
    };
    AuthorizationServer::new(endpoints, &client(secret)).unwrap()
}

fn tokens() -> ScriptedAnswer {
    ScriptedAnswer::json(
        &json!({"access_token": "s3cret", "token_type": "Bearer", "expires_in": 60,
        "refresh_token": "r"}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn pkce_is_by_sha_256_and_the_secret_stays_out_of_the_address() {
    let server = Scripted::start([tokens()]).await;
    let provider = provider(&server, Some("s3cret"));
    let redirect = "http://127.0.0.1:9/callback".parse().unwrap();
    let url = provider
        .authorization_url(
            &redirect,
            "state",
            VERIFIER,
            &["a".to_owned(), "b".to_owned()],
        )
        .unwrap();
    let value = |name: &str| {
        let mut pairs = url.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    // RFC 7636, appendix B.
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", "cli"),
        ("state", "state"),
        ("scope", "a b"),
        ("redirect_uri", redirect.as_str()),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(value(name).as_deref(), Some(expected), "{name}");
    }
    assert!(!url.as_str().contains("s3cret") && !url.as_str().contains(VERIFIER));
    let short = provider.authorization_url(&redirect, "state", "short", &[]);
    assert!(matches!(short, Err(OauthError::Unusable { .. })));

    let got = provider
        .exchange_code("code".to_owned(), &redirect, VERIFIER)
        .await
        .unwrap();
    assert_eq!(
        (got.access_token.as_str(), got.refresh_token.as_deref()),
        ("s3cret", Some("r"))
    );
    assert!(!format!("{got:?} {:?}", client(Some("s3cret"))).contains("s3cret"));
    let seen = server.stop().await.remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.path_and_query.as_str()),
        ("POST", "/token")
    );
    assert_eq!(seen.header("authorization"), Some("Basic Y2xpOnMzY3JldA=="));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_bring_no_token_and_are_not_quoted() {
    let long = vec![b' '; MAX_RESPONSE_BYTES + 1];
    let cases = [
        (
            ScriptedAnswer::new(200, "application/json", long),
            "longer than",
        ),
        (
            ScriptedAnswer::new(200, "text/html", "s3cret"),
            "sent an invalid response",
        ),
        (
            ScriptedAnswer::new(200, "application/json", "{\"s3cret\""),
            "sent an invalid response",
        ),
        (
            ScriptedAnswer::new(500, "application/json", "s3cret"),
            "sent an invalid response",
        ),
        (
            ScriptedAnswer::json(&json!({"access_token": "s3cret", "token_type": "mac"})),
            "a type other than bearer",
        ),
        (
            ScriptedAnswer::json(&json!({"token_type": "Bearer"})),
            "sent an invalid response",
        ),
        (
            ScriptedAnswer::new(
                400,
                "application/json",
                r#"{"error":"invalid_client","error_description":"who\nare you"}"#,
            ),
            "refused: invalid_client: who are you",
        ),
    ];
    for (answer, words) in cases {
        let server = Scripted::start([answer]).await;
        let error = provider(&server, Some("s3cret"))
            .exchange_client_credentials(&[])
            .await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(words) && !error.contains("s3cret"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_a_server_is_not_followed() {
    let other = Scripted::start([tokens(), tokens()]).await;
    for status in [301, 302, 303, 307, 308] {
        let away = ScriptedAnswer::new(status, "text/plain", "")
            .with("location", format!("{}/token", other.base));
        let server = Scripted::start([away.clone(), away]).await;
        let error = provider(&server, Some("s3cret")).refresh_tokens("r").await;
        assert!(
            matches!(error, Err(OauthError::Redirected { .. })),
            "{status}"
        );
        let document = format!("{}/.well-known/openid-configuration", server.base);
        let error = OauthServerMetadata::fetch(&document.parse().unwrap()).await;
        assert!(
            matches!(error, Err(OauthError::Redirected { .. })),
            "{status}"
        );
        assert_eq!(server.stop().await.len(), 2);
    }
    assert!(other.stop().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_stays_unless_another_one_comes() {
    let kept = ScriptedAnswer::json(&json!({"access_token": "new", "token_type": "bearer"}));
    let ended = ScriptedAnswer::new(400, "application/json", r#"{"error":"invalid_grant"}"#);
    let server = Scripted::start([kept, tokens(), ended]).await;
    let provider = provider(&server, None);
    let first = provider.refresh_tokens("old").await.unwrap();
    assert_eq!(
        (first.refresh_token.as_deref(), first.lifetime),
        (Some("old"), None)
    );
    assert_eq!(
        provider
            .refresh_tokens("old")
            .await
            .unwrap()
            .refresh_token
            .as_deref(),
        Some("r")
    );
    assert!(
        provider
            .refresh_tokens("old")
            .await
            .unwrap_err()
            .is_invalid_grant()
    );
    // A client without a secret names itself in the body alone.
    let seen = server.stop().await;
    assert!(
        seen.iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_another_issuer_is_refused() {
    let server = Scripted::start([ScriptedAnswer::json(&json!({"issuer": "https://l.example",
        "token_endpoint": "https://l.example/t"}))])
    .await;
    let url = format!("{}/.well-known/openid-configuration", server.base);
    let error = OauthServerMetadata::fetch(&url.parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, OauthError::OtherIssuer { .. }), "{error}");
    let seen = server.stop().await.remove(0);
    assert_eq!(seen.header("authorization"), None);
}

async fn visit(url: &url::Url, query: &str) -> String {
    let address = url.socket_addrs(|| None).unwrap()[0];
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /callback?{query} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_takes_the_answer_to_this_sign_in_alone() {
    let back = LoopbackRedirect::open().await.unwrap();
    let url = back.url().clone();
    assert_eq!(url.host_str(), Some("127.0.0.1"));
    let waiting = tokio::spawn(back.code_of("state"));
    // Browsers open connections that they do not use.
    let address = url.socket_addrs(|| None).unwrap()[0];
    let _idle = tokio::net::TcpStream::connect(address).await.unwrap();
    for wrong in ["code=evil&state=other", "code=evil", "state=state", ""] {
        assert!(
            visit(&url, wrong).await.starts_with("HTTP/1.1 400"),
            "{wrong}"
        );
    }
    // A request without an end is not read for ever.
    let mut long = tokio::net::TcpStream::connect(address).await.unwrap();
    long.write_all(&vec![b'x'; 17 * 1024]).await.unwrap();
    let mut answer = Vec::new();
    // It is closed, or reset with what was not read.
    let _ = long.read_to_end(&mut answer).await;
    assert!(answer.is_empty());
    let answer = visit(&url, "code=good&state=state").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && !answer.contains("good"),
        "{answer}"
    );
    assert_eq!(waiting.await.unwrap().unwrap(), "good");

    let back = LoopbackRedirect::open().await.unwrap();
    let url = back.url().clone();
    let waiting = tokio::spawn(back.code_of("state"));
    visit(&url, "error=access_denied&state=state").await;
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "https://l.example refused: access_denied"
    );
}

/// Waits for the code of a sign-in with this state.
trait CodeOf {
    fn code_of(
        self,
        state: &'static str,
    ) -> impl Future<Output = Result<String, OauthError>> + Send;
}

impl CodeOf for LoopbackRedirect {
    async fn code_of(self, state: &'static str) -> Result<String, OauthError> {
        self.wait_for_code(state, None, "https://l.example").await
    }
}
