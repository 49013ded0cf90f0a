//! Requests for cards and for agents through the whole server, against a bare server with the same bytes; and requests
//! for agents against requests for cards.
//!
//! `BENCH_SECONDS` (2) is the length of one run, `BENCH_PAIRS` (5) the number of runs of each side, taken in turns,
//! `BENCH_AGENTS` (1000) the number of cards, requested in turn, and `BENCH_CONNECTIONS` (64) the number of
//! connections.

use std::net::SocketAddr;
use std::time::Duration;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_server::jobs::{self, JobOptions};
use actix_web::web::Bytes;

use super::bare_server::BareServer;
use super::bench_registry::BenchRegistry;
use super::generator::CardGenerator;
use super::load::{Load, LoadResult};
use super::report::{median, print_comparison, print_header, size_from_env};

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 1_000);
    let stock = BenchRegistry::new().await;
    stock.add_sources(agents, 1, 80).await;
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    stock.fill(|index| generator.card(index)).await;
    let app = &stock.app;
    rebuild_index(app, || false).await.unwrap();
    let options = JobOptions {
        crawl: false,
        ..JobOptions::default()
    };
    let jobs = jobs::start_jobs(app, options);

    let ids = ids(&stock).await;
    let mut cards = Vec::with_capacity(ids.len());
    for id in &ids {
        let card = load_agent_card(app, &Caller::default(), id, None)
            .await
            .unwrap();
        cards.push(Bytes::copy_from_slice(&card.bytes));
    }
    let bytes: usize = cards.iter().map(Bytes::len).sum();
    let paths: Vec<String> = ids
        .iter()
        .map(|id| format!("/v1/agents/{id}/card"))
        .collect();
    let first = load_agent_card(app, &Caller::default(), &ids[0], None)
        .await
        .unwrap();
    let known = format!("If-None-Match: {}\r\n", first.etag);
    let (ours, shutdown) = stock.serve().unwrap();
    let bare = BareServer::start(cards, None).unwrap();
    let bare_paths: Vec<String> = (0..ids.len()).map(|index| format!("/{index}")).collect();

    print_header(
        &format!(
            "card GET, {} cards of {} B on average",
            ids.len(),
            bytes / ids.len()
        ),
        "requests/s",
    );
    let whole = [
        Load::new(ours, &paths, "", "200"),
        Load::new(bare.address, &bare_paths, "", "200"),
    ];
    compare("200", &whole, Some(0.85));
    let unchanged = [
        Load::new(ours, &paths[..1], &known, "304"),
        Load::new(
            bare.address,
            &bare_paths[..1],
            "If-None-Match: \"0\"\r\n",
            "304",
        ),
    ];
    compare("304", &unchanged, Some(0.85));
    compare_agents(app, ours, &ids, &whole[0]).await;

    shutdown.cancel();
    bare.stop().await;
    jobs.stop().await;
    stock.close().await;
}

/// Runs requests for agents against a bare server with the same bytes, and against those for cards.
async fn compare_agents(app: &AppContext, ours: SocketAddr, ids: &[String], cards: &Load) {
    let mut answers = Vec::with_capacity(ids.len());
    for id in ids {
        let agent = load_cached_agent_view(app, &Caller::default(), id)
            .await
            .unwrap();
        answers.push(Bytes::from(serde_json::to_vec(&agent).unwrap()));
    }
    let bytes: usize = answers.iter().map(Bytes::len).sum();
    let bare = BareServer::start(answers, None).unwrap();
    let paths: Vec<String> = ids.iter().map(|id| format!("/v1/agents/{id}")).collect();
    let bare_paths: Vec<String> = (0..ids.len()).map(|index| format!("/{index}")).collect();
    print_header(
        &format!(
            "agent GET, {} answers of {} B on average",
            ids.len(),
            bytes / ids.len()
        ),
        "requests/s",
    );
    let agents = Load::new(ours, &paths, "", "200");
    let same = Load::new(bare.address, &bare_paths, "", "200");
    for connections in [16, 64] {
        let what = format!("agent, against bare, {connections} connections");
        compare_with(
            connections,
            &what,
            &[agents.clone(), same.clone()],
            Some(0.9),
        );
    }
    compare("agent, against card", &[agents, cards.clone()], Some(0.5));
    bare.stop().await;
}

/// The ids of all agents, from a search.
async fn ids(stock: &BenchRegistry) -> Vec<String> {
    let mut ids = Vec::new();
    let mut query = SearchQuery {
        page_size: Some(100),
        ..SearchQuery::default()
    };
    loop {
        let answer = search_agents(&stock.app, &Caller::default(), &query)
            .await
            .unwrap();
        let page: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        let agents = page["agents"].as_array().unwrap();
        ids.extend(
            agents
                .iter()
                .map(|agent| agent["id"].as_str().unwrap().to_owned()),
        );
        match page["next_page_token"].as_str() {
            Some(token) => query.page_token = Some(token.to_owned()),
            None => return ids,
        }
    }
}

/// Runs both sides in turns and prints the medians.
fn compare(what: &str, sides: &[Load; 2], target: Option<f64>) {
    compare_with(size_from_env("BENCH_CONNECTIONS", 64), what, sides, target);
}

/// The same with so many connections.
fn compare_with(connections: usize, what: &str, sides: &[Load; 2], target: Option<f64>) {
    let run = |load: &Load| -> LoadResult {
        let mut load = load.clone();
        load.connections = connections;
        load.time = Duration::from_secs(size_from_env("BENCH_SECONDS", 2) as u64);
        load.run().unwrap()
    };
    for side in sides {
        run(side);
    }
    let pairs: Vec<[LoadResult; 2]> = (0..size_from_env("BENCH_PAIRS", 5))
        .map(|_| [run(&sides[0]), run(&sides[1])])
        .collect();
    let of = |figure: fn(&LoadResult) -> f64, side: usize| {
        median(pairs.iter().map(|pair| figure(&pair[side])).collect())
    };
    let ratio = |figure: fn(&[LoadResult; 2]) -> f64| median(pairs.iter().map(figure).collect());
    print_comparison(
        &format!("{what}, {connections} connections"),
        of(|one| one.rate, 0),
        of(|one| one.rate, 1),
        ratio(|[ours, bare]| ours.rate / bare.rate),
        target,
    );
    print_comparison(
        &format!("{what}, server's processor time, us"),
        of(|one| one.cpu_us, 0),
        of(|one| one.cpu_us, 1),
        ratio(|[ours, bare]| bare.cpu_us / ours.cpu_us),
        None,
    );
    print_comparison(
        &format!("{what}, p99, ms"),
        of(|one| one.percentile(0.99), 0),
        of(|one| one.percentile(0.99), 1),
        ratio(|[ours, bare]| bare.percentile(0.99) / ours.percentile(0.99)),
        None,
    );
}
