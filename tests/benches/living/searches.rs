//! Searches over one set of cards: the cells of the tables, measured for each server, and the tables.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use super::cards::FACETS;
use super::child_process::wait_until_idle;
use super::http::request;
use super::search_engines::SearchEngine;
use super::tables::{Target, format_number, print};
use crate::generator::CardGenerator;
use crate::load::{Load, Protocol};
use crate::report::size_from_env;

/// Words per query, joined by OR.
const WORDS: [usize; 2] = [1, 3];
/// Numbers of facets that a search counts: the first of [`FACETS`].
const COUNTED: [usize; 4] = [0, 1, 4, 12];
/// Numbers of connections.
const CONNECTIONS: [usize; 2] = [1, 16];
/// Shortest word of a query of one word: shorter ones are stop words of some engine, which then finds nothing.
const SHORTEST: usize = 5;

/// A kind of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchCase {
    /// Words of a query.
    pub words: usize,
    /// Facets that are counted.
    pub facets: usize,
    /// Number of connections.
    pub connections: usize,
}

impl SearchCase {
    /// Its name in tables, as two cells.
    fn names(self) -> Vec<String> {
        let words = if self.words == 1 {
            "one word"
        } else {
            "three words"
        };
        let facets = match self.facets {
            0 => "no facets".to_owned(),
            1 => "one facet".to_owned(),
            count => format!("{count} facets"),
        };
        vec![format!("{words}, {facets}"), self.connections.to_string()]
    }

    /// Different queries. Where the words are few, cells that differ in their connections alone share none, so that no
    /// answer is one that was kept.
    pub fn queries(self, generator: CardGenerator) -> Vec<String> {
        let place = search_cases()
            .iter()
            .position(|cell| *cell == self)
            .unwrap();
        let (kind, turn) = (place / CONNECTIONS.len(), place % CONNECTIONS.len());
        let count = size_from_env("BENCH_QUERIES", 800);
        let first = kind as u64 * 1_000_000;
        let drawn = (first..first + 1_000_000).map(|index| generator.query(index, self.words));
        let mut taken = HashSet::new();
        drawn
            .filter(|query| self.words > 1 || query.len() >= SHORTEST)
            .filter(|query| taken.insert(query.clone()))
            .skip(turn)
            .step_by(CONNECTIONS.len())
            .take(count)
            .collect()
    }
}

/// All cells, in the order of the tables.
pub fn search_cases() -> Vec<SearchCase> {
    let mut cells = Vec::new();
    for words in WORDS {
        for facets in COUNTED {
            for connections in CONNECTIONS {
                cells.push(SearchCase {
                    words,
                    facets,
                    connections,
                });
            }
        }
    }
    cells
}

/// A server that is searched.
#[derive(Debug, Clone, Copy)]
pub struct SearchServer {
    /// Its address.
    pub address: SocketAddr,
    /// Its process.
    pub process: u32,
    /// What it speaks when this number of facets is counted.
    pub protocol: fn(usize) -> Protocol,
    /// The complete request for a query with these facets.
    pub request: fn(SocketAddr, &str, &[&str]) -> Vec<u8>,
}

/// Figures of a cell.
#[derive(Debug, Clone, Copy)]
pub struct SearchFigures {
    /// Processor time per request in milliseconds.
    pub cpu: f64,
    /// Requests per second.
    pub rate: f64,
    /// The median latency in milliseconds.
    pub p50: f64,
    /// The latency that one of a hundred exceeds.
    pub p99: f64,
    /// Kilobytes of a response.
    pub kilobytes: f64,
}

/// The registry at this address.
pub fn registry(address: SocketAddr, process: u32) -> SearchServer {
    SearchServer {
        address,
        process,
        protocol: |_| Protocol::Http,
        request: |address, words, facets| {
            let words = words.replace(' ', "+");
            let facets = match facets.is_empty() {
                true => String::new(),
                false => format!("&facets={}", facets.join(",")),
            };
            let path = format!("/v1/agents?page_size=10&q={words}{facets}");
            request(address, "GET", &path, "", "")
        },
    }
}

/// Measures every cell of a server, after searches that are not counted.
pub fn measure_searches(server: SearchServer, generator: CardGenerator) -> Vec<SearchFigures> {
    wait_until_idle(server.process);
    let warm = SearchCase {
        words: 3,
        facets: 12,
        connections: 1,
    };
    let queries: Vec<String> = (0..100)
        .map(|index| generator.query(u64::MAX - index, 3))
        .collect();
    run(server, warm, &queries);
    let cells = search_cases().into_iter();
    cells
        .map(|cell| run(server, cell, &cell.queries(generator)))
        .collect()
}

