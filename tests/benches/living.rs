//! A registry as it lives: crawled, changed, restarted and merged, beside the same one with a rebuilt index and beside other
//! engines over the same cards. Prints Markdown tables, ready for docs/benches.md, each figure with its target.
//!
//! Every server is a process of its own: this program in another role, or the other engine. Processor time is that of the
//! server's process, by `/proc`.
//!
//! `LIVING` (`searches,changes,registrations,cards,answers,rules,descriptors`) names the parts. `LIVING_AGENTS`
//! (`10000,100000`) are the numbers of agents: searches, changes and rivals are measured at each, the rest at the last.
//! `BENCH_CHANGES` (2000) cards change one after the other before the restart. `BENCH_QUERIES` (800) different queries are sent
//! in each cell for at most `BENCH_SECONDS` (10). `BENCH_CARDS` (10000) cards are crawled for the cost of a new one,
//! `BENCH_DOMAINS` (20000) domains with few open files. `BENCH_BACKLOG` (60000) sources are due while another account
//! registers one, `BENCH_SINGLES` (200) registrations are timed one by one, `BENCH_BULK` (2000) are sent at once. `BENCH_PAIRS`
//! (5) is the number of runs against a bare server, taken in turns.
//!
//! Groonga and RediSearch are measured where `tests/run --prepare` has installed them, PostgreSQL where
//! `A2A_REGISTRY_TEST_POSTGRES` names a server, and `register -f` where `A2A_REGISTRY_BIN` names the program: all are given in
//! `tests/run --shell`. What is skipped says so, and how to install it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking, and its figures are rough"
)]
#![allow(dead_code, reason = "each bench uses a part of what they share")]

mod bare;
mod full_text;
mod generator;
mod here;
#[path = "living/mod.rs"]
mod living;
mod load;
mod report;
mod stock;

use std::time::Duration;

use generator::Generator;
use living::cards::{CARDS_OF_DOMAIN, changed_card, revised};
use living::origin::{self, Origin};
use living::registrations::{self, Spare};
use living::registry::{Registry, Sources};
use living::rivals::{self, Rival};
use living::searches::{self, Ages, Figures, Rivalry};
use living::tables::{self, Target, number, row};
use living::{answers, child, descriptors, rules, serving};
use report::size;
use serde_json::json;
use tempfile::TempDir;

/// Parts that are measured by default.
const PARTS: &str = "searches,changes,registrations,cards,answers,rules,descriptors";
/// New agents that come one by one, beside the changed ones.
const NEW_AGENTS: usize = 200;

#[tokio::main]
async fn main() {
    if let Some((role, settings)) = child::role() {
        match role.as_str() {
            "registry" => serving::run(&settings).await,
            "origin" => origin::run(&settings),
            "bare" => origin::run_bare(&settings),
            other => panic!("no child is a {other}"),
        }
        return;
    }
    let parts = Parts::chosen();
    let seed = size("BENCH_SEED", 1) as u64;
    let mut aged = Vec::new();
    let mut rows = Vec::new();
    let sizes = sizes(&parts);
    for (place, agents) in sizes.iter().enumerate() {
        let mut life = Life::begin(*agents, seed);
        if parts.has("changes") || parts.has("searches") {
            rows.extend(life.change());
        }
        if parts.has("searches") {
            let ages = life.ages();
            compare(&life, &ages).await;
            aged.push((*agents, ages));
        }
        if place + 1 == sizes.len() {
            rows.extend(life.end(&parts));
        }
    }
    searches::print_growth(&aged);
    if parts.has("cards") {
        rows.push(new_cards(seed, CARDS_OF_DOMAIN, 0.7));
        rows.push(new_cards(seed, 1, 1.0));
    }
    if parts.has("descriptors") {
        rows.extend(descriptors::rows(seed));
    }
    tables::print_rows("Changes, registrations, starts and answers", &rows);
}

/// The parts to measure.
struct Parts(String);

impl Parts {
    fn chosen() -> Self {
        let chosen = std::env::var("LIVING").unwrap_or_else(|_| PARTS.to_owned());
        for part in chosen.split(',') {
            let known = PARTS.split(',').any(|known| known == part);
            assert!(known, "LIVING names {part:?}, which is none of {PARTS}");
        }
        Self(chosen)
    }

    fn has(&self, part: &str) -> bool {
        self.0.split(',').any(|chosen| chosen == part)
    }

