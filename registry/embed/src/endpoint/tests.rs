//! The remote encoder against local servers with valid and invalid responses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../../crawler/tests/crawl/support/canary.rs"]
#[allow(dead_code, reason = "the crawler's tests use more of it")]
mod canary;
mod lies;
mod secrets;
#[path = "../../../../crawler/tests/crawl/support/server.rs"]
#[allow(dead_code, reason = "the crawler's tests use more of it")]
mod server;
mod slots;
#[path = "../../../../crawler/tests/crawl/support/static_resolver.rs"]
#[allow(dead_code, reason = "the crawler's tests use more of it")]
mod static_resolver;
#[path = "../../../../crawler/tests/crawl/support/trust.rs"]
#[allow(dead_code, reason = "the crawler's tests use more of it")]
mod trust;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use a2a_crawler::SystemClock;
use a2a_crawler::guard::AllowedPorts;
use serde_json::Value;
use server::{Request, ScriptedReply, Server};
use static_resolver::StaticResolver;
use trust::{Authority, Identity};

use super::*;

/// The only loopback address that these endpoints may use.
const OPEN: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// A loopback address that stays forbidden.
const FORBIDDEN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A host that resolves to [`OPEN`].
const HOST: &str = "encoder.example.com";
/// A host that resolves to [`FORBIDDEN`].
const PRIVATE: &str = "private.example.com";

fn resolver() -> Arc<StaticResolver> {
    let resolver = StaticResolver::new();
    resolver.set(HOST, [IpAddr::V4(OPEN)]);
    resolver.set(PRIVATE, [IpAddr::V4(FORBIDDEN)]);
    Arc::new(resolver)
}

/// A guard that allows one address, on any port and without TLS.
fn opening(address: Ipv4Addr) -> GuardConfig {
    GuardConfig {
        allow_networks: vec![IpAddr::V4(address).into()],
        allow_http: true,
        allow_ports: AllowedPorts::Any,
        ..GuardConfig::default()
    }
}

/// Options for this server, with vectors of three numbers.
fn config(server: &Server) -> EndpointOptions {
    EndpointOptions {
        url: server.url("/v1/embeddings").into(),
        model: "small".into(),
        dimensions: Some(3),
        timeout: Duration::from_secs(30),
        guard: opening(OPEN),
        ..EndpointOptions::default()
    }
}

async fn open(config: &EndpointOptions) -> Result<RemoteEncoder, EndpointOpenError> {
    RemoteEncoder::open(config, resolver(), Arc::new(SystemClock)).await
}

/// The texts of a request.
fn texts(request: &Request) -> Vec<String> {
    let asked: Value = serde_json::from_slice(&request.body).unwrap();
    serde_json::from_value(asked["input"].clone()).unwrap()
}

/// The response of a correct server: for each text a vector that encodes its number of characters, by [`turned`].
fn honest(request: &Request) -> ScriptedReply {
    let texts = texts(request);
    let vectors = texts.iter().enumerate().map(|(index, text)| {
        let length = text.chars().count();
        json!({"object": "embedding", "index": index, "embedding": [length, 1, 0]})
    });
    let data: Vec<Value> = vectors.collect();
    ScriptedReply::json(json!({"object": "list", "data": data, "model": "small-2"}).to_string())
}

/// The vector for a text of this many characters.
fn turned(length: usize) -> Vec<f32> {
    let length = length as f64;
    let norm = length.hypot(1.0);
    vec![(length / norm) as f32, (1.0 / norm) as f32, 0.0]
}

