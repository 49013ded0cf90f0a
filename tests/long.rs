//! A registry under load for any length of time: its memory and file descriptors, and how they grow; and two replicas
//! that are restarted under load.
//!
//! In the full test run this takes some seconds and checks that every request gets a response and is measured.
//! `LONG_SECONDS=3600 LONG_AGENTS=3000 tests/run long::` runs for an hour to show whether memory grows; it ends with
//! some minutes without requests (`LONG_IDLE_SECONDS`). After the first tenth of the time, `LONG_PERCENT=50` makes
//! half of the requests a second that were answered in it. Both tests take that time: name one of them to run it
//! alone.

mod latency;
mod load;
mod process;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::load::{KINDS, MixedLoad};
use self::process::{ProcessSample, slope};
use crate::support::api::RegistryClient;
use crate::support::database::Database;
use crate::support::number_from_env;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::{eventually, sleep_between_samples};
use crate::support::round_robin::RoundRobin;
use crate::support::setup::RegistrySetup;

#[path = "benches/generator/mod.rs"]
#[allow(dead_code, reason = "the benches use more of it")]
mod generator;

use generator::CardGenerator;

/// Cards per origin, within the limit of agents per domain.
const CARDS_PER_ORIGIN: u64 = 45;
/// Seconds from which on the slope is checked, and not only printed.
const CHECKED_FROM: u64 = 1_800;
/// Maximum growth of memory in KiB per minute. As segments merge and caches are replaced, memory varies by a tenth
/// within an hour, which alone gives slopes of a hundred and more in either direction.
const MOST_GROWTH: f64 = 256.0;
/// Maximum growth of the number of file descriptors per minute: one for each new segment of the index would be more.
const MOST_NEW_DESCRIPTORS: f64 = 1.0;
/// Seconds without requests at the end of the long form: longer than any unused memory is kept.
const IDLE_SECONDS: u64 = 420;
/// Maximum memory after the idle time beyond that before the load, as a fraction of the latter.
const MOST_KEPT: f64 = 0.5;

/// The registered agents, which origins serve.
struct LoadedAgents {
    origins: Vec<Origin>,
    urls: Vec<String>,
}

impl LoadedAgents {
    fn new(agents: u64) -> Self {
        let generator = CardGenerator::new(1);
        let origins: Vec<Origin> = (0..agents.div_ceil(CARDS_PER_ORIGIN))
            .map(|_| Origin::start())
            .collect();
        let urls = (0..agents).map(|card| {
            let origin = &origins[(card / CARDS_PER_ORIGIN) as usize];
            let path = format!("/{card}.json");
            origin.set_reply(&path, OriginReply::json(generator.card(card)));
            origin.url(&path)
        });
        let urls = urls.collect();
        Self { origins, urls }
    }

    async fn register(&self, api: &RegistryClient) {
        for url in &self.urls {
            api.register(url).await;
        }
    }

    async fn wait_until_found(&self, api: &RegistryClient) {
        eventually("all agents are found", || async {
            let found = api.search("page_size=1").await["total"].as_u64();
            (found >= Some(self.urls.len() as u64)).then_some(())
        })
        .await;
    }

    async fn load(self, replicas: Arc<RoundRobin>) -> Arc<MixedLoad> {
        let agents = self.urls.len() as u64;
        let generator = CardGenerator::new(2);
        Arc::new(MixedLoad::new(replicas, self.origins, generator, agents).await)
    }
}

fn setup() -> RegistrySetup {
    RegistrySetup::new()
        .approve_all()
        .with_config_lines("least_rate = 1000.0\n[limits]\nagents_per_domain = 1000000")
}

/// Runs at full rate for a tenth of the time, which shows the capacity, and then at the share of it that is wanted.
async fn settle(load: &MixedLoad, seconds: u64) {
    let tenth = Duration::from_millis(seconds * 100);
    sleep_between_samples(tenth).await;
    let capacity = load.total() as f64 / tenth.as_secs_f64();
    println!("{capacity:.0} requests a second in the first tenth");
    let percent = number_from_env("LONG_PERCENT", 100);
    if percent < 100 && capacity > 0.0 {
        load.limit_rate(capacity * percent as f64 / 100.0);
    }
}

