//! A registry in use: crawled, changed, restarted and merged, beside the same registry with a rebuilt index and beside
//! other engines over the same cards. Prints Markdown tables, ready for docs/develop/benches.md, each figure with its
//! target.
//!
//! Every server is a process of its own: this program in another role, or the other engine. Processor time is that of
//! the server's process, by `/proc`.
//!
//! `LIVING` (`changes,searches,rivals,databases,answers,registrations,rules,cards,descriptors`) names the parts, which
//! print their tables as they end, so that a failed part can be run again alone. `LIVING_AGENTS` (`10000,100000`) are
//! the numbers of agents: changes, searches and other engines are measured at each, the rest at the last. All parts
//! but the last two measure a registry that was crawled, changed and restarted, whichever parts are chosen; `rules`
//! without them leaves out the changes. Lines on standard error tell each step.
//! `BENCH_CHANGES` (2000) cards change one after the other before the restart. `BENCH_QUERIES` (800) different queries
//! are sent in each cell for at most `BENCH_SECONDS` (10; 30 for databases). `BENCH_CARDS` (10000) cards are crawled
//! for the cost of a new one, `BENCH_DOMAINS` (20000) domains with few open files. `BENCH_BACKLOG` (60000) sources are
//! due while another account registers one, `BENCH_SINGLES` (200) registrations are timed one by one, `BENCH_BULK`
//! (2000) are sent at once. `BENCH_PAIRS` (5) is the number of runs against a bare server, taken in turns.
//!
//! Groonga and RediSearch are measured where `tests/run --prepare` has installed them, PostgreSQL where
//! `A2A_REGISTRY_TEST_POSTGRES` names a server, and `register -f` where `A2A_REGISTRY_BIN` names the program:
//! `tests/run --shell` sets both. A skipped measurement prints a line that says so, and how to install what is
//! missing.

mod agent_responses;
mod cards;
mod child_process;
mod http;
mod open_files;
mod origin;
mod registrations;
mod registry;
mod registry_child;
mod rules;
mod search_engines;
mod searches;
mod tables;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cards::{CARDS_OF_DOMAIN, changed_card, revised};
use origin::CardOrigin;
use registrations::SpareCards;
use registry::{RegistryProcess, SourceRange};
use search_engines::SearchEngine;
use searches::{FiguresByState, SearchFigures};
use serde_json::json;
use tables::{Target, figure_row, format_number, tell};
use tempfile::TempDir;

use super::generator::CardGenerator;
use super::report::size_from_env;

/// Parts that are measured by default.
const PARTS: &str =
    "changes,searches,rivals,databases,answers,registrations,rules,cards,descriptors";
/// Parts that are measured at each number of agents.
const AT_EACH_SIZE: [&str; 4] = ["changes", "searches", "rivals", "databases"];
/// Parts that are measured at the last number of agents alone.
const AT_LAST_SIZE: [&str; 3] = ["answers", "registrations", "rules"];
/// New agents that come one by one, beside the changed ones.
const NEW_AGENTS: usize = 200;

pub async fn run() {
    if let Some((role, settings)) = child_process::role() {
        match role.as_str() {
            "registry" => registry_child::run_registry(&settings).await,
            "origin" => origin::run_card_origin(&settings),
            "bare" => origin::run_bare(&settings),
            other => panic!("no child is a {other}"),
        }
        return;
    }
    let parts = BenchParts::chosen();
    let seed = size_from_env("BENCH_SEED", 1) as u64;
    let mut aged = Vec::new();
    let sizes = sizes(&parts);
    for (place, agents) in sizes.iter().enumerate() {
        let is_last = place + 1 == sizes.len();
        let ages = measure_life(*agents, seed, &parts, is_last).await;
        aged.extend(ages.map(|ages| (*agents, ages)));
    }
    searches::print_growth(&aged);
    if parts.has("cards") {
        let rows = [
            new_cards(seed, CARDS_OF_DOMAIN, 0.7),
            new_cards(seed, 1, 1.0),
        ];
        tables::print_rows("New cards", &rows);
    }
    if parts.has("descriptors") {
        tables::print_rows("Open files", &open_files::measure_open_files(seed));
    }
}

/// Lets a registry of this number of agents live, and prints the chosen parts; returns the figures of its searches, if those were
/// chosen.
async fn measure_life(
    agents: usize,
    seed: u64,
    parts: &BenchParts,
    is_last: bool,
) -> Option<FiguresByState> {
    let spare = match is_last && parts.has("registrations") {
        true => registrations::spare_cards(),
        false => 0,
    };
    let mut life = LivingRegistry::begin(agents, seed, spare);
    if parts.has_any(&AT_EACH_SIZE) || parts.has_any(&AT_LAST_SIZE[..2]) {
        let changes = life.change();
        if parts.has("changes") {
            tables::print_rows("Changes", &changes);
        }
    }
    let has_searches = parts.has("searches");
    let running = has_searches.then(|| life.search());
    let copy = has_searches.then(|| tempfile::tempdir().unwrap());
    life.restart(copy.as_ref().map(TempDir::path));
    let mut ages = None;
    if has_searches || parts.has("rivals") || parts.has("databases") {
        let restarted = life.search();
        if let (Some(running), Some(copy)) = (running, copy) {
            let known = ages.insert(FiguresByState {
                running,
                restarted: restarted.clone(),
                rebuilt: search_rebuilt(copy.path(), life.generator),
            });
            searches::print_ages(agents, known);
        }
        if parts.has("rivals") {
            compare(&life, &restarted);
        }
        if parts.has("databases") {
            compare_databases(&life, &restarted).await;
        }
    }
    if is_last {
        life.end(parts);
    }
    ages
}