    /// Whether a part needs registries with all agents.
    fn need_life(&self) -> bool {
        ["searches", "changes", "registrations", "answers", "rules"]
            .iter()
            .any(|part| self.has(part))
    }
}

/// The numbers of agents; none where no part needs them.
fn sizes(parts: &Parts) -> Vec<usize> {
    if !parts.need_life() {
        return Vec::new();
    }
    let text = std::env::var("LIVING_AGENTS").unwrap_or_else(|_| "10000,100000".to_owned());
    let sizes = text.split(',').map(|size| {
        let size: usize = size.trim().parse().unwrap();
        size / CARDS_OF_DOMAIN * CARDS_OF_DOMAIN
    });
    sizes.collect()
}

/// A registry with its origin and its folder, and what has happened to it.
struct Life {
    agents: usize,
    generator: Generator,
    /// The number of changes so far.
    changes: usize,
    spare: Spare,
    /// Dropped before the origin and the folder. `None` only while it is started again.
    registry: Option<Registry>,
    origin: Origin,
    folder: TempDir,
}

impl Life {
    /// Crawls all agents.
    fn begin(agents: usize, seed: u64) -> Self {
        let cards = agents + NEW_AGENTS + registrations::spare_cards();
        let origin = Origin::start(cards, seed);
        let folder = tempfile::tempdir().unwrap();
        let mut registry = Registry::start(folder.path(), &json!({}));
        registry.add(sources(agents, CARDS_OF_DOMAIN), &origin);
        registry.settle();
        assert_eq!(registry.agents(), agents as u64);
        Self {
            agents,
            generator: Generator::new(seed),
            changes: 0,
            spare: Spare::new(agents, cards),
            registry: Some(registry),
            origin,
            folder,
        }
    }

    fn registry(&mut self) -> &mut Registry {
        self.registry.as_mut().unwrap()
    }

    /// Starts the registry again, with these settings.
    fn restart(&mut self, settings: &serde_json::Value) {
        self.registry.take().unwrap().stop();
        let mut registry = Registry::start(self.folder.path(), settings);
        registry.settle();
        self.registry = Some(registry);
    }

    /// Changes cards, and adds new ones, each searchable before the next.
    fn change(&mut self) -> Vec<Vec<String>> {
        let wanted = size("BENCH_CHANGES", 2_000);
        let registry = self.registry.as_mut().unwrap();
        let before = registry.cpu_when_idle();
        for change in 0..wanted {
            let card = changed_card(change, self.agents);
            self.origin.change(card);
            registry.visit(card, &self.origin);
            registry.settle();
        }
        self.changes = wanted;
        let between = registry.cpu_when_idle();
        let changed = milliseconds(between - before, wanted);
        for _ in 0..NEW_AGENTS {
            let first = self.spare.take(1);
            let one = Sources {
                first,
                domains: 1,
                urls: 1,
                account: "",
            };
            registry.add(one, &self.origin);
            registry.settle();
        }
        let new = milliseconds(registry.cpu_when_idle() - between, NEW_AGENTS);
        let agents = number(self.agents as f64);
        let label = |what: &str| format!("{what} agent of {agents}, fetch to searchable, CPU");
        vec![
            row(&label("one changed"), changed, "ms", Target::AtMost(10.0)),
            row(&label("one new"), new, "ms", Target::AtMost(10.0)),
        ]
    }

    /// Searches the registry as it is, after a restart, and with its index rebuilt.
    fn ages(&mut self) -> Ages {
        let generator = self.generator;
        let measured = |registry: &Registry| {
            let server = searches::registry(registry.address, registry.child.id());
            searches::measure(server, generator)
        };
        let running = measured(self.registry());
        self.restart(&json!({}));
        let restarted = measured(self.registry());
        self.restart(&json!({"rebuild": true}));
        let rebuilt = measured(self.registry());
        let ages = Ages {
            running,
            restarted,
            rebuilt,
        };
        searches::print_ages(self.agents, &ages);
        ages
    }

    /// How often each card was changed.
    fn revisions(&self) -> Vec<u32> {
        let mut revisions = vec![0; self.agents];
        for change in 0..self.changes {
            revisions[changed_card(change, self.agents)] += 1;
        }
        revisions
    }