fn print_load(load: &MixedLoad) {
    for (kind, answered) in KINDS.iter().zip(&load.answered) {
        println!("{kind}: {}", answered.load(Ordering::Relaxed));
        assert!(
            answered.load(Ordering::Relaxed) > 0,
            "{kind} was never answered"
        );
    }
    for (name, share) in [("p50", 0.50), ("p99", 0.99)] {
        let time = load.latencies.percentile(share);
        println!("{name}: {:.1} ms", time.as_secs_f64() * 1_000.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_under_load() {
    let seconds = number_from_env("LONG_SECONDS", 10);
    let agents = LoadedAgents::new(number_from_env("LONG_AGENTS", 60));
    let serving = setup().start().await;
    let began = Instant::now();
    let process = serving.program.id();
    let sample = |what: &str| {
        let sample = ProcessSample::take(process, began.elapsed());
        println!(
            "{:7.1} s {:>9} KiB anonymous {:>5} descriptors, {what}",
            sample.at.as_secs_f64(),
            sample.kibibytes,
            sample.descriptors
        );
        sample
    };
    sample("started");
    agents.register(&serving.api).await;
    agents.wait_until_found(&serving.api).await;
    let idle = sample("registered");

    let replicas = Arc::new(RoundRobin::new([serving.api.clone()]));
    let load = agents.load(replicas).await;
    let clients = load.start();
    let end = Instant::now() + Duration::from_secs(seconds);
    // The caches fill meanwhile.
    settle(&load, seconds).await;
    let mut samples = Vec::new();
    while Instant::now() < end {
        sleep_between_samples(Duration::from_secs((seconds / 120).max(1))).await;
        samples.push(sample("under load"));
    }
    load.ended.store(true, Ordering::Release);
    for client in clients {
        client.await.unwrap();
    }
    print_load(&load);
    let growth = slope(&samples, |sample| sample.kibibytes);
    let new_descriptors = slope(&samples, |sample| sample.descriptors);
    println!(
        "slope after the first tenth: {growth:.1} KiB, {new_descriptors:.2} descriptors a minute"
    );
    assert!(samples.len() >= 3 && samples.iter().all(|sample| sample.kibibytes > 0));
    serving.api.get("/livez").await.expect_status(200);
    let is_checked = seconds >= CHECKED_FROM;
    let quiet = number_from_env(
        "LONG_IDLE_SECONDS",
        if is_checked { IDLE_SECONDS } else { 0 },
    );
    let quiet = Instant::now() + Duration::from_secs(quiet);
    let mut last = idle;
    while Instant::now() < quiet {
        sleep_between_samples(Duration::from_secs(30)).await;
        last = sample("idle");
    }
    println!(
        "{} KiB idle before, {} KiB after",
        idle.kibibytes, last.kibibytes
    );
    if is_checked {
        let kept = last.kibibytes as f64 / idle.kibibytes as f64 - 1.0;
        assert!(
            kept < MOST_KEPT,
            "idle memory grew by a factor of {kept:.2}"
        );
        assert!(
            growth < MOST_GROWTH,
            "memory grows by {growth:.1} KiB a minute"
        );
        assert!(
            new_descriptors < MOST_NEW_DESCRIPTORS,
            "{new_descriptors:.2} more descriptors a minute"
        );
    }
    serving.stop().await;
}

/// Two replicas are restarted one after the other, as an upgrade does: each is drained first, and gets requests again
/// once it is ready. Every request is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_behind_two_replicas_fails_no_request() {
    let seconds = number_from_env("LONG_SECONDS", 10);
    let agents = LoadedAgents::new(number_from_env("LONG_AGENTS", 60));
    let database = Database::postgres().await;
    let setups = [(); 2].map(|()| setup().with_database(database.url()));
    let mut running = Vec::new();
    for setup in &setups {
        running.push(setup.start().await);
    }
    agents.register(&running[0].api).await;
    for replica in &running {
        agents.wait_until_found(&replica.api).await;
    }
    let replicas = RoundRobin::new(running.iter().map(|replica| replica.api.clone()));
    let replicas = Arc::new(replicas);
    let load = agents.load(Arc::clone(&replicas)).await;
    let clients = load.start();
    let end = Instant::now() + Duration::from_secs(seconds);
    settle(&load, seconds).await;
    sleep_between_samples(end.saturating_duration_since(Instant::now()) / 2).await;
    for (at, setup) in setups.iter().enumerate() {
        replicas.take_out(at).await;
        let before = load.total();
        running.remove(0).stop().await;
        let started = setup.start().await;
        eventually("the replica is ready", async || {
            let ready = started.api.get("/readyz").await;
            (ready.status == 200).then_some(())
        })
        .await;
        println!(
            "{} responses during the restart of {at}",
            load.total() - before
        );
        replicas.put_back(at, started.api.clone()).await;
        running.push(started);
    }
    sleep_between_samples(end.saturating_duration_since(Instant::now())).await;
    load.ended.store(true, Ordering::Release);
    for client in clients {
        client.await.unwrap();
    }
    print_load(&load);
    for replica in running {
        replica.stop().await;
    }
}
