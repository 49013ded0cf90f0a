//! Registrations: the time until a registered agent is found, and the number of registrations per second.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use a2a_registry_api::limits::MAX_BULK_REGISTRATIONS;
use serde_json::{Value, json};

use super::http::{bearer, call, request};
use super::origin::CardOrigin;
use super::registry::{RegistryProcess, SourceRange};
use super::tables::{Target, figure_row};
use crate::bench_registry::SUFFIX;
use crate::load::{Load, Protocol};
use crate::report::size_from_env;

/// How long a single registration is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks for an agent.
const LOOK: Duration = Duration::from_millis(2);
/// Card URLs per domain where many are registered.
const URLS: usize = super::cards::CARDS_OF_DOMAIN;
/// The program of the registry, for `register -f`.
const PROGRAM: &str = "A2A_REGISTRY_BIN";

/// The next card numbers that nobody has registered; all before them are.
#[derive(Debug)]
pub struct SpareCards {
    next: usize,
    end: usize,
}

impl SpareCards {
    /// The numbers from `next` to before `end`.
    pub const fn new(next: usize, end: usize) -> Self {
        Self { next, end }
    }

    /// The number of cards that are registered.
    pub const fn taken(&self) -> usize {
        self.next
    }

    /// Takes this number of them, and returns the first.
    pub fn take(&mut self, count: usize) -> usize {
        let first = self.next;
        self.next += count;
        assert!(self.next <= self.end, "the origin has too few cards");
        first
    }
}

/// Cards that the rows of this file need beyond the agents.
pub fn spare_cards() -> usize {
    backlog() + 3 * singles() + 2 * bulk() + 1_000
}

/// Sources that are due while somebody else registers one.
fn backlog() -> usize {
    size_from_env("BENCH_BACKLOG", 60_000) / URLS * URLS
}

/// Single registrations of a row.
fn singles() -> usize {
    size_from_env("BENCH_SINGLES", 200)
}

/// Registrations of a bulk.
fn bulk() -> usize {
    size_from_env("BENCH_BULK", 2_000)
}

/// Measures how long single registrations take.
pub fn single_rows(
    registry: &mut RegistryProcess,
    origin: &CardOrigin,
    spare: &mut SpareCards,
) -> Vec<Vec<String>> {
    let person = registry.publisher("person");
    // The account of the sources below.
    registry.publisher("crowd");
    let mut rows = Vec::new();
    let mut push = |what: &str, times: Vec<f64>, most: f64| {
        let what = format!(
            "registered to searchable, p99, {what} ({} registrations)",
            times.len()
        );
        rows.push(figure_row(&what, p99(times), "ms", Target::AtMost(most)));
    };
    let one = |registry: &mut RegistryProcess, spare: &mut SpareCards| {
        registry.count_registered(1);
        until_found(registry, origin, &person, spare.take(1))
    };
    let idle: Vec<f64> = (0..singles()).map(|_| one(registry, spare)).collect();
    push("idle", idle, 150.0);
    registry.settle();

    registry.add(
        SourceRange {
            first: spare.take(backlog()),
            domains: backlog() / URLS,
            urls: URLS,
            account: "crowd",
        },
        origin,
    );
    let what = format!("behind {} due sources of another account", backlog());
    let times = while_busy(registry, |registry| one(registry, spare));
    push(&what, times, 1_000.0);
    registry.settle();

    registry.recrawl(spare.taken());
    let times = while_busy(registry, |registry| one(registry, spare));
    push("during a recrawl of everything", times, 250.0);
    registry.settle();
    rows
}

/// Measures registration in bulk.
pub fn bulk_rows(
    registry: &mut RegistryProcess,
    origin: &CardOrigin,
    spare: &mut SpareCards,
) -> Vec<Vec<String>> {
    let token = registry.publisher("bulk");
    let mut rows = vec![posted(registry, origin, &token, spare.take(bulk()))];
    rows.extend(from_file(registry, origin, &token, spare.take(bulk())));
    rows
}