/// The parts to measure.
struct BenchParts(String);

impl BenchParts {
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

    fn has_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.has(part))
    }
}

/// The numbers of agents; none where no part needs them, and the last alone where no part needs the others.
fn sizes(parts: &BenchParts) -> Vec<usize> {
    let text = std::env::var("LIVING_AGENTS").unwrap_or_else(|_| "10000,100000".to_owned());
    let sizes = text.split(',').map(|size| {
        let size: usize = size.trim().parse().unwrap();
        size / CARDS_OF_DOMAIN * CARDS_OF_DOMAIN
    });
    let mut sizes: Vec<usize> = sizes.collect();
    if !parts.has_any(&AT_EACH_SIZE) {
        let needed = usize::from(parts.has_any(&AT_LAST_SIZE));
        sizes.drain(..sizes.len() - needed);
    }
    sizes
}

/// A registry with its origin and its folder, and what has happened to it.
struct LivingRegistry {
    agents: usize,
    generator: CardGenerator,
    /// The number of changes so far.
    changes: usize,
    spare: SpareCards,
    /// Dropped before the origin and the folder. `None` only while it is started again.
    registry: Option<RegistryProcess>,
    origin: CardOrigin,
    folder: TempDir,
}

impl LivingRegistry {
    /// Crawls all agents. The origin has this number of cards more, which can be registered.
    fn begin(agents: usize, seed: u64, spare: usize) -> Self {
        tell(&format!("crawling {agents} agents"));
        let cards = agents + NEW_AGENTS + spare;
        let origin = CardOrigin::start(cards, seed);
        let folder = tempfile::tempdir().unwrap();
        let mut registry = RegistryProcess::start(folder.path(), &json!({}));
        registry.add(sources(agents, CARDS_OF_DOMAIN), &origin);
        registry.settle();
        assert_eq!(registry.agents(), agents as u64);
        Self {
            agents,
            generator: CardGenerator::new(seed),
            changes: 0,
            spare: SpareCards::new(agents, cards),
            registry: Some(registry),
            origin,
            folder,
        }
    }

    /// Ends the registry and starts it again. Between both its folder is copied to the other one, if any.
    fn restart(&mut self, copy: Option<&Path>) {
        tell("restarting");
        self.registry.take().unwrap().stop();
        if let Some(copy) = copy {
            let everything = self.folder.path().join(".");
            let copied = Command::new("cp")
                .arg("-r")
                .arg(everything)
                .arg(copy)
                .status();
            assert!(copied.unwrap().success(), "the registry was not copied");
        }
        let mut registry = RegistryProcess::start(self.folder.path(), &json!({}));
        registry.settle();
        self.registry = Some(registry);
    }

    /// Searches the registry as it is.
    fn search(&self) -> Vec<SearchFigures> {
        search(self.registry.as_ref().unwrap(), self.generator)
    }

    /// Changes cards, and adds new ones, each searchable before the next.
    fn change(&mut self) -> Vec<Vec<String>> {
        let wanted = size_from_env("BENCH_CHANGES", 2_000);
        tell(&format!("changing {wanted} agents"));
        let registry = self.registry.as_mut().unwrap();
        let before = registry.cpu_when_idle();
        for change in 0..wanted {
            let card = changed_card(change, self.agents);
            self.origin.change_card(card);
            registry.visit(card, &self.origin);
            registry.settle();
        }
        self.changes = wanted;
        let between = registry.cpu_when_idle();
        let changed = milliseconds(between - before, wanted);
        for _ in 0..NEW_AGENTS {
            let first = self.spare.take(1);
            let one = SourceRange {
                first,
                domains: 1,
                urls: 1,
                account: "",
            };
            registry.add(one, &self.origin);
            registry.settle();
        }
        let new = milliseconds(registry.cpu_when_idle() - between, NEW_AGENTS);
        let agents = format_number(self.agents as f64);
        let label = |what: &str| format!("{what} agent of {agents}, fetch to searchable, CPU");
        vec![
            figure_row(&label("one changed"), changed, "ms", Target::AtMost(10.0)),
            figure_row(&label("one new"), new, "ms", Target::AtMost(10.0)),
        ]
    }

    /// How often each card was changed.
    fn revisions(&self) -> Vec<u32> {
        let mut revisions = vec![0; self.agents];
        for change in 0..self.changes {
            revisions[changed_card(change, self.agents)] += 1;
        }
        revisions
    }

