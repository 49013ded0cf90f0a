//! Crawling local cards: the fetch layer alone, and the whole pipeline into store and index, against a bare client
//! that fetches and parses.
//!
//! One origin on one thread serves all cards on one port. Bare client and fetch layer use one host name and persistent
//! connections. The whole pipeline has one domain per eight cards, the number that one visit fetches, and then one
//! domain per card, and so makes a new connection for every domain, as a real crawl does; the bare client with the
//! same names is printed beside it. Names resolve to this machine, inside this process.
//!
//! `BENCH_CARDS` (10000) is the number of cards, `BENCH_PAIRS` (3) the number of runs of each side, taken in turns,
//! and `BENCH_CONNECTIONS` (64) the number of concurrent requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{AllowedPorts, GuardConfig, SsrfGuard};
use a2a_crawler::{AttemptOutcome, FetchTarget, SourceResult, SourceTask, SystemClock, Validators};
use a2a_registry_core::visits::leases::wake_crawler;
use a2a_registry_server::jobs::{self, JobOptions};
use actix_web::web::Bytes;
use futures::StreamExt;
use tokio::sync::Notify;
use url::Url;

use super::bare_server::BareServer;
use super::bench_registry::{BenchRegistry, SUFFIX};
use super::generator::CardGenerator;
use super::loopback_resolver::LoopbackResolver;
use super::report::{median, print_comparison, print_figure, print_header, size_from_env};

/// Cards per domain: the number that one visit fetches.
const CARDS_OF_DOMAIN: usize = a2a_crawler::MAX_SOURCES_PER_VISIT;
/// Timeout of a crawl, longer than any here takes.
const DEADLINE: Duration = Duration::from_secs(120);

impl reqwest::dns::Resolve for LoopbackResolver {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Box::pin(async move { Ok(Box::new(std::iter::once(address)) as reqwest::dns::Addrs) })
    }
}

/// Results of one round, in cards per second.
#[derive(Debug, Clone, Copy)]
struct CrawlRates {
    bare: f64,
    bare_by_domain: f64,
    bare_unchanged: f64,
    fetch: f64,
    fetch_unchanged: f64,
    new: f64,
    unchanged: f64,
    new_alone: f64,
}

pub async fn run() {
    let cards = size_from_env("BENCH_CARDS", 10_000) / CARDS_OF_DOMAIN * CARDS_OF_DOMAIN;
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let bodies = (0..cards as u64)
        .map(|index| Bytes::from(generator.card(index)))
        .collect();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let origin = BareServer::start(bodies, Some(1)).unwrap();
    let port = origin.address.port();
    let one: Vec<Url> = (0..cards).map(|index| url("one", port, index)).collect();
    let domains: Vec<Url> = (0..cards)
        .map(|index| url(&format!("d{}", index / CARDS_OF_DOMAIN), port, index))
        .collect();

    bare(&one, false).await;
    let mut rounds = Vec::new();
    for _ in 0..size_from_env("BENCH_PAIRS", 3) {
        let bare_new = bare(&one, false).await;
        let fetch_new = fetch(&one, false).await;
        let bare_unchanged = bare(&one, true).await;
        let fetch_unchanged = fetch(&one, true).await;
        let bare_by_domain = bare(&domains, false).await;
        let (new, unchanged) = whole_way(cards, CARDS_OF_DOMAIN, port).await;
        let (new_alone, _) = whole_way(cards, 1, port).await;
        rounds.push(CrawlRates {
            bare: bare_new,
            bare_by_domain,
            bare_unchanged,
            fetch: fetch_new,
            fetch_unchanged,
            new,
            unchanged,
            new_alone,
        });
    }
    origin.stop().await;
    print(cards, &rounds);
}

/// A row of the table: its label, our figure, the bare client's, and the target ratio.
type RateRow = (&'static str, RateSelector, RateSelector, Option<f64>);

/// One figure of a round.
type RateSelector = fn(&CrawlRates) -> f64;

fn print(cards: usize, rounds: &[CrawlRates]) {
    let of = |figure: RateSelector| median(rounds.iter().map(figure).collect());
    print_header(&format!("crawl of {cards} cards"), "cards/s");
    let rows: [RateRow; 8] = [
        (
            "fetch layer, 200",
            |one| one.fetch,
            |one| one.bare,
            Some(0.60),
        ),
        (
            "fetch layer, 304",
            |one| one.fetch_unchanged,
            |one| one.bare_unchanged,
            None,
        ),
        (
            "whole way, new cards",
            |one| one.new,
            |one| one.bare,
            Some(0.08),
        ),
        (
            "whole way, new cards, one a domain",
            |one| one.new_alone,
            |one| one.bare,
            None,
        ),
        (
            "whole way, new cards, one a domain; against eight",
            |one| one.new_alone,
            |one| one.new,
            None,
        ),
        (
            "whole way, unchanged cards (304)",
            |one| one.unchanged,
            |one| one.bare,
            Some(0.15),
        ),
        (
            "whole way, new; bare: one domain, one connection",
            |one| one.new,
            |one| one.bare_by_domain,
            None,
        ),
        (
            "whole way, unchanged; bare: 304 too",
            |one| one.unchanged,
            |one| one.bare_unchanged,
            None,
        ),
    ];
    for (what, ours, bare, target) in rows {
        let ratio = median(rounds.iter().map(|one| ours(one) / bare(one)).collect());
        print_comparison(what, of(ours), of(bare), ratio, target);
    }
    print_figure("concurrent requests", connections());
}

fn connections() -> usize {
    size_from_env("BENCH_CONNECTIONS", 64)
}

fn url(host: &str, port: u16, index: usize) -> Url {
    format!("http://{host}.{SUFFIX}:{port}/{index}")
        .parse()
        .unwrap()
}

/// Measures a bare client, which only fetches and parses.
async fn bare(urls: &[Url], unchanged: bool) -> f64 {
    // With many hosts no connection is used for long, and keeping them all idle would exceed the limit of open files.
    let one_host = urls.first().map(Url::host_str) == urls.last().map(Url::host_str);
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(if one_host { connections() } else { 0 })
        .dns_resolver(LoopbackResolver)
        .build()
        .unwrap();
    let began = Instant::now();
    futures::stream::iter(urls.iter().cloned().enumerate())
        .map(|(index, url)| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut request = client.get(url);
                if unchanged {
                    request = request.header("if-none-match", format!("\"{index}\""));
                }
                let answer = request.send().await.unwrap();
                if unchanged {
                    assert_eq!(answer.status(), 304);
                    return;
                }
                let bytes = answer.bytes().await.unwrap();
                let card: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                assert!(card["name"].is_string());
            })
        })
        .buffer_unordered(connections())
        .for_each(async |done| done.unwrap())
        .await;
    urls.len() as f64 / began.elapsed().as_secs_f64()
}

