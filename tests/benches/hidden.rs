//! Hidden and missing: the response times for agents and domains that a caller may not see, beside those for agents
//! and domains that do not exist, over HTTP and one connection.
//!
//! `BENCH_AGENTS` (2000) agents are generated, one a domain; every other one is hidden. `BENCH_PROBES` (1000) requests
//! of each side are taken in turns. The bench prints both medians, their ratio, and how often the time of one probe
//! tells the side.

use std::time::Instant;

use a2a_registry_core::search::indexing::{apply_next_events, rebuild_index};
use reqwest::Client;
use sea_orm::{ConnectionTrait as _, Statement};
use uuid::Uuid;

use super::bench_registry::{BenchRegistry, SUFFIX};
use super::generator::CardGenerator;
use super::report::{median, print_comparison, print_figure, print_header, size_from_env};

/// The addresses that are probed: `{id}` is an identifier, `{urn}` a URN and `{host}` a domain.
const PATHS: [&str; 10] = [
    "/v1/domains/{host}",
    "/v1/agents/{id}",
    "/v1/agents/{urn}",
    "/v1/agents/{id}/card",
    "/v1/agents/{urn}/card",
    "/v1/agents/{id}/similar",
    "/v1/agents/{urn}/similar",
    "/v1/agents/{id}/versions",
    "/agents/{urn}/",
    "/agents/{urn}/.well-known/agent-card.json",
];

/// What stands for an agent in an address.
struct AgentNames {
    id: String,
    urn: String,
    host: String,
}

impl AgentNames {
    fn path(&self, path: &str) -> String {
        path.replace("{id}", &self.id)
            .replace("{urn}", &self.urn)
            .replace("{host}", &self.host)
    }
}

/// Hides every other agent, and returns the names of those.
async fn hide_half(stock: &BenchRegistry) -> Vec<AgentNames> {
    let database = stock.database().await;
    let backend = database.get_database_backend();
    let hide = "UPDATE agents SET visibility = 'restricted' WHERE domain_id % 2 = 0";
    database.execute_unprepared(hide).await.unwrap();
    let hidden = "SELECT id, urn, domain FROM agents WHERE domain_id % 2 = 0 ORDER BY id";
    let rows = database
        .query_all_raw(Statement::from_string(backend, hidden))
        .await
        .unwrap();
    let names = rows.iter().map(|row| {
        let id: Uuid = row.try_get("", "id").unwrap();
        AgentNames {
            id: id.to_string(),
            urn: row.try_get("", "urn").unwrap(),
            host: row.try_get("", "domain").unwrap(),
        }
    });
    let names = names.collect();
    database.close().await.unwrap();
    names
}

/// The names of an agent that does not exist, in the form of those that do.
fn missing(number: usize) -> AgentNames {
    let id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + number as u128);
    AgentNames {
        id: id.to_string(),
        urn: format!("urn:air:m{number}.{SUFFIX}.80:agents:{}", id.simple()),
        host: format!("m{number}.{SUFFIX}:80"),
    }
}

/// Microseconds until an answer is read.
async fn probe(client: &Client, base: &str, path: &str) -> f64 {
    let began = Instant::now();
    let answer = client.get(format!("{base}{path}")).send().await.unwrap();
    assert_eq!(answer.status(), 404, "{path}");
    answer.bytes().await.unwrap();
    began.elapsed().as_secs_f64() * 1_000_000.0
}

/// The greatest part of probes that one bound between both sides judges right.
fn best_guess_rate(one: &[f64], other: &[f64]) -> f64 {
    let mut bounds: Vec<f64> = one.iter().chain(other).copied().collect();
    bounds.sort_by(f64::total_cmp);
    let right = bounds.iter().map(|bound| {
        let above = one.iter().filter(|time| *time > bound).count();
        let below = other.iter().filter(|time| *time <= bound).count();
        let part = (above + below) as f64 / (one.len() + other.len()) as f64;
        part.max(1.0 - part)
    });
    right.fold(0.5, f64::max)
}

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 2_000);
    let probes = size_from_env("BENCH_PROBES", 1_000);
    let stock = BenchRegistry::new().await;
    let generator = CardGenerator::new(1);
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|number| generator.card(number)).await;
    stock.name_agents().await;
    let hidden = hide_half(&stock).await;
    rebuild_index(&stock.app, || false).await.unwrap();
    while apply_next_events(&stock.app).await.unwrap() {}
    let (address, shutdown) = stock.serve().unwrap();
    let base = format!("http://{address}");
    let client = Client::new();
    for path in PATHS {
        let (mut of_hidden, mut of_missing) = (Vec::new(), Vec::new());
        for number in 0..probes {
            let names = &hidden[number % hidden.len()];
            of_hidden.push(probe(&client, &base, &names.path(path)).await);
            let nobody = missing(number);
            of_missing.push(probe(&client, &base, &nobody.path(path)).await);
        }
        let right = best_guess_rate(&of_hidden, &of_missing);
        let (ours, bare) = (median(of_hidden), median(of_missing));
        print_header(path, "microseconds; hidden and missing");
        print_comparison("median", ours, bare, ours / bare, None);
        print_figure(
            "one probe is judged right",
            format!("{:.0} of 100", right * 100.0),
        );
    }
    shutdown.cancel();
}
