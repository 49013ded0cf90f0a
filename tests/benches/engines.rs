//! The top ten hits of a search with the total and the facet of tags: the registry through HTTP, and SQLite's FTS5 and
//! PostgreSQL's full-text search called directly, all over the texts of the same cards.
//!
//! There are `BENCH_AGENTS` (100000) agents and `BENCH_QUERIES` (300) different queries for each engine and load; each
//! load runs for at most `BENCH_SECONDS` (30). PostgreSQL is the server that `A2A_REGISTRY_TEST_POSTGRES` names;
//! without one it is skipped, with a printed line.

use std::time::{Duration, Instant};

use a2a_registry_core::search::indexing::rebuild_index;

use super::bench_registry::BenchRegistry;
use super::generator::CardGenerator;
use super::load::Load;
use super::report::size_from_env;

/// Words per query, joined by OR.
const WORDS: usize = 3;

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 100_000);
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let stock = BenchRegistry::new().await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    rebuild_index(&stock.app, || false).await.unwrap();
    let (address, shutdown) = stock.serve().unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);

    println!("\n{agents} agents, top ten of three words, with the total and the facet of tags");
    println!(
        "{:<22} {:>11} {:>10} {:>10} {:>10} {:>9}",
        "", "connections", "searches/s", "p50, ms", "p99, ms", "slower"
    );
    let count = size_from_env("BENCH_QUERIES", 300);
    let queries = |number: usize| -> Vec<String> {
        (0..count)
            .map(|index| generator.query((number * count + index) as u64, WORDS))
            .collect()
    };
    let ours = |connections: usize, words: &[String]| {
        let paths: Vec<String> = words
            .iter()
            .map(|words| {
                format!(
                    "/v1/agents?page_size=10&facets=tag&q={}",
                    words.replace(' ', "+")
                )
            })
            .collect();
        let mut load = Load::new(address, &paths, "", "200");
        load.connections = connections;
        load.most = paths.len();
        load.time = Duration::from_secs(size_from_env("BENCH_SECONDS", 30) as u64);
        load.run().unwrap()
    };
    let mut own = Vec::new();
    for (number, connections) in [1, cores * 4].into_iter().enumerate() {
        let measured = ours(connections, &queries(number));
        own.push(measured.rate);
        row(
            "registry",
            connections,
            measured.rate,
            [measured.percentile(0.5), measured.percentile(0.99)],
            None,
        );
    }
    shutdown.cancel();

    let folder = tempfile::tempdir().unwrap();
    let mut engines = vec![super::full_text::fts5(folder.path(), cores).await];
    match std::env::var("A2A_REGISTRY_TEST_POSTGRES") {
        Ok(server) => engines.push(super::full_text::postgres(&server, cores).await),
        Err(_) => println!("SKIPPED: A2A_REGISTRY_TEST_POSTGRES names no server"),
    }
    for engine in &engines {
        let began = Instant::now();
        engine.fill(agents, |index| generator.card(index)).await;
        println!(
            "{} filled in {:.0} s",
            engine.name,
            began.elapsed().as_secs_f64()
        );
        for (number, connections) in [1, engine.connections].into_iter().enumerate() {
            let measured = engine.run_load(connections, queries(number)).await;
            let times = [measured.percentile(0.5), measured.percentile(0.99)];
            row(
                engine.name,
                connections,
                measured.rate,
                times,
                Some(own[number] / measured.rate),
            );
        }
        engine.empty().await;
    }
    stock.close().await;
}

fn row(name: &str, connections: usize, rate: f64, [half, most]: [f64; 2], slower: Option<f64>) {
    let slower = slower.map_or_else(String::new, |times| {
        let mark = if times < 10.0 { " missed" } else { "" };
        format!("{times:.1}x{mark}")
    });
    println!("{name:<22} {connections:>11} {rate:>10.1} {half:>10.2} {most:>10.2} {slower:>9}");
}
