//! Searches through the whole server: cached ones against a bare server with the same bytes, new ones against a bare
//! loop over the same query objects of the search library.
//!
//! `BENCH_AGENTS` (100000) agents are generated and ingested first, which is measured too. `BENCH_SECONDS` (2) is the
//! length of one run against the bare server, `BENCH_QUERIES` (1000) the number of distinct queries per run, and
//! `BENCH_PAIRS` (5) the number of runs of each side, taken in turns. With `BENCH_DATABASE=postgres` the registry is on
//! the server that `A2A_REGISTRY_TEST_POSTGRES` names, instead of SQLite.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use a2a_registry_api::HitFields;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{CompiledQuery, Filters, SearchRequest};
use a2a_registry_server::jobs::{self, JobOptions};
use actix_web::web::Bytes;
use tantivy::TantivyDocument;
use tantivy::collector::{Count, TopDocs};

use super::bare_server::BareServer;
use super::bench_registry::BenchRegistry;
use super::generator::CardGenerator;
use super::load::{Load, LoadResult};
use super::report::{median, print_comparison, print_figure, print_header, size_from_env};

/// Words per query: an OR of three matches many agents, which is the expensive case.
const WORDS: usize = 3;
/// Hits of a page, and one more that shows whether another page follows.
const HITS: usize = 21;
/// Twelve facets, as many as may be counted.
const FACETS: &str = "&facets=tag,skill,capability,binding,protocol_version,provider,domain,auth,input_mode,output_mode,trust,liveness";

/// The facets of the results page.
const PAGE_FACETS: &str = "&facets=auth,protocol_version,binding,tag,skill,provider,domain,capability,input_mode,trust,signature,liveness";

/// A source of queries that returns none twice.
#[derive(Debug)]
struct QuerySource {
    generator: CardGenerator,
    next: AtomicUsize,
}

impl QuerySource {
    fn take(&self, count: usize) -> Vec<String> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first..first + count)
            .map(|index| self.generator.query(index as u64, WORDS))
            .collect()
    }
}

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 100_000);
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let stock = BenchRegistry::on_chosen_database().await;
    fill(&stock, agents, generator).await;
    let options = JobOptions {
        crawl: false,
        ..JobOptions::default()
    };
    let jobs = jobs::start_jobs(&stock.app, options);
    let (address, shutdown) = stock.serve().unwrap();
    let queries = QuerySource {
        generator,
        next: AtomicUsize::new(0),
    };

    ten_hits(&stock.app, &queries).await;
    cached(&stock.app, address, &queries).await;
    distinct(&stock.app, address, &queries);
    page(address, &queries);
    alone(&stock.app, address, &queries);
    suggestions(address, &queries);
    explained(&stock.app, &queries);

    print_figure(
        "memory after the searches, anonymous, MB",
        memory("RssAnon:"),
    );
    print_figure("memory after the searches, mapped, MB", memory("RssFile:"));

    shutdown.cancel();
    jobs.stop().await;
    let (stock, ready) = stock.restart().await;
    print_figure(
        "ready again after a restart, s",
        format!("{:.2}", ready.as_secs_f64()),
    );
    stock.close().await;
}

async fn fill(stock: &BenchRegistry, agents: usize, generator: CardGenerator) {
    stock.add_sources(agents, 1, 80).await;
    let filled = stock.fill(|index| generator.card(index)).await;
    let began = Instant::now();
    rebuild_index(&stock.app, || false).await.unwrap();
    let built = began.elapsed();
    println!("\n{agents} agents");
    let per_second = |took: Duration| format!("{:.0}", agents as f64 / took.as_secs_f64());
    print_figure(
        "ingested per second (groups of 200)",
        per_second(filled.ingest),
    );
    print_figure("leased per second", per_second(filled.lease));
    print_figure(
        "index built from the database, s",
        format!("{:.1}", built.as_secs_f64()),
    );
    print_figure("index, MB", stock.index_bytes() / 1_000_000);
    for (what, field) in [("anonymous", "RssAnon:"), ("mapped", "RssFile:")] {
        print_figure(
            &format!("memory after the rebuild, {what}, MB"),
            memory(field),
        );
    }
}

/// This process's memory as the kernel reports it in that field, in MB.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.unwrap().parse::<u64>().unwrap() / 1_000
}

/// Prints how large a page of ten hits is, by default and with everything.
async fn ten_hits(app: &AppContext, queries: &QuerySource) {
    let words = queries.take(100);
    for (what, fields) in [
        ("bytes of ten hits", Vec::new()),
        (
            "the same with all members",
            HitFields::all_names().collect(),
        ),
    ] {
        let mut bytes = Vec::new();
        for words in &words {
            let query = SearchQuery {
                q: Some(words.clone()),
                page_size: Some(10),
                fields: fields
                    .iter()
                    .map(|name: &&str| (*name).to_owned())
                    .collect(),
                ..SearchQuery::default()
            };
            let answer = search_agents(app, &Caller::default(), &query)
                .await
                .unwrap();
            bytes.push(answer.len() as f64);
        }
        print_figure(what, format!("{:.0}", median(bytes)));
    }
}