/// Measures the crawler's fetch layer: guard, size limits, conditional requests, the card read in full.
async fn fetch(urls: &[Url], unchanged: bool) -> f64 {
    let config = FetcherConfig {
        guard: SsrfGuard::new(GuardConfig {
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            allow_names: vec![format!("*.{SUFFIX}")],
            allow_http: true,
            allow_ports: AllowedPorts::Any,
            ..GuardConfig::default()
        }),
        limits: FetchLimits::default(),
        contact_url: None,
        extra_ca: Vec::new(),
        key_hosts: Vec::new(),
    };
    let fetcher =
        Arc::new(Fetcher::new(config, Arc::new(LoopbackResolver), Arc::new(SystemClock)).unwrap());
    let began = Instant::now();
    futures::stream::iter(urls.iter().cloned().enumerate())
        .map(|(index, url)| {
            let fetcher = Arc::clone(&fetcher);
            let validators = unchanged.then(|| Validators {
                url: url.to_string(),
                etag: Some(format!("\"{index}\"")),
                last_modified: None,
            });
            let task = SourceTask {
                source_key: index as i64,
                target: FetchTarget::CardUrl { url },
                validators,
                credential: None,
            };
            tokio::spawn(async move {
                let verdict = fetcher.fetch_source(&task).await.result;
                let wanted = match verdict {
                    SourceResult::Fetched(_) => !unchanged,
                    SourceResult::NotModified(_) => unchanged,
                    SourceResult::Catalog(_) | SourceResult::Failed { .. } => false,
                };
                assert!(wanted, "{verdict:?}");
            })
        })
        .buffer_unordered(connections())
        .for_each(async |done| done.unwrap())
        .await;
    urls.len() as f64 / began.elapsed().as_secs_f64()
}

/// Measures a crawl from the frontier into store and index, twice: every card new, then none changed.
async fn whole_way(cards: usize, of_domain: usize, port: u16) -> (f64, f64) {
    let stock = BenchRegistry::resolving(Arc::new(LoopbackResolver)).await;
    let app = &stock.app;
    stock.add_sources(cards / of_domain, of_domain, port).await;
    let fetched = Arc::new(Counter::default());
    let unchanged = Arc::new(Counter::default());
    let (on_card, on_unchanged) = (Arc::clone(&fetched), Arc::clone(&unchanged));
    let options = JobOptions {
        on_outcome: Arc::new(move |outcome| match outcome {
            AttemptOutcome::Card => on_card.count(),
            AttemptOutcome::NotModified => on_unchanged.count(),
            other => panic!("unexpected outcome of an attempt: {other:?}"),
        }),
        ..JobOptions::default()
    };
    let mut events = app.event_signal();
    let began = Instant::now();
    let jobs = jobs::start_jobs(app, options);
    fetched.reaches(cards).await;
    let searchable = async {
        while app.index().num_agents() < cards as u64 || app.index().overlay_len() > 0 {
            let tick = Duration::from_millis(10);
            let _ = tokio::time::timeout(tick, events.changed()).await;
        }
    };
    tokio::time::timeout(DEADLINE, searchable).await.unwrap();
    let new = cards as f64 / began.elapsed().as_secs_f64();

    stock.make_due().await;
    let began = Instant::now();
    wake_crawler(app);
    unchanged.reaches(cards).await;
    let same = cards as f64 / began.elapsed().as_secs_f64();
    jobs.stop().await;
    stock.close().await;
    (new, same)
}

/// A counter that can be awaited.
#[derive(Debug, Default)]
struct Counter {
    count: AtomicUsize,
    changed: Notify,
}

impl Counter {
    fn count(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    async fn reaches(&self, wanted: usize) {
        let all = async {
            while self.count.load(Ordering::Relaxed) < wanted {
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(DEADLINE, all).await.unwrap();
    }
}
