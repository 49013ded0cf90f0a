//! Registration in bulk, against the same one by one; and the cost of a lease while a bulk of another account waits.
//!
//! Each side registers `BENCH_URLS` (4000) URLs, of domains with one card and of domains with eight, for an account
//! with limits; as many are registered before each pair, because the account's registrations are counted.
//! `BENCH_PAIRS` (3) pairs are run. `BENCH_WAITING` (60000) visits wait in the second part.

use std::time::{Duration, Instant};

use a2a_registry_api::limits::MAX_BULK_REGISTRATIONS;
use a2a_registry_api::{NewToken, Registration};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::register_bulk::register_bulk;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;

use super::bench_registry::{ADMIN, BenchRegistry, SUFFIX};
use super::report::{
    cpu_of_process, median, print_comparison, print_figure, print_header, size_from_env,
};

/// An hour, in microseconds: longer than the bench.
const LEASE: i64 = 3_600_000_000;
/// Visits of one lease, as a crawler with all its places free asks for.
const PLACES: usize = 64;

/// Card URLs of domains that nobody has registered.
fn urls(name: &str, count: usize, of_domain: usize) -> Vec<Registration> {
    let url = |number: usize| {
        let domain = number / of_domain;
        Registration {
            card_url: Some(format!("http://{name}{domain}.{SUFFIX}/{number}.json")),
            ..Registration::default()
        }
    };
    (0..count).map(url).collect()
}

async fn publisher(stock: &BenchRegistry, name: &str) -> Caller {
    let admin = authenticate_token(&stock.app, ADMIN).await.unwrap();
    let new = NewToken {
        account: name.into(),
        role: Some(Role::Publisher),
        name: "a bench".into(),
        ..NewToken::default()
    };
    let made = token_create(&stock.app, &admin, &new).await.unwrap();
    authenticate_token(&stock.app, &made.secret).await.unwrap()
}

async fn in_bulk(stock: &BenchRegistry, caller: &Caller, all: &[Registration]) {
    for request in all.chunks(MAX_BULK_REGISTRATIONS) {
        let results = register_bulk(&stock.app, caller, request).await.unwrap();
        assert!(results.iter().all(Result::is_ok));
    }
}

async fn one_by_one(stock: &BenchRegistry, caller: &Caller, all: &[Registration]) {
    for what in all {
        register_domain(&stock.app, caller, what).await.unwrap();
    }
}

/// Registrations per second of a side.
fn rate(count: usize, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

async fn registrations(count: usize, pairs: usize, of_domain: usize) {
    let stock = BenchRegistry::without_quotas().await;
    let caller = publisher(&stock, "somebody").await;
    let (mut bulk, mut single, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut cpu = Duration::ZERO;
    for pair in 0..pairs {
        let name = |side: &str| format!("{side}{of_domain}-{pair}-");
        in_bulk(&stock, &caller, &urls(&name("before"), count, of_domain)).await;
        let all = urls(&name("bulk"), count, of_domain);
        let (began, before) = (Instant::now(), cpu_of_process().unwrap());
        in_bulk(&stock, &caller, &all).await;
        bulk.push(rate(count, began));
        cpu += cpu_of_process().unwrap() - before;
        let all = urls(&name("single"), count, of_domain);
        let began = Instant::now();
        one_by_one(&stock, &caller, &all).await;
        single.push(rate(count, began));
        ratios.push(bulk[pair] / single[pair]);
    }
    let what = format!("in bulk, {of_domain} of a domain, against one by one");
    print_comparison(&what, median(bulk), median(single), median(ratios), None);
    let each = cpu.as_secs_f64() * 1e3 / (count * pairs) as f64;
    print_figure("  processor time of each in bulk, ms", format!("{each:.3}"));
    stock.close().await;
}

/// The seconds of one lease, and whether its first visit is the one that was registered by itself.
async fn lease(stock: &BenchRegistry, caller: &Caller, name: &str) -> (f64, bool) {
    let what = Registration {
        domain: Some(format!("{name}.{SUFFIX}")),
        ..Registration::default()
    };
    register_domain(&stock.app, caller, &what).await.unwrap();
    let began = Instant::now();
    let leased = lease_visits(&stock.app, PLACES, LEASE).await.unwrap();
    let seconds = began.elapsed().as_secs_f64();
    let first = leased.first().map(|(row, _)| row.name.as_str());
    (seconds, first == Some(format!("{name}.{SUFFIX}").as_str()))
}

async fn leases(waiting: usize, rounds: usize) {
    let stock = BenchRegistry::without_quotas().await;
    let (large, single) = (
        publisher(&stock, "large").await,
        publisher(&stock, "single").await,
    );
    let (mut few, mut many, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        in_bulk(&stock, &large, &urls(&format!("few{round}-"), PLACES, 1)).await;
        few.push(lease(&stock, &single, &format!("alone{round}")).await.0);
    }
    in_bulk(&stock, &large, &urls("many", waiting, 1)).await;
    for (round, without_queue) in few.iter().enumerate() {
        let (seconds, is_first) = lease(&stock, &single, &format!("beside{round}")).await;
        assert!(is_first, "a single registration waits behind a bulk");
        many.push(seconds);
        ratios.push(without_queue / seconds);
    }
    let what = format!("leases a second, {waiting} waiting, against {PLACES}");
    let each = |seconds: Vec<f64>| 1.0 / median(seconds);
    print_comparison(&what, each(many), each(few), median(ratios), None);
    stock.close().await;
}

pub async fn run() {
    let (count, pairs) = (
        size_from_env("BENCH_URLS", 4_000),
        size_from_env("BENCH_PAIRS", 3),
    );
    print_header("registration", "registrations a second");
    registrations(count, pairs, 1).await;
    registrations(count, pairs, 8).await;
    leases(size_from_env("BENCH_WAITING", 60_000), 20).await;
}