/// Whether two lists of vectors are equal except for rounding.
fn near(one: &[Vec<f32>], other: &[Vec<f32>]) -> bool {
    let numbers = |vectors: &[Vec<f32>]| vectors.concat();
    let (left, right) = (numbers(one), numbers(other));
    let mut pairs = left.iter().zip(&right);
    left.len() == right.len() && pairs.all(|(a, b)| (a - b).abs() < 1e-6)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn texts_are_asked_for_in_the_usual_shape() {
    let server = Server::start(honest).await;
    let with_key = EndpointOptions {
        api_key: Some(BearerToken::new("hush-7").unwrap()),
        ..config(&server)
    };
    let endpoint = open(&with_key).await.unwrap();
    // A configured length needs no trial request.
    assert_eq!(server.requests().len(), 0);
    for kind in [TextKind::Query, TextKind::Card] {
        let vectors = endpoint
            .embed(owned(&["a flight", "ä \"b\""]), kind)
            .await
            .unwrap();
        assert!(near(&vectors, &[turned(8), turned(5)]), "{vectors:?}");
    }
    for request in server.requests() {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let expected = json!({
            "model": "small",
            "input": ["a flight", "ä \"b\""],
            "encoding_format": "float",
            "dimensions": 3,
        });
        assert_eq!(asked, expected);
        assert_eq!(
            (&*request.method, &*request.path),
            ("POST", "/v1/embeddings")
        );
        assert_eq!(request.header("authorization"), Some("Bearer hush-7"));
    }
    let keyless = open(&config(&server)).await.unwrap();
    let texts = owned(&["x"]);
    keyless.embed(texts, TextKind::Query).await.unwrap();
    let last = server.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), None);
}

#[tokio::test]
async fn dimensions_that_are_not_known_are_learned_once() {
    let server = Server::start(honest).await;
    let unknown = EndpointOptions {
        dimensions: None,
        ..config(&server)
    };
    let endpoint = open(&unknown).await.unwrap();
    assert_eq!(endpoint.model_identity().dimensions, 3);
    endpoint
        .embed(owned(&["x"]), TextKind::Query)
        .await
        .unwrap();
    let requests = server.requests();
    assert_eq!(texts(&requests[0]), [TRIAL_TEXT]);
    assert_eq!(texts(&requests[1]), ["x"]);
    for request in requests {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(asked.get("dimensions"), None);
    }
}

#[tokio::test]
async fn a_model_is_known_by_its_place_its_name_and_its_length() {
    let server = Server::start(honest).await;
    let id = async |change: &dyn Fn(&mut EndpointOptions)| {
        let mut config = config(&server);
        change(&mut config);
        open(&config).await.unwrap().model_identity().clone()
    };
    let first = id(&|_| {}).await;
    assert_eq!((first.name.as_str(), first.dimensions), ("small", 3));
    let hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    assert!(first.id.len() == 64 && first.id.chars().all(hexadecimal));
    // Neither the caller's key nor how the length became known changes the identity of the model.
    let same = [
        id(&|config| config.dimensions = None).await,
        id(&|config| config.api_key = Some(BearerToken::new("hush").unwrap())).await,
        id(&|config| config.timeout = Duration::from_secs(7)).await,
        id(&|config| config.url = config.url.replace(HOST, "Encoder.Example.com.")).await,
    ];
    assert!(same.iter().all(|model| *model == first), "{same:?}");
    let others = [
        id(&|config| config.dimensions = Some(4)).await,
        id(&|config| config.model = "large".into()).await,
        id(&|config| config.url.push_str("?v=2")).await,
        // Vectors of texts with other prefixes cannot be compared.
        id(&|config| config.query_prefix = "query: ".into()).await,
        id(&|config| config.passage_prefix = "query: ".into()).await,
    ];
    let ids: BTreeSet<&String> = others
        .iter()
        .chain([&first])
        .map(|model| &model.id)
        .collect();
    assert_eq!(ids.len(), 6, "{others:?}");
}

#[tokio::test]
async fn texts_begin_with_the_prefix_of_their_kind() {
    let server = Server::start(honest).await;
    let prefixed = EndpointOptions {
        query_prefix: "query: ".into(),
        passage_prefix: "passage: ".into(),
        ..config(&server)
    };
    let endpoint = open(&prefixed).await.unwrap();
    for (kind, prefix, most) in [
        (TextKind::Query, "query: ", 512),
        (TextKind::Card, "passage: ", 8000),
    ] {
        let given = ["a flight".to_owned(), "ä".repeat(most)];
        endpoint.embed(given.to_vec(), kind).await.unwrap();
        let sent = texts(&server.requests().pop().unwrap());
        assert_eq!(sent[0], format!("{prefix}a flight"));
        // The prefix stays when a text is cut.
        assert!(sent[1].starts_with(prefix));
        assert_eq!(sent[1].chars().count(), most);
    }
}

