//! Tests of large responses and clients that do not read them, over real sockets.

use std::net::IpAddr;

use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_search::AgentDocument;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use uuid::Uuid;

use crate::tests::Registry;
use crate::tests::events::{LIMIT, Served, serve};

/// Size of a hit that does not fit into any socket buffer.
const LARGE: usize = 16 * 1024 * 1024;

/// Adds agents with hits of `bytes` bytes to the index.
fn index_agents(registry: &Registry, count: u128, bytes: usize) {
    let agents = (1..=count).map(|number| AgentDocument {
        id: Uuid::from_u128(number),
        hit: format!("{{\"id\":{number},\"x\":\"{}\"}}", "x".repeat(bytes)).into_bytes(),
        name: format!("Agent {number:03}"),
        description: "flight ".repeat(usize::try_from(number % 7 + 1).unwrap()),
        facets: FacetMap::from([
            (Facet::Lifecycle, vec!["approved".to_owned()]),
            (Facet::Liveness, vec!["fresh".to_owned()]),
        ]),
        visible_to: vec!["public".to_owned()],
        ..AgentDocument::default()
    });
    let mut rebuild = registry.context().index.begin_rebuild().unwrap();
    rebuild.add_agents(agents.collect()).unwrap();
    rebuild.finish(1).unwrap();
}

/// Requests a page from this address and reads only the head of the response.
async fn head_of(served: &Served, from: [u8; 4], query: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((IpAddr::from(from), 0).into()).unwrap();
    let mut stream = socket.connect(served.address).await.unwrap();
    let request = format!(
        "GET /v1/agents?{query} HTTP/1.1\r\nhost: {}\r\n\r\n",
        served.address
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(LIMIT, stream.read_u8()).await;
        head.push(byte.unwrap().unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

fn status(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

#[actix_web::test]
async fn slow_readers_of_one_address_hold_a_bounded_number_of_bytes() {
    let registry = Registry::with(|config| {
        config.limits.unread_megabytes_per_address = 40;
        config.search.cache_megabytes = 256;
    })
    .await;
    index_agents(&registry, 1, LARGE);
    let served = serve(&registry);
    let local = [127, 0, 0, 1];
    let (first, head) = head_of(&served, local, "page_size=1").await;
    assert_eq!(status(&head), "200", "{head}");
    // Cached bytes are held once, regardless of the number of readers.
    let mut shared = Vec::new();
    for _ in 0..8 {
        let (stream, head) = head_of(&served, local, "page_size=1").await;
        assert_eq!(status(&head), "200", "{head}");
        shared.push(stream);
    }
    let (second, head) = head_of(&served, local, "page_size=2").await;
    assert_eq!(status(&head), "200", "{head}");
    let (_, head) = head_of(&served, local, "page_size=3").await;
    assert_eq!(status(&head), "429", "{head}");
    assert!(head.to_lowercase().contains("retry-after: 5\r\n"), "{head}");
    // Small responses, and large responses to others, are still served.
    let (_, head) = head_of(&served, local, "q=nothing").await;
    assert_eq!(status(&head), "200", "{head}");
    let (_, head) = head_of(&served, [127, 0, 0, 2], "page_size=3").await;
    assert_eq!(status(&head), "200", "{head}");
    // Dropped responses free capacity.
    drop((first, shared, second));
    let again = async { while status(&head_of(&served, local, "page_size=4").await.1) != "200" {} };
    tokio::time::timeout(LIMIT, again).await.unwrap();
    served.stop().await;
}

#[actix_web::test]
async fn a_page_of_large_agents_ends_early_and_the_next_goes_on_there() {
    let registry = Registry::new().await;
    index_agents(&registry, 60, 100_000);
    for query in ["sort=name", "q=flight", "q=flight&group=content"] {
        let mut ids = Vec::new();
        let mut next = String::new();
        loop {
            let path = format!("/v1/agents?page_size=100&{query}{next}");
            let answer = registry.get(&path).await;
            assert_eq!(answer.status, 200);
            assert!(answer.body.len() < 2_200_000, "{} bytes", answer.body.len());
            let list = answer.json();
            assert_eq!(list["total"], 60, "{query}");
            let agents = list["agents"].as_array().unwrap();
            assert!(!agents.is_empty(), "{query}");
            ids.extend(agents.iter().map(|agent| agent["id"].as_u64().unwrap()));
            match &list["next_page_token"] {
                Value::String(token) => next = format!("&page_token={token}"),
                _ => break,
            }
        }
        assert_eq!(ids.len(), 60, "{query}");
        ids.sort_unstable();
        assert_eq!(ids, (1..=60).collect::<Vec<u64>>(), "{query}");
    }
}
