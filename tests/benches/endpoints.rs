//! Endpoint checks of agents on this machine: how fast addresses are assigned, and checks made and stored.
//!
//! `BENCH_ENDPOINTS` (10000) agents answer on one thread of this process, eight on each host name. The processor time
//! of a check includes the agent's answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use a2a_registry_core::config::CheckEndpoints;
use a2a_registry_core::endpoints::assignment::advance_endpoint_assignments;
use a2a_registry_core::endpoints::job::start_endpoint_checks;
use a2a_registry_store::operating_counts::count_agents_by_endpoint;
use sea_orm::ConnectionTrait as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::bench_registry::{BenchRegistry, SUFFIX};
use super::loopback_resolver::LoopbackResolver;
use super::report::{cpu_of_process, print_figure, size_from_env};

/// Agents on one host name: as many as one lease asks.
const AGENTS_PER_HOST: usize = 8;
const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#;

pub async fn run() {
    let hosts = size_from_env("BENCH_ENDPOINTS", 10_000) / AGENTS_PER_HOST;
    let agents = hosts * AGENTS_PER_HOST;
    let port = start_agents();
    let folder = tempfile::tempdir().unwrap();
    let (stock, _) = BenchRegistry::open(folder.path(), Arc::new(LoopbackResolver), |config| {
        config.crawler.check_endpoints = CheckEndpoints::Vouched;
    })
    .await;
    stock.add_sources(hosts, AGENTS_PER_HOST, port).await;
    stock.fill(|number| card(number, port)).await;
    let database = stock.database().await;
    let vouch = "INSERT INTO endpoint_permissions \
         (domain_id, checks_off, vouched_generation, vouched_by, vouched_at, vouched_reason) \
         SELECT id, FALSE, generation, 'bench', 1, 'bench' FROM domains";
    database.execute_unprepared(vouch).await.unwrap();
    database.close().await.unwrap();

    println!("\nendpoint checks of {agents} agents on {hosts} hosts");
    let (began, cpu) = (Instant::now(), cpu_of_process().unwrap());
    while advance_endpoint_assignments(&stock.app).await.unwrap() {}
    print_rates("assigned", agents, began.elapsed(), cpu);

    let (began, cpu) = (Instant::now(), cpu_of_process().unwrap());
    let cancel = CancellationToken::new();
    let job = start_endpoint_checks(&stock.app, &cancel);
    while answering(&stock).await < agents {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    print_rates("checked", agents, began.elapsed(), cpu);
    cancel.cancel();
    job.await.unwrap();
    stock.close().await;
}

fn print_rates(what: &str, agents: usize, elapsed: Duration, cpu_before: Duration) {
    let cpu = cpu_of_process().unwrap() - cpu_before;
    let rate = agents as f64 / elapsed.as_secs_f64();
    let each = cpu.as_secs_f64() * 1e3 / agents as f64;
    print_figure(&format!("{what} a second"), format!("{rate:.0}"));
    print_figure("  processor time of each, ms", format!("{each:.3}"));
}

async fn answering(stock: &BenchRegistry) -> usize {
    let counts = count_agents_by_endpoint(&stock.app.store, 1_000_000)
        .await
        .unwrap();
    let answers = counts.iter().find(|(state, _)| state == "answers");
    answers.map_or(0, |(_, count)| *count as usize)
}

fn card(number: u64, port: u16) -> Vec<u8> {
    let host = number as usize / AGENTS_PER_HOST;
    let card = json!({
        "name": format!("Agent {number}"),
        "description": "Answers on this machine.",
        "version": "1.0.0",
        "supportedInterfaces": [{
            "url": format!("http://d{host}.{SUFFIX}:{port}/rpc/{number}"),
            "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0",
        }],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Skill", "description": "None.", "tags": ["t"]}],
    });
    card.to_string().into_bytes()
}

/// Starts the agents on a thread of their own, which ends with the process; returns their port.
pub(super) fn start_agents() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer_requests(stream));
            }
        });
    });
    port
}

/// Answers every request on a connection; a check's request is small and arrives at once or in two parts.
async fn answer_requests(mut stream: TcpStream) {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    );
    let mut received = Vec::new();
    loop {
        while !received.ends_with(b"}") {
            if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return;
            }
        }
        received.clear();
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