#[tokio::test]
async fn long_texts_are_cut_and_large_batches_refused() {
    let server = Server::start(honest).await;
    let endpoint = open(&config(&server)).await.unwrap();
    for (kind, most) in [(TextKind::Query, 512), (TextKind::Card, 8000)] {
        let texts = ["ä".repeat(most - 1), "ä".repeat(most), "ä".repeat(most + 9)];
        let vectors = endpoint.embed(texts.to_vec(), kind).await.unwrap();
        let expected = [turned(most - 1), turned(most), turned(most)];
        assert!(near(&vectors, &expected), "{kind:?}");
    }
    // The largest batch, of the characters that take the most bytes.
    let texts = vec!["\u{1f}".repeat(MAX_CARD_CHARS); MAX_TEXTS_PER_CALL];
    let vectors = endpoint.embed(texts, TextKind::Card).await.unwrap();
    assert_eq!(vectors.len(), MAX_TEXTS_PER_CALL);
    let asked = server.requests().len();
    for kind in [TextKind::Query, TextKind::Card] {
        let refused = endpoint
            .embed(vec![String::new(); MAX_TEXTS_PER_CALL + 1], kind)
            .await;
        assert!(matches!(refused, Err(EmbedError::Failed(_))), "{refused:?}");
        assert_eq!(endpoint.embed(Vec::new(), kind).await, Ok(Vec::new()));
    }
    assert_eq!(server.requests().len(), asked);
}

#[tokio::test]
async fn the_sections_own_roots_are_trusted() {
    let authority = Authority::new("the encoder's");
    let tls = authority.identity(HOST).acceptor(None);
    let server = Server::bind(OPEN.into(), Some(tls), honest).await;
    let trusting = EndpointOptions {
        guard: GuardConfig {
            allow_http: false,
            ..opening(OPEN)
        },
        extra_ca: vec![authority.pem()],
        ..config(&server)
    };
    let strict = EndpointOptions {
        extra_ca: Vec::new(),
        ..trusting.clone()
    };
    for (config, trusted) in [(trusting, true), (strict, false)] {
        let endpoint = open(&config).await.unwrap();
        let vectors = endpoint.embed(owned(&["x"]), TextKind::Query).await;
        match vectors {
            Ok(vectors) => assert!(trusted && near(&vectors, &[turned(1)])),
            Err(error) => {
                assert!(
                    !trusted && matches!(error, EmbedError::Unavailable(_)),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let server = Server::start(honest).await;
    let good = config(&server);
    let wrong = [
        (
            "url",
            EndpointOptions {
                url: String::new(),
                ..good.clone()
            },
        ),
        (
            "url",
            EndpointOptions {
                guard: GuardConfig {
                    allow_http: false,
                    ..opening(OPEN)
                },
                ..good.clone()
            },
        ),
        (
            "allow_networks",
            EndpointOptions {
                url: format!("http://{FORBIDDEN}/"),
                ..good.clone()
            },
        ),
        (
            "extra_ca",
            EndpointOptions {
                extra_ca: vec![b"no certificate".to_vec()],
                ..good.clone()
            },
        ),
    ];
    for (word, config) in wrong {
        let error = open(&config).await.unwrap_err();
        let EndpointOpenError::Configuration(text) = &error else {
            panic!("{error}");
        };
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(server.requests().len(), 0);

    let mut away = EndpointOptions {
        dimensions: None,
        ..good
    };
    away.url = away.url.replace(HOST, "gone.example.com");
    let error = open(&away).await.unwrap_err();
    assert!(
        matches!(error, EndpointOpenError::Trial(EmbedError::Unavailable(_))),
        "{error}"
    );
}
