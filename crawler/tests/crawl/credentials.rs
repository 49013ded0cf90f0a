//! Credentials of sources: which requests carry them, and what a malicious origin or token endpoint gets.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use a2a_crawler::AttemptOutcome::{BadRedirect, Card, Forbidden};
use a2a_crawler::fetch::{
    ClientRegistration, FetchLimits, Fetcher, FetcherConfig, SourceCredential,
};
use a2a_crawler::{FetchTarget, SourceOutcome, SourceResult, SourceTask};
use serde_json::json;
use url::Url;

use crate::support::{
    Authority, HOST, OPEN, Request, ScriptedReply, Server, StaticResolver, config, fetcher_with,
};

const SECRET: &str = "hush-0123456789";
/// A host of the same site, and one of another.
const SIBLING: &str = "login.example.com";
const STRANGER: &str = "evil.example.org";

/// Servers with TLS, and a fetcher that trusts them under every name of these tests.
struct TlsNetwork {
    authority: Authority,
    fetcher: Fetcher,
}

impl TlsNetwork {
    fn new() -> Self {
        let authority = Authority::new("the operator");
        let resolver = StaticResolver::new();
        for host in [HOST, SIBLING, STRANGER] {
            resolver.set(host, [IpAddr::V4(OPEN)]);
        }
        let config = FetcherConfig {
            extra_ca: vec![authority.pem()],
            ..config(FetchLimits::default())
        };
        let fetcher = fetcher_with(config, Arc::new(resolver));
        Self { authority, fetcher }
    }

    async fn serve(
        &self,
        host: &str,
        handler: impl Fn(&Request) -> ScriptedReply + Send + Sync + 'static,
    ) -> Server {
        let acceptor = self.authority.identity(host).acceptor(None);
        Server::bind(OPEN.into(), Some(acceptor), handler).await
    }

    async fn fetch(&self, target: FetchTarget, credential: SourceCredential) -> SourceOutcome {
        let task = SourceTask {
            source_key: 7,
            target,
            validators: None,
            credential: Some(credential),
        };
        self.fetcher.fetch_source(&task).await
    }
}

fn card() -> ScriptedReply {
    let card = json!({
        "name": "Books flights", "description": "Books flights.", "version": "1.0.0",
        "protocolVersion": "0.3.0", "url": "https://agents.example.com/a2a",
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": []
    });
    ScriptedReply::json(card.to_string())
}

fn forbidden() -> ScriptedReply {
    ScriptedReply::new(401, "", "")
}

fn card_url(url: Url) -> FetchTarget {
    FetchTarget::CardUrl { url }
}

fn bearer(source: &Url) -> SourceCredential {
    SourceCredential::bearer(1, source, SECRET).unwrap()
}

/// The credentials that a server has received, in any header field or body.
fn leaks(server: &Server) -> usize {
    let shown =
        |request: &Request| format!("{request:?} {}", String::from_utf8_lossy(&request.body));
    let requests = server.requests();
    requests
        .iter()
        .filter(|request| shown(request).contains(SECRET))
        .count()
}

fn client<'a>(token_url: &'a Url) -> ClientRegistration<'a> {
    ClientRegistration {
        token_url,
        client_id: "registry",
        client_secret: SECRET,
        scope: Some("cards"),
    }
}

fn token_response(token: &str) -> ScriptedReply {
    let response = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600});
    ScriptedReply::json(response.to_string())
}

#[tokio::test]
async fn each_kind_is_sent_as_its_standard_says_and_the_card_says_so() {
    let network = TlsNetwork::new();
    let server = network.serve(HOST, |_| card()).await;
    let url = server.url("/card.json");
    for (credential, field, value) in [
        (bearer(&url), "authorization", "Bearer hush-0123456789"),
        (
            SourceCredential::basic(1, &url, "Aladdin", "open sesame").unwrap(),
            "authorization",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ),
        (
            SourceCredential::header(1, &url, "X-Api-Key", SECRET).unwrap(),
            "x-api-key",
            SECRET,
        ),
    ] {
        let outcome = network.fetch(card_url(url.clone()), credential).await;
        assert_eq!(outcome.attempts[0].outcome, Card, "{outcome:?}");
        let SourceResult::Fetched(card) = outcome.result else {
            panic!("no card");
        };
        assert!(card.with_credential);
        let requests = server.requests();
        assert_eq!(requests.last().unwrap().header(field), Some(value));
    }
    let plain = SourceTask {
        source_key: 7,
        target: card_url(url),
        validators: None,
        credential: None,
    };
    let outcome = network.fetcher.fetch_source(&plain).await;
    let SourceResult::Fetched(card) = outcome.result else {
        panic!("no card");
    };
    assert!(!card.with_credential);
    assert_eq!(server.requests()[3].header("authorization"), None);
}