    /// Prints the parts that are measured once, and ends the registry.
    fn end(mut self, parts: &BenchParts) {
        let mut registry = self.registry.take().unwrap();
        if parts.has("answers") {
            tables::print_rows("Agents as JSON", &agent_responses::agent_rows(&registry));
            let rows = agent_responses::measure_results_page(&registry, self.generator);
            tables::print_rows("The results page", &rows);
        }
        if parts.has("registrations") {
            let (origin, spare) = (&self.origin, &mut self.spare);
            let rows = registrations::single_rows(&mut registry, origin, spare);
            tables::print_rows("Registrations one by one", &rows);
            let rows = registrations::bulk_rows(&mut registry, origin, spare);
            tables::print_rows("Registrations in bulk", &rows);
        }
        let agents = registry.agents();
        registry.stop();
        if parts.has("rules") {
            let title = format!("Starts over {} agents", format_number(agents as f64));
            tables::print_rows(
                &title,
                &rules::measure_rule_changes(self.folder.path(), agents),
            );
        }
    }
}

/// Searches a registry.
fn search(registry: &RegistryProcess, generator: CardGenerator) -> Vec<SearchFigures> {
    tell("searching the registry");
    let server = searches::registry(registry.address, registry.child.id());
    searches::measure_searches(server, generator)
}

/// Searches the copy of a registry in this folder with a rebuilt index, while the registry itself keeps its own.
fn search_rebuilt(folder: &Path, generator: CardGenerator) -> Vec<SearchFigures> {
    let mut registry = RegistryProcess::start(folder, &json!({"rebuild": true}));
    registry.settle();
    let figures = search(&registry, generator);
    registry.stop();
    figures
}

/// Prints the restarted registry beside each other engine over the same cards.
fn compare(life: &LivingRegistry, restarted: &[SearchFigures]) {
    let (generator, revisions) = (life.generator, life.revisions());
    let card = |key: usize| revised(generator, key as u64, revisions[key]);
    // One after the other, each ended before the next starts, so that none takes memory or time from another.
    let meet = |rival: Option<SearchEngine>| {
        let Some(rival) = rival else { return };
        tell(&format!("searching {}", rival.name));
        let figures = searches::measure_searches(rival.server, generator);
        searches::print_rival(life.agents, restarted, &rival, &figures);
    };
    meet(search_engines::groonga(life.agents, card));
    meet(search_engines::redisearch(life.agents, card));
}

/// Prints the restarted registry beside databases with full-text search, where one facet is counted.
async fn compare_databases(life: &LivingRegistry, restarted: &[SearchFigures]) {
    let (generator, revisions) = (life.generator, life.revisions());
    let card = |key: usize| revised(generator, key as u64, revisions[key]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let folder = tempfile::tempdir().unwrap();
    let mut engines = vec![super::full_text::fts5(folder.path(), cores).await];
    match std::env::var("A2A_REGISTRY_TEST_POSTGRES") {
        Ok(server) => engines.push(super::full_text::postgres(&server, cores).await),
        Err(_) => println!(
            "SKIPPED PostgreSQL: A2A_REGISTRY_TEST_POSTGRES names no server; run this bench in `tests/run --shell`"
        ),
    }
    let mut rows = Vec::new();
    for engine in &engines {
        engine.fill(life.agents, |index| card(index as usize)).await;
        for (place, cell) in searches::search_cases().into_iter().enumerate() {
            if (cell.words, cell.facets) != (3, 1) {
                continue;
            }
            // Each is measured with the number of connections with which it is fastest.
            let connections = cell.connections.min(engine.connections);
            let measured = engine.run_load(connections, cell.queries(generator)).await;
            let times = restarted[place].rate / measured.rate;
            let mut row = vec![engine.name.to_owned(), cell.connections.to_string()];
            row.push(format_number(restarted[place].rate));
            row.push(format_number(measured.rate));
            row.push(format!(
                "{}, {}",
                format_number(measured.percentile(0.5)),
                format_number(measured.percentile(0.99))
            ));
            row.push(format_number(times));
            row.extend(Target::AtLeast(10.0).cells(times));
            rows.push(row);
        }
        engine.empty().await;
    }
    let title = format!(
        "Ten best of three words, total and one facet over {} agents, against databases",
        format_number(life.agents as f64)
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
    let cards = size_from_env("BENCH_CARDS", 10_000) / urls * urls;
    let origin = CardOrigin::start(cards, seed);
    let folder = tempfile::tempdir().unwrap();
    let mut registry = RegistryProcess::start(folder.path(), &json!({}));
    let before = registry.cpu_when_idle();
    registry.add(sources(cards, urls), &origin);
    registry.settle();
    let each = milliseconds(registry.cpu_when_idle() - before, cards);
    registry.stop();
    let what = format!("whole way of a new card, {urls} a domain, CPU");
    figure_row(&what, each, "ms", Target::AtMost(most))
}

/// The first sources, with this number of card URLs of each domain.
const fn sources(cards: usize, urls: usize) -> SourceRange<'static> {
    SourceRange {
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