    /// Measures what is left, and ends the registry.
    fn end(mut self, parts: &Parts) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        let registry = self.registry.as_mut().unwrap();
        if parts.has("answers") {
            rows.extend(answers::agent_rows(registry));
            rows.extend(answers::page_rows(registry, self.generator));
        }
        if parts.has("registrations") {
            rows.extend(registrations::rows(registry, &self.origin, &mut self.spare));
        }
        let agents = registry.agents();
        if let Some(registry) = self.registry.take() {
            registry.stop();
        }
        if parts.has("rules") {
            rows.extend(rules::rows(self.folder.path(), agents));
        }
        rows
    }
}

/// Prints the restarted registry beside the other engines over the same cards.
async fn compare(life: &Life, ages: &Ages) {
    let (generator, revisions) = (life.generator, life.revisions());
    let card = |key: usize| revised(generator, key as u64, revisions[key]);
    let mut rivalries = Vec::new();
    // One after the other, each ended before the next starts, so that none takes memory or time from another.
    let mut meet = |rival: Option<Rival>| {
        rivalries.extend(rival.map(|rival| Rivalry {
            name: rival.name,
            figures: searches::measure(rival.server, generator),
            target: rival.target,
        }));
    };
    meet(rivals::groonga(life.agents, card));
    meet(rivals::redisearch(life.agents, card));
    searches::print_rivals(life.agents, &ages.restarted, &rivalries);
    databases(life.agents, &ages.restarted, generator, card).await;
}

/// Prints the registry beside databases with full-text search, where one facet is counted.
async fn databases(
    agents: usize,
    own: &[Figures],
    generator: Generator,
    card: impl Fn(usize) -> Vec<u8>,
) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let folder = tempfile::tempdir().unwrap();
    let mut engines = vec![full_text::fts5(folder.path(), cores).await];
    match std::env::var("A2A_REGISTRY_TEST_POSTGRES") {
        Ok(server) => engines.push(full_text::postgres(&server, cores).await),
        Err(_) => println!(
            "SKIPPED PostgreSQL: A2A_REGISTRY_TEST_POSTGRES names no server; run this bench in `tests/run --shell`"
        ),
    }
    let mut rows = Vec::new();
    for engine in &engines {
        engine.fill(agents, |index| card(index as usize)).await;
        for (place, cell) in searches::cells().into_iter().enumerate() {
            if (cell.words, cell.facets) != (3, 1) {
                continue;
            }
            // Each is measured with the number of connections with which it is fastest.
            let connections = cell.connections.min(engine.connections);
            let measured = engine.load(connections, cell.queries(generator)).await;
            let times = own[place].rate / measured.rate;
            let mut row = vec![engine.name.to_owned(), cell.connections.to_string()];
            row.push(number(own[place].rate));
            row.push(number(measured.rate));
            row.push(format!(
                "{}, {}",
                number(measured.percentile(0.5)),
                number(measured.percentile(0.99))
            ));
            row.push(number(times));
            row.extend(Target::AtLeast(10.0).cells(times));
            rows.push(row);
        }
        engine.empty().await;
    }
    let title = format!(
        "Ten best of three words, total and one facet over {} agents, against databases",
        number(agents as f64)
    );
    let columns = [
        "database",
        "connections",
        "registry, a second",
        "database, a second",
        "p50, p99, ms",
        "times",
        "target",
        "met",
    ];
    tables::print(&title, &columns, &rows);
}

/// The processor time of a new card from the crawler's lease into the index, with this number of cards of each domain.
fn new_cards(seed: u64, urls: usize, most: f64) -> Vec<String> {
    let cards = size("BENCH_CARDS", 10_000) / urls * urls;
    let origin = Origin::start(cards, seed);
    let folder = tempfile::tempdir().unwrap();
    let mut registry = Registry::start(folder.path(), &json!({}));
    let before = registry.cpu_when_idle();
    registry.add(sources(cards, urls), &origin);
    registry.settle();
    let each = milliseconds(registry.cpu_when_idle() - before, cards);
    registry.stop();
    let what = format!("whole way of a new card, {urls} a domain, CPU");
    row(&what, each, "ms", Target::AtMost(most))
}

/// The first sources, with this number of card URLs of each domain.
const fn sources(cards: usize, urls: usize) -> Sources<'static> {
    Sources {
        first: 0,
        domains: cards / urls,
        urls,
        account: "",
    }
}

/// The part of one of `count` in milliseconds.
fn milliseconds(took: Duration, count: usize) -> f64 {
    took.as_secs_f64() * 1_000.0 / count as f64
}