#[tokio::test]
async fn no_redirect_gets_the_credential() {
    let network = TlsNetwork::new();
    let stranger = network.serve(STRANGER, |_| card()).await;
    let sibling = network.serve(SIBLING, |_| card()).await;
    let plain = Server::always(card()).await;
    for (target, reaches) in [
        ("/other".to_owned(), true),
        (sibling.url_of(SIBLING, "/card.json").to_string(), true),
        (stranger.url_of(STRANGER, "/card.json").to_string(), false),
        (plain.url("/card.json").to_string(), false),
    ] {
        let location = target.clone();
        let origin = network
            .serve(HOST, move |request| match request.path.as_str() {
                "/card.json" => ScriptedReply::redirect(&location),
                _ => card(),
            })
            .await;
        let url = origin.url("/card.json");
        let outcome = network.fetch(card_url(url.clone()), bearer(&url)).await;
        let expected = if reaches { Card } else { BadRedirect };
        assert_eq!(outcome.attempts[0].outcome, expected, "{target}");
        assert_eq!(leaks(&origin), 1, "only the first request carries it");
    }
    assert_eq!(leaks(&stranger) + leaks(&sibling) + leaks(&plain), 0);
    assert_eq!(stranger.requests().len() + plain.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_to_a_place_that_needs_the_credential_is_explained() {
    let network = TlsNetwork::new();
    let server = network
        .serve(HOST, |request| match request.path.as_str() {
            "/card.json" => ScriptedReply::redirect("/moved"),
            _ => forbidden(),
        })
        .await;
    let url = server.url("/card.json");
    let outcome = network.fetch(card_url(url.clone()), bearer(&url)).await;
    let attempt = &outcome.attempts[0];
    assert_eq!(attempt.outcome, Forbidden);
    assert!(
        attempt.detail.contains("not sent after a redirect"),
        "{attempt:?}"
    );
    let refused = network
        .fetch(card_url(server.url("/moved")), bearer(&url))
        .await;
    let detail = &refused.attempts[0].detail;
    assert!(detail.contains("refuses the credential"), "{detail}");
    assert!(!detail.contains(SECRET), "{detail}");
}

/// A catalog and the cards in it are on one origin; what it lists elsewhere is not fetched with its credential.
#[tokio::test]
async fn another_origin_never_gets_the_credential_of_a_source() {
    let network = TlsNetwork::new();
    let stranger = network.serve(STRANGER, |_| card()).await;
    let origin = network.serve(HOST, |_| card()).await;
    let credential = bearer(&origin.url("/card.json"));
    let elsewhere = stranger.url_of(STRANGER, "/card.json");
    let outcome = network.fetch(card_url(elsewhere), credential.clone()).await;
    assert_eq!(outcome.attempts[0].outcome, Card);
    // The same host on another port, and without TLS.
    let other_port = network.serve(HOST, |_| card()).await;
    network
        .fetch(card_url(other_port.url("/card.json")), credential.clone())
        .await;
    let plain = Server::always(card()).await;
    network
        .fetch(card_url(plain.url("/card.json")), credential)
        .await;
    assert_eq!(plain.requests().len(), 1);
    assert_eq!(leaks(&stranger) + leaks(&other_port) + leaks(&plain), 0);
}

#[tokio::test]
async fn an_access_token_is_requested_once_and_again_after_a_refusal() {
    let network = TlsNetwork::new();
    let revoked = Arc::new(AtomicBool::new(false));
    let is_revoked = Arc::clone(&revoked);
    let origin = network
        .serve(HOST, move |request| {
            let token = request.header("authorization");
            let expected = match is_revoked.load(Ordering::SeqCst) {
                false => "Bearer token-1",
                true => "Bearer token-2",
            };
            match token == Some(expected) {
                true => card(),
                false => forbidden(),
            }
        })
        .await;
    let is_second = Arc::clone(&revoked);
    let login = network
        .serve(SIBLING, move |_| match is_second.load(Ordering::SeqCst) {
            false => token_response("token-1"),
            true => token_response("token-2"),
        })
        .await;
    let (url, token_url) = (origin.url("/card.json"), login.url_of(SIBLING, "/token"));
    let credential = SourceCredential::client(1, &url, client(&token_url), &[]).unwrap();
    for _ in 0..2 {
        let outcome = network
            .fetch(card_url(url.clone()), credential.clone())
            .await;
        assert_eq!(outcome.attempts[0].outcome, Card);
    }
    let requests = login.requests();
    assert_eq!(requests.len(), 1, "the token is kept");
    assert_eq!(requests[0].method, "POST");
    assert_eq!(
        String::from_utf8_lossy(&requests[0].body),
        "grant_type=client_credentials&scope=cards"
    );
    let basic = requests[0].header("authorization").unwrap();
    assert!(basic.starts_with("Basic "), "{basic}");

    revoked.store(true, Ordering::SeqCst);
    let refused = network
        .fetch(card_url(url.clone()), credential.clone())
        .await;
    assert_eq!(refused.attempts[0].outcome, Forbidden);
    let renewed = network
        .fetch(card_url(url.clone()), credential.clone())
        .await;
    assert_eq!(renewed.attempts[0].outcome, Card);
    // A credential that replaces another one does not use its token.
    let replaced = SourceCredential::client(2, &url, client(&token_url), &[]).unwrap();
    network.fetch(card_url(url), replaced).await;
    assert_eq!(login.requests().len(), 3);
}

#[tokio::test]
async fn nothing_that_a_token_endpoint_sends_is_shown_or_followed() {
    let network = TlsNetwork::new();
    let origin = network.serve(HOST, |_| card()).await;
    let stranger = network.serve(STRANGER, |_| token_response("token-1")).await;
    let url = origin.url("/card.json");
    let away = stranger.url_of(STRANGER, "/token").to_string();
    for reply in [
        ScriptedReply::redirect(&away),
        ScriptedReply::new(400, "", format!("internal {SECRET} page")),
        ScriptedReply::json(format!("\"internal {SECRET} page\"")),
        ScriptedReply::json(json!({"access_token": "a b", "token_type": "Bearer"}).to_string()),
        ScriptedReply::json(vec![b' '; 65 * 1024]),
    ] {
        let login = network.serve(SIBLING, move |_| reply.clone()).await;
        let token_url = login.url_of(SIBLING, "/token");
        let credential = SourceCredential::client(3, &url, client(&token_url), &[]).unwrap();
        let outcome = network.fetch(card_url(url.clone()), credential).await;
        let attempt = &outcome.attempts[0];
        assert_eq!((attempt.outcome, attempt.status), (Forbidden, None));
        assert!(
            attempt.detail.contains("did not issue an access token"),
            "{attempt:?}"
        );
        assert!(!format!("{outcome:?}").contains("internal"), "{outcome:?}");
        assert_eq!(login.requests().len(), 1);
    }
    assert_eq!(stranger.requests().len(), 0, "the redirect is not followed");
    assert_eq!(
        origin.requests().len(),
        0,
        "nothing is fetched without a token"
    );
}

#[tokio::test]
async fn a_credential_that_cannot_be_used_sends_nothing() {
    let network = TlsNetwork::new();
    let origin = network.serve(HOST, |_| card()).await;
    let url = origin.url("/card.json");
    let unusable = SourceCredential::unusable(1, &url, "the key is missing");
    let outcome = network.fetch(card_url(url), unusable).await;
    assert_eq!(outcome.attempts[0].outcome, Forbidden);
    assert_eq!(outcome.attempts[0].detail, "the key is missing");
    assert_eq!(origin.requests().len(), 0);
}
