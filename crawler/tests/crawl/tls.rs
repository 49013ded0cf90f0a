//! TLS: trusted certificates, and the errors for others.

use std::time::Duration;

use a2a_crawler::AttemptOutcome::{Timeout, TlsInvalid};
use a2a_crawler::fetch::{FetchError, FetchLimits, FetcherConfig, GetOptions, HttpResponse};
use tokio::net::TcpListener;

use crate::support::{
    Authority, HOST, Identity, OPEN, ScriptedReply, Server, config, fetcher_with, resolver,
    short_limits,
};

async fn get(identity: &Identity, trusted: &[Vec<u8>]) -> Result<HttpResponse, FetchError> {
    let server = Server::with_tls(identity, ScriptedReply::json("{}")).await;
    let config = FetcherConfig {
        extra_ca: trusted.to_vec(),
        ..config(FetchLimits::default())
    };
    let fetcher = fetcher_with(config, resolver());
    fetcher
        .get(&server.url("/"), &GetOptions::default())
        .await
        .result
}

#[tokio::test]
async fn the_operators_roots_are_trusted_in_both_forms() {
    let authority = Authority::new("the operator");
    let identity = authority.identity(HOST);
    for trusted in [authority.pem(), authority.der()] {
        let answer = get(&identity, &[trusted]).await.unwrap();
        assert!(answer.over_tls);
        assert_eq!(answer.status, 200);
    }
}

/// Input 109.
#[tokio::test]
async fn invalid_certificates_are_named() {
    let authority = Authority::new("the operator");
    let trusted = [authority.pem()];
    for (identity, word) in [
        (authority.expired_identity(HOST), "expired"),
        (authority.identity("other.example.com"), "another name"),
        (
            Authority::new("a stranger").identity(HOST),
            "not signed by an authority",
        ),
    ] {
        let error = get(&identity, &trusted).await.unwrap_err();
        assert_eq!(error.outcome, TlsInvalid);
        assert!(error.detail.contains(word), "{error}");
    }
}

#[tokio::test]
async fn a_port_without_tls_is_named() {
    let talker = TcpListener::bind((OPEN, 0)).await.unwrap();
    let port = talker.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = talker.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"220 mail ready\r\n")
            .await
            .unwrap();
        let mut rest = Vec::new();
        let _read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
    });
    let url = format!("https://{HOST}:{port}/").parse().unwrap();
    let fetcher = fetcher_with(config(short_limits()), resolver());
    let error = fetcher
        .get(&url, &GetOptions::default())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, TlsInvalid, "{error}");
    task.await.unwrap();
}

/// Input 108.
#[tokio::test]
async fn a_stalled_handshake_ends_with_the_connect_limit() {
    let silent = TcpListener::bind((OPEN, 0)).await.unwrap();
    let url = format!("https://{HOST}:{}/", silent.local_addr().unwrap().port())
        .parse()
        .unwrap();
    let limits = FetchLimits {
        // The unused time of the DNS query is not added to the handshake's.
        dns: Duration::from_secs(60),
        total: Duration::from_secs(60),
        connect: Duration::from_millis(200),
        // If the handshake counted as waiting for the response, this limit would end it with another message.
        first_byte: Duration::from_millis(1),
        ..FetchLimits::default()
    };
    let error = fetcher_with(config(limits), resolver())
        .get(&url, &GetOptions::default())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, Timeout);
    assert!(error.detail.contains("no connection"), "{error}");
}

#[tokio::test]
async fn an_unreadable_root_is_an_error_at_the_start() {
    for file in [
        &b"-----BEGIN CERTIFICATE-----\nAAAA"[..],
        b"-----BEGIN NOTHING-----\n-----END NOTHING-----\n",
        b"nonsense",
        b"",
    ] {
        let config = FetcherConfig {
            extra_ca: vec![file.to_vec()],
            ..config(FetchLimits::default())
        };
        let made = a2a_crawler::fetch::Fetcher::new(
            config,
            resolver(),
            std::sync::Arc::new(a2a_crawler::SystemClock),
        );
        assert!(made.is_err(), "{file:?}");
    }
}
