//! Semantic search with generated vectors: the scan over all agents alone, and whole searches beside full-text ones.
//!
//! `BENCH_AGENTS` (1000000) agents of four vectors are scanned, `BENCH_QUERIES` (200) times; `BENCH_HYBRID` (100000)
//! agents are ingested for whole searches. Vectors have `BENCH_DIMENSIONS` (384) numbers; no model is needed, because
//! the speed of a search does not depend on the values. Encoding is measured with the model in the folder
//! `A2A_REGISTRY_TEST_MODEL`, else with the built-in one; the agents of a registry of `BENCH_CARDS` (1000) cards are
//! embedded with it during searches.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::embeddings::model_indexer::{
    EmbeddingStepResult, open_model_indexer, run_embedding_step,
};
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_embed::{EmbedError, Embedder, LocalEncoder, ModelIdentity, TextKind};
use a2a_registry_search::vectors::{
    AgentVectors, MAX_CODES, MAX_NEAREST, SlotBitSet, VectorChange, VectorStore,
};
use async_trait::async_trait;
use uuid::Uuid;

use super::bench_registry::BenchRegistry;
use super::generator::CardGenerator;
use super::load::{Load, LoadResult};
use super::report::{median, print_comparison, print_figure, print_header, size_from_env};

/// Agents whose vectors are stored together.
const GROUP: usize = 1000;
/// Words per query; with fewer, full text comes before semantic results.
const WORDS: usize = 4;

pub async fn run() {
    // The scan comes first: memory that other benches free later would be subtracted from its figure.
    scan(
        size_from_env("BENCH_AGENTS", 1_000_000),
        size_from_env("BENCH_DIMENSIONS", 384),
    );
    encode().await;
    hybrid(
        size_from_env("BENCH_HYBRID", 100_000),
        size_from_env("BENCH_DIMENSIONS", 384),
    )
    .await;
}

/// A vector of unit length that depends on the seed alone.
fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let values: Vec<f32> = (0..dimensions)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.into_iter().map(|value| value / length).collect()
}

/// Measures the latency of encoding a query, alone and while cards are encoded, and the rate of encoding cards.
async fn encode() {
    println!();
    let encoder = super::bench_encoder::open_encoder();
    // Thirty words of one token each; the encoder adds a first and a last token.
    let words = "find an agent that book flight to the city with hotel ticket weather forecast translation text language \
                 invoice payment bank money news test document image music order customer support help";
    let words: Vec<&str> = words.split(' ').collect();
    let query = |index: usize| {
        let mut words = words.clone();
        let first = index % words.len();
        words.rotate_left(first);
        words.join(" ")
    };
    let count = size_from_env("BENCH_QUERIES", 200);
    let times = query_times(&encoder, count, query).await;
    print_latencies(
        "query of 32 tokens, one thread, ms",
        "p50 (target 5)",
        &times,
    );
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let text = (0..64)
        .map(|index| generator.query(index, 90))
        .collect::<Vec<_>>();
    let began = Instant::now();
    for some in text.chunks(32) {
        encoder.embed(some.to_vec(), TextKind::Card).await.unwrap();
    }
    let rate = text.len() as f64 / began.elapsed().as_secs_f64();
    print_figure(
        "texts of 90 words per second, one thread",
        format!("{rate:.1}"),
    );
    cards(&encoder, &generator, query).await;
}

/// Measures the rate at which a registry embeds its agents, and the latency of searches and queries meanwhile.
async fn cards(
    encoder: &Arc<LocalEncoder>,
    generator: &CardGenerator,
    query: impl Fn(usize) -> String,
) {
    let agents = size_from_env("BENCH_CARDS", 1000);
    let stock = BenchRegistry::new().await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    rebuild_index(&stock.app, || false).await.unwrap();
    println!("\n{agents} cards");
    let count = size_from_env("BENCH_QUERIES", 200);
    let times = search_times(&stock.app, generator, 0..count).await;
    print_latencies("full-text search, ms", "p50", &times);
    let (app, model) = (Arc::clone(&stock.app), Arc::clone(encoder));
    let work = tokio::spawn(async move {
        let began = Instant::now();
        let mut embedding = open_model_indexer(&app, model).await.unwrap();
        while run_embedding_step(&app, &mut embedding).await.unwrap() != EmbeddingStepResult::Idle {
        }
        agents as f64 / began.elapsed().as_secs_f64()
    });
    let times = search_times(&stock.app, generator, count..2 * count).await;
    print_latencies("the same while cards are encoded, ms", "p50", &times);
    let times = query_times(encoder, count, query).await;
    print_latencies(
        "query of 32 tokens while cards are encoded, ms",
        "p50",
        &times,
    );
    assert!(
        !work.is_finished(),
        "embedding ended before the measurement: raise BENCH_CARDS"
    );
    print_figure(
        "cards per second, one thread",
        format!("{:.1}", work.await.unwrap()),
    );
    stock.close().await;
}

