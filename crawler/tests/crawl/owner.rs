//! Parts of a domain fingerprint: name servers, and the key of the TLS certificate.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::AttemptOutcome::{Refused, TlsInvalid};
use a2a_crawler::dns::{DnsError, MAX_NAME_SERVERS};
use a2a_crawler::fetch::{FetchLimits, FetcherConfig};
use data_encoding::BASE64URL_NOPAD;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use ring::digest::{SHA256, digest};

use crate::support::{
    Authority, Canary, HOST, NameServer, ScriptedReply, Server, Zone, alias, config, fetcher,
    fetcher_with, name_server, resolver,
};

/// DNS response according to the zone.
fn zone(name: &str, kind: RecordType) -> Option<Zone> {
    assert_eq!(kind, RecordType::NS, "{name}");
    let many = |count: usize| {
        (0..count)
            .map(|number| name_server(&format!("ns{number}.example.net")))
            .collect()
    };
    Some(match name {
        "example.com" => Zone::of(vec![
            name_server("NS2.Example.net"),
            name_server("ns1.example.net"),
            name_server("ns2.example.net"),
        ]),
        "alias.com" => Zone::of(vec![alias("example.com"), name_server("ns1.example.net")]),
        "most.com" => Zone::of(many(MAX_NAME_SERVERS)),
        "beyond.com" => Zone::of(many(MAX_NAME_SERVERS + 1)),
        "broken.com" => Zone::code(ResponseCode::ServFail),
        "silent.com" => return None,
        "nothing.com" => Zone::of(Vec::new()),
        "nowhere.com" => Zone::code(ResponseCode::NXDomain),
        other => panic!("{other} was asked, which is no registrable domain"),
    })
}

#[tokio::test]
async fn name_servers_are_those_of_the_registrable_domain() {
    let server = NameServer::start(zone).await;
    let resolver = server.hasty_resolver(Duration::from_millis(500));
    let fetcher = fetcher_with(config(FetchLimits::default()), Arc::new(resolver));
    let both = ["ns1.example.net", "ns2.example.net"];
    for host in ["example.com", "a.example.com", "a.b.c.example.com"] {
        assert_eq!(
            fetcher.lookup_name_servers(host).await.unwrap(),
            both,
            "{host}"
        );
    }
    assert_eq!(
        fetcher.lookup_name_servers("alias.com").await.unwrap(),
        both[..1]
    );
    let most = fetcher.lookup_name_servers("most.com").await.unwrap();
    assert_eq!(most.len(), MAX_NAME_SERVERS);
    for absent in ["nothing.com", "nowhere.com"] {
        let answer = fetcher.lookup_name_servers(absent).await;
        assert_eq!(answer, Err(DnsError::NoSuchHost), "{absent}");
    }
    for failing in ["beyond.com", "broken.com", "silent.com"] {
        let answer = fetcher.lookup_name_servers(failing).await;
        assert!(matches!(answer, Err(DnsError::Failure(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn the_tls_key_is_the_digest_of_the_certificates_key() {
    let authority = Authority::new("an owner's");
    let trusting = FetcherConfig {
        extra_ca: vec![authority.pem()],
        ..config(FetchLimits::default())
    };
    let fetcher = fetcher_with(trusting, resolver());
    let mut seen = Vec::new();
    for _ in 0..2 {
        let identity = authority.identity(HOST);
        // The fingerprint does not need the body, which never ends here.
        let endless = ScriptedReply::json("{").then_hang();
        let server = Server::with_tls(&identity, endless).await;
        let key = fetcher
            .fetch_tls_key_hash(&server.url("/elsewhere"))
            .await
            .unwrap();
        let expected = digest(&SHA256, &identity.public_key());
        assert_eq!(key, BASE64URL_NOPAD.encode(expected.as_ref()));
        assert_eq!(server.requests()[0].path, "/.well-known/agent-card.json");
        seen.push(key);
    }
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test]
async fn no_key_is_told_without_valid_tls_and_none_beyond_the_guard() {
    let stranger = Authority::new("a stranger to keys").identity(HOST);
    let server = Server::with_tls(&stranger, ScriptedReply::json("{}")).await;
    let error = fetcher()
        .fetch_tls_key_hash(&server.url("/"))
        .await
        .unwrap_err();
    assert_eq!(error.outcome, TlsInvalid, "{error}");
    assert!(server.requests().is_empty());

    let plain = Server::always(ScriptedReply::json("{}")).await;
    let error = fetcher()
        .fetch_tls_key_hash(&plain.url("/"))
        .await
        .unwrap_err();
    assert_eq!(error.outcome, TlsInvalid, "{error}");

    let canary = Canary::new();
    let url = format!("https://{}/", canary.at).parse().unwrap();
    let error = fetcher().fetch_tls_key_hash(&url).await.unwrap_err();
    assert_eq!(error.outcome, Refused, "{error}");
    canary.assert_untouched();
}
