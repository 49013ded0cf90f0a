//! Searches over the other protocols, against `/v1/agents` with other new queries; and searches that query a peer that
//! is down, against the same without a peer.
//!
//! `BENCH_AGENTS` (100000) agents are generated and ingested first. `BENCH_QUERIES` (1000) is the number of distinct
//! queries per run, and `BENCH_PAIRS` (5) the number of runs of each side, taken in turns. `BENCH_DOORS` measures only
//! the protocols whose name contains it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::protocol_versions;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_server::jobs::{self, JobOptions};
use serde_json::json;

use super::bench_registry::BenchRegistry;
use super::generator::CardGenerator;
use super::load::{Load, LoadResult};
use super::report::{median, print_comparison, print_header, size_from_env};

/// Words per query, as in the bench of searches.
const WORDS: usize = 3;
/// Agents of a page, on both sides.
const PAGE: usize = 20;

/// The complete request for a query.
type BuildRequest = fn(SocketAddr, &str) -> Vec<u8>;

/// A door: its name, its request and the one that it is measured against, and the least share of that one's rate.
type SurfaceComparison = (&'static str, [BuildRequest; 2], Option<f64>);

const DOORS: [SurfaceComparison; 4] = [
    ("ARD search", [ard, plain], Some(0.9)),
    ("MCP search_agents", [mcp, plain], Some(0.7)),
    ("A2A find", [a2a, plain], Some(0.7)),
    (
        "ARD search with a dead peer, against without",
        [federated, ard],
        None,
    ),
];

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 100_000);
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let stock = BenchRegistry::with_peer("http://127.0.0.1:9/ard").await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    // As the proof of a domain gives them.
    stock.name_agents().await;
    rebuild_index(&stock.app, || false).await.unwrap();
    let options = JobOptions {
        crawl: false,
        ..JobOptions::default()
    };
    let jobs = jobs::start_jobs(&stock.app, options);
    let (address, shutdown) = stock.serve().unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    print_header(
        &format!(
            "new searches of {agents} agents, {} connections; bare: what the name says, else /v1/agents",
            cores * 4
        ),
        "queries/s",
    );
    let mut used = 0;
    let chosen = std::env::var("BENCH_DOORS").unwrap_or_default();
    for door in DOORS.iter().filter(|door| door.0.contains(&chosen)) {
        measure(
            *door,
            |count| {
                let first = used;
                used += count;
                (first..used)
                    .map(|index| generator.query(index as u64, WORDS))
                    .collect()
            },
            address,
        );
    }
    shutdown.cancel();
    jobs.stop().await;
    stock.close().await;
}

/// Measures a door and what it is compared with in turns, each run with queries that nobody has asked before: doors that show
/// the same answer keep it for one another.
fn measure(
    (name, [request, compared], target): SurfaceComparison,
    mut take: impl FnMut(usize) -> Vec<String>,
    address: SocketAddr,
) {
    let count = size_from_env("BENCH_QUERIES", 1_000);
    let pairs = size_from_env("BENCH_PAIRS", 5);
    let pairs: Vec<[LoadResult; 2]> = (0..pairs)
        .map(|pair| {
            let mut all = |request: BuildRequest| {
                let words = take(count);
                let requests = words.iter().map(|words| request(address, words));
                run_load(address, requests.collect())
            };
            // Whichever comes second finds the pages of the index in memory.
            match pair % 2 {
                0 => {
                    let compared = all(compared);
                    [all(request), compared]
                }
                _ => [all(request), all(compared)],
            }
        })
        .collect();
    let of = |side: usize| median(pairs.iter().map(|pair| pair[side].rate).collect());
    let ratio = median(pairs.iter().map(|[a, b]| a.rate / b.rate).collect());
    print_comparison(name, of(0), of(1), ratio, target);
    let of = |side: usize| median(pairs.iter().map(|pair| pair[side].cpu_us).collect());
    let ratio = median(pairs.iter().map(|[a, b]| b.cpu_us / a.cpu_us).collect());
    print_comparison(
        &format!("{name}, processor time, us"),
        of(0),
        of(1),
        ratio,
        None,
    );
}

fn run_load(address: SocketAddr, requests: Vec<Vec<u8>>) -> LoadResult {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut load = Load::new(address, &[], "", "200");
    load.connections = cores * 4;
    load.most = requests.len();
    load.time = Duration::from_secs(20);
    load.requests = Arc::new(requests);
    load.run().unwrap()
}

/// The request of `/v1/agents`.
fn plain(address: SocketAddr, words: &str) -> Vec<u8> {
    let query = words.replace(' ', "+");
    format!("GET /v1/agents?q={query}&page_size={PAGE} HTTP/1.1\r\nHost: {address}\r\n\r\n")
        .into_bytes()
}

/// A POST of JSON with these further headers.
fn post(address: SocketAddr, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A search over ARD, here alone.
fn ard(address: SocketAddr, words: &str) -> Vec<u8> {
    let body = json!({"query": {"text": words}, "pageSize": PAGE, "federation": "none"});
    post(address, "/ard/search", "", &body.to_string())
}

/// A search over ARD that asks the peer too.
fn federated(address: SocketAddr, words: &str) -> Vec<u8> {
    let body = json!({"query": {"text": words}, "pageSize": PAGE, "federation": "auto"});
    post(address, "/ard/search", "", &body.to_string())
}

/// A message to the registry as an agent.
fn a2a(address: SocketAddr, words: &str) -> Vec<u8> {
    let request = json!({"query": {"text": words}, "pageSize": PAGE});
    let message = json!({"messageId": "1", "role": "ROLE_USER", "parts": [{"data": request}]});
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    post(address, "/a2a", "A2A-Version: 1.0\r\n", &call.to_string())
}

/// The call of `search_agents`.
fn mcp(address: SocketAddr, words: &str) -> Vec<u8> {
    let [revision, ..] = protocol_versions::MCP_VERSIONS;
    let message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "search_agents",
            "arguments": {"text": words, "page_size": PAGE},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
    .to_string();
    let headers = format!(
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {revision}\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: search_agents\r\n"
    );
    post(address, "/mcp", &headers, &message)
}