/// Measures the results page against the call of the API with the same facets, both with new queries.
fn page(address: SocketAddr, queries: &QuerySource) {
    let count = size_from_env("BENCH_QUERIES", 1_000);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run = |paths: Vec<String>| {
        let mut load = Load::new(address, &paths, "", "200");
        load.connections = cores * 4;
        load.most = count;
        load.time = Duration::from_secs(20);
        load.run().unwrap()
    };
    let pairs: Vec<[LoadResult; 2]> = (0..size_from_env("BENCH_PAIRS", 5))
        .map(|_| {
            let pages = queries.take(count);
            let pages = pages
                .iter()
                .map(|words| format!("/?q={}", words.replace(' ', "+")));
            [
                run(pages.collect()),
                run(paths(&queries.take(count), PAGE_FACETS)),
            ]
        })
        .collect();
    print_header("results page; bare: the API with its facets", "us");
    let of = |side: usize| median(pairs.iter().map(|pair| pair[side].cpu_us).collect());
    let ratio = median(
        pairs
            .iter()
            .map(|[page, api]| api.cpu_us / page.cpu_us)
            .collect(),
    );
    print_comparison("server's processor time", of(0), of(1), ratio, Some(0.33));
}

/// Measures repeated searches, whose responses are cached.
async fn cached(app: &AppContext, address: SocketAddr, queries: &QuerySource) {
    let words = queries.take(100);
    let mut bodies = Vec::new();
    for query in &words {
        let query = SearchQuery {
            q: Some(query.clone()),
            ..SearchQuery::default()
        };
        bodies.push(
            search_agents(app, &Caller::default(), &query)
                .await
                .unwrap(),
        );
    }
    let bytes: usize = bodies.iter().map(Bytes::len).sum();
    let bare_paths: Vec<String> = (0..bodies.len()).map(|index| format!("/{index}")).collect();
    let bare = BareServer::start(bodies, None).unwrap();
    let mut sides = [
        Load::new(address, &paths(&words, ""), "", "200"),
        Load::new(bare.address, &bare_paths, "", "200"),
    ];
    for side in &mut sides {
        side.time = Duration::from_secs(size_from_env("BENCH_SECONDS", 2) as u64);
        side.run().unwrap();
    }
    let pairs: Vec<[LoadResult; 2]> = (0..size_from_env("BENCH_PAIRS", 5))
        .map(|_| [sides[0].run().unwrap(), sides[1].run().unwrap()])
        .collect();
    print_header(
        &format!(
            "cached searches, {} B on average, 64 connections",
            bytes / words.len()
        ),
        "requests/s",
    );
    let of = |side: usize| median(pairs.iter().map(|pair| pair[side].rate).collect());
    let ratio = median(pairs.iter().map(|[a, b]| a.rate / b.rate).collect());
    print_comparison("three words, OR", of(0), of(1), ratio, Some(0.60));
    let of = |side: usize| median(pairs.iter().map(|pair| pair[side].cpu_us).collect());
    let ratio = median(pairs.iter().map(|[a, b]| b.cpu_us / a.cpu_us).collect());
    print_comparison("server's processor time, us", of(0), of(1), ratio, None);
    bare.stop().await;
}

/// Measures the rate of new searches, with enough connections to keep all cores busy.
fn distinct(app: &AppContext, address: SocketAddr, queries: &QuerySource) {
    let count = size_from_env("BENCH_QUERIES", 1_000);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rates = Vec::new();
    for _ in 0..size_from_env("BENCH_PAIRS", 5) {
        let words = queries.take(count);
        let mut load = Load::new(address, &paths(&words, ""), "", "200");
        load.connections = cores * 4;
        load.most = count;
        load.time = Duration::from_secs(20);
        let ours = load.run().unwrap().rate;
        let compiled = compiled(app, &words);
        rates.push([
            ours,
            bare_rate(&compiled, cores, registry_collector_with_hits),
            bare_rate(&compiled, cores, registry_collector),
            bare_rate(&compiled, cores, bare_search),
            bare_rate(&compiled, cores, bare_search_with_hits),
        ]);
    }
    print_header(
        &format!(
            "distinct searches, {} connections, {cores} bare threads",
            cores * 4
        ),
        "queries/s",
    );
    let of = |side: usize| median(rates.iter().map(|pair| pair[side]).collect());
    let ratio = |side: usize| median(rates.iter().map(|pair| pair[0] / pair[side]).collect());
    for (side, what, target) in [
        (1, "own collector, 20 hits", Some(0.50)),
        (2, "own collector", None),
        (3, "top 21, count", None),
        (4, "top 21, count, hits", None),
    ] {
        print_comparison(
            &format!("three words, OR; bare: {what}"),
            of(0),
            of(side),
            ratio(side),
            target,
        );
    }
    let mut load = Load::new(address, &paths(&queries.take(count), FACETS), "", "200");
    load.connections = cores * 4;
    load.most = count;
    load.time = Duration::from_secs(20);
    print_figure(
        "the same with all facets, per second",
        format!("{:.0}", load.run().unwrap().rate),
    );
}