/// Latencies of full-text searches in the registry, made one after another; sorted.
async fn search_times(
    app: &AppContext,
    generator: &CardGenerator,
    queries: Range<usize>,
) -> Vec<f64> {
    let mut times = Vec::with_capacity(queries.len());
    for index in queries {
        let query = SearchQuery {
            q: Some(generator.query(index as u64, WORDS)),
            mode: Some("lexical".into()),
            ..SearchQuery::default()
        };
        let began = Instant::now();
        black_box(
            search_agents(app, &Caller::default(), &query)
                .await
                .unwrap(),
        );
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    times
}

async fn query_times(
    encoder: &LocalEncoder,
    count: usize,
    query: impl Fn(usize) -> String,
) -> Vec<f64> {
    let mut times = Vec::with_capacity(count);
    for index in 0..count {
        let began = Instant::now();
        let vectors = encoder
            .embed(vec![query(index)], TextKind::Query)
            .await
            .unwrap();
        black_box(vectors);
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Prints the median, under that label, and the 99th percentile of sorted times.
fn print_latencies(what: &str, middle: &str, times: &[f64]) {
    for (name, share) in [(middle, 0.50), ("p99", 0.99)] {
        let time = times[((times.len() - 1) as f64 * share) as usize];
        print_figure(&format!("{what}, {name}"), format!("{time:.2}"));
    }
}

fn scan(agents: usize, dimensions: usize) {
    let folder = tempfile::tempdir().unwrap();
    let before = memory();
    let vectors = VectorStore::create(folder.path(), dimensions).unwrap();
    for first in (0..agents).step_by(GROUP) {
        let changes: Vec<VectorChange> = (first..(first + GROUP).min(agents))
            .map(|agent| {
                let seed = (agent * MAX_CODES) as u64;
                let own: Vec<Vec<f32>> = (0..MAX_CODES as u64)
                    .map(|one| vector(seed + one, dimensions))
                    .collect();
                (
                    Uuid::from_u64_pair(7, agent as u64),
                    Some((1, AgentVectors::new(&own).unwrap())),
                )
            })
            .collect();
        vectors.replace_agent_vectors(&changes).unwrap();
    }
    let memory = memory().saturating_sub(before);
    println!("\n{agents} agents of {MAX_CODES} vectors of {dimensions} numbers");
    print_figure(
        "memory, anonymous, bytes per agent (target 450)",
        memory / agents as u64,
    );
    let snapshot = vectors.snapshot();
    let mut everybody = SlotBitSet::with_capacity(snapshot.slot_count());
    (0..agents as u32).for_each(|slot| everybody.insert(slot));
    let mut times: Vec<f64> = (0..size_from_env("BENCH_QUERIES", 200) as u64)
        .map(|query| {
            let query = vector(u64::MAX - query, dimensions);
            let began = Instant::now();
            black_box(snapshot.find_nearest(&query, &everybody).unwrap());
            began.elapsed().as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    for (name, share) in [("p50", 0.50), ("p95", 0.95), ("p99 (target 25)", 0.99)] {
        print_figure(
            &format!("the nearest {MAX_NEAREST}, one thread, ms, {name}"),
            format!("{:.2}", times[((times.len() - 1) as f64 * share) as usize]),
        );
    }
}

/// Bytes of anonymous memory of this process.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.unwrap().parse::<u64>().unwrap() * 1_024
}

/// An encoder whose vector of a text depends on the text's hash alone.
#[derive(Debug)]
struct HashEmbedder(ModelIdentity);

#[async_trait]
impl Embedder for HashEmbedder {
    fn model_identity(&self) -> &ModelIdentity {
        &self.0
    }

    async fn embed(&self, texts: Vec<String>, _: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        let made = texts.iter().map(|text| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            vector(hasher.finish(), self.0.dimensions)
        });
        Ok(made.collect())
    }
}

/// Measures whole searches through HTTP, hybrid beside full text.
async fn hybrid(agents: usize, dimensions: usize) {
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let stock = BenchRegistry::new().await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    rebuild_index(&stock.app, || false).await.unwrap();
    let model = ModelIdentity {
        id: "generated".into(),
        name: "generated".into(),
        dimensions,
    };
    let began = Instant::now();
    let model: Arc<dyn Embedder> = Arc::new(HashEmbedder(model));
    let mut embedding = open_model_indexer(&stock.app, model).await.unwrap();
    while run_embedding_step(&stock.app, &mut embedding)
        .await
        .unwrap()
        != EmbeddingStepResult::Idle
    {}
    println!("\n{agents} agents in the registry");
    let rate = agents as f64 / began.elapsed().as_secs_f64();
    print_figure(
        "agents embedded per second, without an encoder",
        format!("{rate:.0}"),
    );
    let (address, shutdown) = stock.serve().unwrap();
    let count = size_from_env("BENCH_QUERIES", 200);
    let mut next = 0;
    let mut run = |mode: &str, connections: usize| {
        let paths: Vec<String> = (next..next + count)
            .map(|index| {
                let words = generator.query(index as u64, WORDS).replace(' ', "+");
                format!("/v1/agents?q={words}&mode={mode}")
            })
            .collect();
        next += count;
        let mut load = Load::new(address, &paths, "", "200");
        load.connections = connections;
        load.most = count;
        load.time = Duration::from_secs(20);
        load.run().unwrap()
    };
    run("hybrid", 8);
    let pairs: Vec<[LoadResult; 2]> = (0..size_from_env("BENCH_PAIRS", 5))
        .map(|_| [run("hybrid", 8), run("lexical", 8)])
        .collect();
    print_header(
        "distinct searches of four words, 8 connections; bare: lexical",
        "queries/s",
    );
    let of = |side: usize| median(pairs.iter().map(|pair| pair[side].rate).collect());
    let ratio = median(
        pairs
            .iter()
            .map(|[ours, bare]| ours.rate / bare.rate)
            .collect(),
    );
    print_comparison("hybrid", of(0), of(1), ratio, None);
    print_header("the same, one connection; bare: lexical", "ms");
    let (ours, bare) = (run("hybrid", 1), run("lexical", 1));
    for (name, share) in [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)] {
        let (ours, bare) = (ours.percentile(share), bare.percentile(share));
        print_comparison(&format!("hybrid, {name}"), ours, bare, bare / ours, None);
    }
    shutdown.cancel();
    stock.close().await;
}
