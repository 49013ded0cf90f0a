//! A registry under load for any length of time: its memory, and how that grows.
//!
//! In the full test run this takes some seconds and checks that every request gets a response and is measured.
//! `LONG_SECONDS=3600 LONG_AGENTS=3000 tests/run long::` runs for an hour to show whether memory grows; it ends with
//! some minutes without requests (`LONG_IDLE_SECONDS`).

mod load;
mod memory;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::load::{KINDS, MixedLoad};
use self::memory::{MemorySample, anonymous_kibibytes, slope};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::{eventually, sleep_between_samples};
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
/// Seconds without requests at the end of the long form: longer than any unused memory is kept.
const IDLE_SECONDS: u64 = 420;
/// Maximum memory after the idle time beyond that before the load, as a fraction of the latter.
const MOST_KEPT: f64 = 0.5;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_under_load() {
    let seconds = number("LONG_SECONDS", 10);
    let agents = number("LONG_AGENTS", 60);
    let generator = CardGenerator::new(1);
    let origins: Vec<Origin> = (0..agents.div_ceil(CARDS_PER_ORIGIN))
        .map(|_| Origin::start())
        .collect();
    let urls: Vec<String> = (0..agents)
        .map(|card| {
            let origin = &origins[(card / CARDS_PER_ORIGIN) as usize];
            let path = format!("/{card}.json");
            origin.set_reply(&path, OriginReply::json(generator.card(card)));
            origin.url(&path)
        })
        .collect();
    let serving = RegistrySetup::new()
        .approve_all()
        .with_config_lines("least_rate = 1000.0\n[limits]\nagents_per_domain = 1000000")
        .start()
        .await;
    let began = Instant::now();
    let process = serving.program.id();
    let sample = |what: &str| {
        let sample = MemorySample {
            at: began.elapsed(),
            kibibytes: anonymous_kibibytes(process),
        };
        println!(
            "{:7.1} s {:>9} KiB anonymous, {what}",
            sample.at.as_secs_f64(),
            sample.kibibytes
        );
        sample
    };
    sample("started");
    for url in &urls {
        serving.api.register(url).await;
    }
    eventually("all agents are found", || async {
        let found = serving.api.search("page_size=1").await["total"].as_u64();
        (found >= Some(agents)).then_some(())
    })
    .await;
    let idle = sample("registered");

    let load =
        Arc::new(MixedLoad::new(serving.api.clone(), origins, CardGenerator::new(2), agents).await);
    let clients = load.start();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut samples = Vec::new();
    while Instant::now() < end {
        sleep_between_samples(Duration::from_secs((seconds / 120).max(1))).await;
        samples.push(sample("under load"));
    }
    load.ended.store(true, Ordering::Release);
    for client in clients {
        client.await.unwrap();
    }
    for (kind, answered) in KINDS.iter().zip(&load.answered) {
        println!("{kind}: {}", answered.load(Ordering::Relaxed));
        assert!(
            answered.load(Ordering::Relaxed) > 0,
            "{kind} was never answered"
        );
    }
    // The caches fill during the first tenth.
    let settled = &samples[samples.len() / 10..];
    let growth = slope(settled);
    println!("slope after the first tenth: {growth:.1} KiB a minute");
    assert!(samples.len() >= 3 && samples.iter().all(|sample| sample.kibibytes > 0));
    serving.api.get("/livez").await.expect_status(200);
    let is_checked = seconds >= CHECKED_FROM;
    let quiet = number(
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
    }
    serving.stop().await;
}