/// Measures the latency of new searches, one at a time.
fn alone(app: &AppContext, address: SocketAddr, queries: &QuerySource) {
    let count = size_from_env("BENCH_QUERIES", 1_000);
    print_header("distinct searches, one connection", "ms");
    for (what, parameters) in [
        ("no facets", ""),
        ("one facet", "&facets=tag"),
        ("all facets", FACETS),
    ] {
        let words = queries.take(count);
        let mut load = Load::new(address, &paths(&words, parameters), "", "200");
        load.connections = 1;
        load.most = count;
        load.time = Duration::from_secs(10);
        let ours = load.run().unwrap();
        let mut bare: Vec<f64> = compiled(app, &words)
            .iter()
            .map(|query| {
                let began = Instant::now();
                bare_search(query);
                began.elapsed().as_secs_f64() * 1_000.0
            })
            .collect();
        bare.sort_by(f64::total_cmp);
        for (name, share) in [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)] {
            let ours = ours.percentile(share);
            let bare = bare[(bare.len() as f64 * share) as usize];
            print_comparison(
                &format!("{what}, {name}; bare: without facets"),
                ours,
                bare,
                bare / ours,
                None,
            );
        }
    }
}

/// Measures the latency of completions of word prefixes, one at a time.
fn suggestions(address: SocketAddr, queries: &QuerySource) {
    let words = queries.take(size_from_env("BENCH_QUERIES", 1_000));
    let mut prefixes: Vec<String> = words
        .iter()
        .flat_map(|words| words.split(' '))
        .map(|word| format!("/v1/agents:suggest?q={}", word.get(..3).unwrap_or(word)))
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let mut load = Load::new(address, &prefixes, "", "200");
    load.connections = 1;
    load.most = words.len();
    let measured = load.run().unwrap();
    print_header("completions of three letters, one connection", "ms");
    for (name, share) in [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)] {
        print_figure(name, format!("{:.3}", measured.percentile(share)));
    }
}

/// Measures what explanations cost: a page of 100 hits for 16 prefixes, against the same page without them.
fn explained(app: &AppContext, queries: &QuerySource) {
    let words = queries.take(64).join(" ");
    let mut prefixes: Vec<String> = words
        .split(' ')
        .filter_map(|word| Some(format!("{}*", word.get(..2)?)))
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes.truncate(16);
    let request = SearchRequest {
        text: Some(prefixes.join(" ")),
        visible_to: vec!["public".into()],
        class_labels: vec!["public".into()],
        limit: 100,
        ..SearchRequest::default()
    };
    let milliseconds = |explain: bool| {
        let request = SearchRequest {
            explain,
            ..request.clone()
        };
        let runs = (0..size_from_env("BENCH_PAIRS", 5)).map(|_| {
            let began = Instant::now();
            black_box(app.index().search(&request).unwrap());
            began.elapsed().as_secs_f64() * 1_000.0
        });
        median(runs.collect())
    };
    let (ours, bare) = (milliseconds(true), milliseconds(false));
    print_header("a search explained; bare: not explained", "ms");
    print_comparison("100 hits of 16 prefixes", ours, bare, bare / ours, None);
}

fn paths(words: &[String], parameters: &str) -> Vec<String> {
    words
        .iter()
        .map(|words| format!("/v1/agents?q={}{parameters}", words.replace(' ', "+")))
        .collect()
}

/// The query objects that the registry builds for these words.
fn compiled(app: &AppContext, words: &[String]) -> Vec<CompiledQuery> {
    words
        .iter()
        .map(|words| {
            let request = SearchRequest {
                text: Some(words.clone()),
                filters: Filters::default(),
                visible_to: vec!["public".into()],
                limit: HITS,
                ..SearchRequest::default()
            };
            app.index().compile_query(&request).unwrap()
        })
        .collect()
}

/// Runs a query with the registry's own collector, and renders a list of its first page.
fn registry_collector_with_hits(query: &CompiledQuery) {
    let (total, hits) = query.collect_hits(HITS - 1).unwrap();
    let mut list = b"{\"agents\":[".to_vec();
    list.extend_from_slice(&hits.join(&b','));
    list.extend_from_slice(format!("],\"total\":{total}}}").as_bytes());
    black_box(list);
}

/// Runs a query with the registry's own collector.
fn registry_collector(query: &CompiledQuery) {
    black_box(query.run_page_collector().unwrap());
}

fn bare_search(query: &CompiledQuery) {
    let collectors = (TopDocs::with_limit(HITS).order_by_score(), Count);
    black_box(query.searcher.search(&*query.query, &collectors).unwrap());
}

fn bare_search_with_hits(query: &CompiledQuery) {
    let collectors = (TopDocs::with_limit(HITS).order_by_score(), Count);
    let (hits, _) = query.searcher.search(&*query.query, &collectors).unwrap();
    for (_, address) in hits {
        black_box(query.searcher.doc::<TantivyDocument>(address).unwrap());
    }
}

fn bare_rate(queries: &[CompiledQuery], threads: usize, search: fn(&CompiledQuery)) -> f64 {
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(query) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    search(query);
                }
            });
        }
    });
    queries.len() as f64 / began.elapsed().as_secs_f64()
}
