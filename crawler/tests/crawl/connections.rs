//! The connections of a visit: how many there are, and when they close.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::fetch::{FetchLimits, Fetcher, GetOptions};
use url::Url;

use crate::support::{HOST, OPEN, ScriptedReply, Server, StaticResolver, config, fetcher_with};

/// Another host of the same site.
const OTHER: &str = "keys.example.com";

/// A fetcher whose idle connections, outside of visits, stay open for longer than any test takes.
fn patient_fetcher() -> Fetcher {
    let limits = FetchLimits {
        idle_timeout: Duration::from_secs(24 * 3600),
        ..FetchLimits::default()
    };
    let resolver = StaticResolver::new();
    for host in [HOST, OTHER] {
        resolver.set(host, [IpAddr::V4(OPEN)]);
    }
    fetcher_with(config(limits), Arc::new(resolver))
}

async fn get(fetcher: &Fetcher, url: &Url) {
    let fetched = fetcher.get(url, &GetOptions::default()).await;
    assert_eq!(fetched.result.unwrap().status, 200);
}

#[tokio::test]
async fn a_visit_has_one_connection_to_its_host_and_closes_it_at_its_end() {
    let server = Server::always(ScriptedReply::json("{}")).await;
    let shared = patient_fetcher();
    for visit in 1..=3 {
        let fetcher = shared.for_visit(&server.url("/"));
        for source in 0..8 {
            get(&fetcher, &server.url(&format!("/{source}"))).await;
        }
        assert_eq!(server.connections().accepted, visit);
        assert_eq!(server.connections().open, 1);
        drop(fetcher);
        server.connections_are(|now| now.open == 0).await;
    }
}

/// Key sets, signers and redirects may lead to many hosts, each with few requests.
#[tokio::test]
async fn a_connection_to_another_host_closes_after_its_response() {
    let own = Server::always(ScriptedReply::json("{}")).await;
    let other = Server::always(ScriptedReply::json("{}")).await;
    let fetcher = patient_fetcher().for_visit(&own.url("/"));
    for visits in 1..=3 {
        get(&fetcher, &own.url("/")).await;
        get(&fetcher, &other.url_of(OTHER, "/keys.json")).await;
        let closed = other.connections_are(|now| now.open == 0).await;
        assert_eq!(closed.accepted, visits);
    }
    assert_eq!(own.connections().accepted, 1);
    assert_eq!(own.connections().open, 1);
}

/// Identity providers, peers and encoders receive many requests, so their connections stay open.
#[tokio::test]
async fn outside_of_visits_connections_stay_open() {
    let server = Server::always(ScriptedReply::json("{}")).await;
    let shared = patient_fetcher();
    for _ in 0..3 {
        get(&shared, &server.url("/")).await;
    }
    assert_eq!(server.connections().accepted, 1);
    assert_eq!(server.connections().open, 1);
}