/// Registers one after the other while the crawler has other work, for as many as an idle registry takes.
fn while_busy(
    registry: &mut RegistryProcess,
    mut one: impl FnMut(&mut RegistryProcess) -> f64,
) -> Vec<f64> {
    let mut times = Vec::new();
    while times.len() < singles() && !registry.settles_within(0) {
        times.push(one(registry));
        if times
            .last()
            .is_some_and(|last| *last >= PATIENCE.as_secs_f64() * 1_000.0)
        {
            break;
        }
    }
    times
}

/// Registers one card as this account, and returns the milliseconds until a search finds its agent; [`PATIENCE`] where that
/// took longer.
#[expect(
    clippy::disallowed_methods,
    reason = "a client learns that an agent is searchable by searching only"
)]
fn until_found(registry: &RegistryProcess, origin: &CardOrigin, token: &str, card: usize) -> f64 {
    let domain = format!("d{card}.{SUFFIX}:{}", origin.port);
    let body = json!({"card_url": card_url(card, origin)}).to_string();
    let began = Instant::now();
    let (status, answer) = call(registry.address, "POST", "/v1/domains", token, &body);
    assert_eq!(status, 202, "{answer}");
    while registry.agents_of(&domain) == 0 && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK);
    }
    began.elapsed().as_secs_f64() * 1_000.0
}

fn card_url(card: usize, origin: &CardOrigin) -> String {
    format!("http://d{card}.{SUFFIX}:{}/{card}", origin.port)
}

fn p99(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let place = (times.len() as f64 * 0.99) as usize;
    times
        .get(place)
        .or(times.last())
        .copied()
        .unwrap_or(f64::NAN)
}

/// Requests that register these card URLs, each with as many of them as a registry takes.
fn registrations(registry: &RegistryProcess, urls: &[String], token: &str) -> Vec<Vec<u8>> {
    let requests = urls.chunks(MAX_BULK_REGISTRATIONS).map(|urls| {
        let all: Vec<Value> = urls.iter().map(|url| json!({"card_url": url})).collect();
        let body = json!({"registrations": all}).to_string();
        let path = "/v1/domains:register";
        request(registry.address, "POST", path, &bearer(token), &body)
    });
    requests.collect()
}

/// The rate of registrations over HTTP, many in a request and each answered by itself.
fn posted(
    registry: &mut RegistryProcess,
    origin: &CardOrigin,
    token: &str,
    first: usize,
) -> Vec<String> {
    let urls: Vec<String> = (first..first + bulk())
        .map(|card| card_url(card, origin))
        .collect();
    let requests = registrations(registry, &urls, token);
    let count = requests.len();
    let mut load = Load::speaking(Protocol::Http, registry.address, requests, "200");
    load.process = Some(registry.child.id());
    load.connections = 1;
    load.most = count;
    load.time = Duration::from_secs(600);
    let measured = load.run().unwrap();
    let rate = measured.rate * urls.len() as f64 / count as f64;
    registry.count_registered(urls.len());
    registry.settle();
    figure_row(
        "bulk registration over HTTP",
        rate,
        "/s",
        Target::AtLeast(1_000.0),
    )
}

/// The rate of `register -f`, where the program is given.
fn from_file(
    registry: &mut RegistryProcess,
    origin: &CardOrigin,
    token: &str,
    first: usize,
) -> Option<Vec<String>> {
    let program = std::env::var_os(PROGRAM).filter(|program| Path::new(program).is_file());
    let Some(program) = program else {
        println!(
            "SKIPPED register -f: {PROGRAM} names no program; run this bench in `tests/run --shell`"
        );
        return None;
    };
    let urls: Vec<String> = (first..first + bulk())
        .map(|card| card_url(card, origin))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("urls");
    std::fs::write(&file, urls.join("\n")).unwrap();
    let began = Instant::now();
    let status = Command::new(program)
        .args(["register", "--no-wait", "-f"])
        .arg(&file)
        .env("A2A_REGISTRY_URL", format!("http://{}", registry.address))
        .env("A2A_REGISTRY_TOKEN", token)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let rate = urls.len() as f64 / began.elapsed().as_secs_f64();
    registry.count_registered(urls.len());
    registry.settle();
    Some(figure_row(
        "register -f",
        rate,
        "/s",
        Target::AtLeast(1_000.0),
    ))
}