fn run(server: SearchServer, cell: SearchCase, queries: &[String]) -> SearchFigures {
    let facets = &FACETS[..cell.facets];
    let requests = queries
        .iter()
        .map(|words| (server.request)(server.address, words, facets));
    let protocol = (server.protocol)(cell.facets);
    let mut load = Load::speaking(protocol, server.address, requests.collect(), "200");
    load.process = Some(server.process);
    load.connections = cell.connections;
    load.most = queries.len();
    load.time = Duration::from_secs(size_from_env("BENCH_SECONDS", 10) as u64);
    let measured = load.run().unwrap();
    SearchFigures {
        cpu: measured.cpu_us / 1_000.0,
        rate: measured.rate,
        p50: measured.percentile(0.5),
        p99: measured.percentile(0.99),
        kilobytes: measured.bytes / 1_000.0,
    }
}

/// The figures of a registry that was crawled and changed, before and after its restart, and with its index rebuilt.
pub struct FiguresByState {
    /// The process that has crawled.
    pub running: Vec<SearchFigures>,
    /// After a restart.
    pub restarted: Vec<SearchFigures>,
    /// With a new index.
    pub rebuilt: Vec<SearchFigures>,
}

/// The most processor time of a search by its cell, in milliseconds; of fewer than 100,000 agents nothing is demanded.
const fn most_cpu(cell: SearchCase, agents: usize) -> Target {
    match (cell.words, cell.facets) {
        (3, 4) if agents >= 100_000 => Target::AtMost(4.0),
        (3, 12) if agents >= 100_000 => Target::AtMost(8.0),
        _ => Target::None,
    }
}

/// Prints a registry at its ages side by side.
pub fn print_ages(agents: usize, ages: &FiguresByState) {
    let mut rows = Vec::new();
    for (place, cell) in search_cases().into_iter().enumerate() {
        let (running, restarted) = (ages.running[place], ages.restarted[place]);
        let rebuilt = ages.rebuilt[place];
        let ratio = restarted.cpu / rebuilt.cpu;
        let most_ratio = match cell.facets {
            4 | 12 if cell.words == 3 => Target::AtMost(1.5),
            _ => Target::None,
        };
        let mut row = cell.names();
        row.push(format_number(running.cpu));
        for of in [restarted, rebuilt] {
            let latencies = format!("{}, {}", format_number(of.p50), format_number(of.p99));
            row.extend([format_number(of.cpu), format_number(of.rate), latencies]);
        }
        row.extend(most_cpu(cell, agents).cells(restarted.cpu));
        row.push(format_number(ratio));
        row.extend(most_ratio.cells(ratio));
        row.push(format_number(restarted.kilobytes));
        rows.push(row);
    }
    print(
        &format!(
            "Searches over {} agents that were crawled, changed and restarted once, beside a rebuilt index; CPU and latencies in ms",
            format_number(agents as f64)
        ),
        &[
            "search",
            "connections",
            "running since the crawl, CPU",
            "restarted, CPU",
            "a second",
            "p50, p99",
            "rebuilt, CPU",
            "a second",
            "p50, p99",
            "target of CPU",
            "met",
            "restarted / rebuilt",
            "target",
            "met",
            "kB a response",
        ],
        &rows,
    );
}

/// Prints the registry after its restart beside a rival.
pub fn print_rival(
    agents: usize,
    own: &[SearchFigures],
    rival: &SearchEngine,
    figures: &[SearchFigures],
) {
    let mut rows = Vec::new();
    for (place, cell) in search_cases().into_iter().enumerate() {
        let (own, its) = (own[place], figures[place]);
        let times = own.rate / its.rate;
        let mut row = cell.names();
        for of in [own, its] {
            row.extend([format_number(of.rate), format_number(of.cpu)]);
            row.extend([format!(
                "{}, {}",
                format_number(of.p50),
                format_number(of.p99)
            )]);
            row.push(format_number(of.kilobytes));
        }
        row.push(format_number(times));
        row.extend(Target::AtLeast((rival.target)(cell.facets)).cells(times));
        rows.push(row);
    }
    let rate = format!("{}, a second", rival.name);
    let columns = [
        "search",
        "connections",
        "registry, a second",
        "CPU, ms",
        "p50, p99, ms",
        "kB",
        rate.as_str(),
        "CPU, ms",
        "p50, p99, ms",
        "kB",
        "times",
        "target",
        "met",
    ];
    let title = format!(
        "The restarted registry over {} agents beside {} over the same cards",
        format_number(agents as f64),
        rival.name
    );
    print(&title, &columns, &rows);
}

/// Prints how the processor time of searches grows from the smallest to the largest number of agents.
pub fn print_growth(sizes: &[(usize, FiguresByState)]) {
    let [(few, small), .., (many, large)] = sizes else {
        return;
    };
    let cells = search_cases().into_iter().enumerate();
    let counted = cells.filter(|(_, cell)| cell.words == 3 && matches!(cell.facets, 4 | 12));
    let rows = counted.map(|(place, cell)| {
        let times = large.restarted[place].cpu / small.restarted[place].cpu;
        let mut row = cell.names();
        row.push(format_number(times));
        row.extend(Target::AtMost(10.0).cells(times));
        row
    });
    let title = format!(
        "Growth of the processor time of a search from {} to {} agents",
        format_number(*few as f64),
        format_number(*many as f64)
    );
    let columns = ["search", "connections", "times", "target", "met"];
    print(&title, &columns, &rows.collect::<Vec<_>>());
}
