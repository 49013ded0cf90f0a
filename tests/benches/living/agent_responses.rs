//! Responses about single agents, against a bare server with the same content; and the results page, against the same
//! search over the API.

use std::time::Duration;

use serde_json::{Value, json};

use super::child_process::{Child, wait_until_idle};
use super::http::{call, read};
use super::registry::RegistryProcess;
use super::tables::{Target, figure_row};
use crate::generator::CardGenerator;
use crate::load::{Load, LoadResult};
use crate::report::{median, size_from_env};

/// Agents that are asked for in turn.
const AGENTS: usize = 1_000;
/// The facets that the results page counts.
const PAGE_FACETS: &str = "auth,protocol_version,binding,tag,skill,provider,domain,capability,input_mode,trust,signature,liveness";
/// Queries of the results page begin here, behind those of all cells.
const PAGE_QUERIES: u64 = 500_000_000;

/// Measures agents as JSON.
pub fn agent_rows(registry: &RegistryProcess) -> Vec<Vec<String>> {
    wait_until_idle(registry.child.id());
    let paths: Vec<String> = ids(registry)
        .iter()
        .map(|id| format!("/v1/agents/{id}"))
        .collect();
    let bodies: Vec<String> = paths
        .iter()
        .map(|path| read(registry.address, path, "").to_string())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bodies");
    std::fs::write(&file, json!(bodies).to_string()).unwrap();
    let (bare, first) = Child::start("bare", &json!({"bodies": file}));
    let bare_address = first["address"].as_str().unwrap().parse().unwrap();
    let bare_paths: Vec<String> = (0..bodies.len()).map(|index| format!("/{index}")).collect();
    let mut ours = Load::new(registry.address, &paths, "", "200");
    ours.process = Some(registry.child.id());
    let mut same = Load::new(bare_address, &bare_paths, "", "200");
    same.process = Some(bare.id());
    let mut rows = Vec::new();
    for connections in [16, 64] {
        let pairs = pairs(&ours, &same, connections);
        let ratio = |of: fn(&[LoadResult; 2]) -> f64| median(pairs.iter().map(of).collect());
        rows.push(figure_row(
            &format!("agent as JSON, {connections} connections, rate of a bare server's"),
            ratio(|[ours, bare]| ours.rate / bare.rate),
            "",
            Target::AtLeast(0.9),
        ));
        rows.push(figure_row(
            &format!("agent as JSON, {connections} connections, a bare server's CPU of ours"),
            ratio(|[ours, bare]| bare.cpu_us / ours.cpu_us),
            "",
            Target::None,
        ));
    }
    bare.stop();
    rows
}

/// Runs both in turns.
fn pairs(ours: &Load, bare: &Load, connections: usize) -> Vec<[LoadResult; 2]> {
    let run = |load: &Load| {
        let mut load = load.clone();
        load.connections = connections;
        load.time = Duration::from_secs(2);
        load.run().unwrap()
    };
    run(ours);
    run(bare);
    let pairs = (0..size_from_env("BENCH_PAIRS", 5)).map(|_| [run(ours), run(bare)]);
    pairs.collect()
}

/// The ids of the first agents.
fn ids(registry: &RegistryProcess) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut path = "/v1/agents?page_size=100".to_owned();
    while ids.len() < AGENTS {
        let page = read(registry.address, &path, "");
        let agents = page["agents"].as_array().unwrap();
        ids.extend(
            agents
                .iter()
                .map(|agent| agent["id"].as_str().unwrap().to_owned()),
        );
        let Some(token) = page["next_page_token"].as_str() else {
            break;
        };
        path = format!("/v1/agents?page_size=100&page_token={token}");
    }
    ids
}

/// Measures the results page against the API call with the same facets, each with queries of its own.
pub fn measure_results_page(
    registry: &RegistryProcess,
    generator: CardGenerator,
) -> Vec<Vec<String>> {
    let count = size_from_env("BENCH_QUERIES", 800) as u64;
    let run = |first: u64, path: &dyn Fn(&str) -> String| {
        let queries = (first..first + count).map(|index| generator.query(index, 3));
        let paths: Vec<String> = queries
            .map(|words| path(&words.replace(' ', "+")))
            .collect();
        let mut load = Load::new(registry.address, &paths, "", "200");
        load.process = Some(registry.child.id());
        load.connections = 1;
        load.most = paths.len();
        load.time = Duration::from_secs(size_from_env("BENCH_SECONDS", 10) as u64);
        load.run().unwrap()
    };
    let api = run(PAGE_QUERIES, &|words| {
        format!("/v1/agents?group=content&facets={PAGE_FACETS}&q={words}")
    });
    let page = run(PAGE_QUERIES + count, &|words| format!("/?q={words}"));
    vec![
        figure_row(
            "results page, CPU against the API call with the same facets",
            page.cpu_us / api.cpu_us,
            "times",
            Target::AtMost(3.0),
        ),
        figure_row(
            "results page, CPU",
            page.cpu_us / 1_000.0,
            "ms",
            Target::None,
        ),
        figure_row(
            "that API call, CPU",
            api.cpu_us / 1_000.0,
            "ms",
            Target::None,
        ),
        hits(registry, generator),
    ]
}

/// The size of ten hits with everything that the page shows.
fn hits(registry: &RegistryProcess, generator: CardGenerator) -> Vec<String> {
    let sizes = (0..20).map(|index| {
        let words = generator
            .query(PAGE_QUERIES * 2 + index, 3)
            .replace(' ', "+");
        let path = format!("/v1/agents?page_size=10&q={words}");
        let (status, page): (u16, Value) = call(registry.address, "GET", &path, "", "");
        assert_eq!(status, 200, "{page}");
        page["agents"].to_string().len() as f64 / 1_000.0
    });
    figure_row(
        "ten hits by default, median",
        median(sizes.collect()),
        "kB",
        Target::AtMost(12.0),
    )
}
