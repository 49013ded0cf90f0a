//! The top ten hits of a search with the total and the facet of tags: the registry through HTTP, and SQLite's FTS5 and
//! PostgreSQL's full-text search called directly, all over the texts of the same cards.
//!
//! There are `BENCH_AGENTS` (100000) agents and `BENCH_QUERIES` (300) different queries for each engine and load; each load
//! runs for at most `BENCH_SECONDS` (30). PostgreSQL is the server that `A2A_REGISTRY_TEST_POSTGRES` names; without one
//! it is skipped, with a printed line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a bench fails by panicking, and its figures are rough"
)]
#![allow(dead_code, reason = "each bench uses a part of what they share")]

#[path = "../relevance/fts5.rs"]
mod fts5;
mod generator;
mod load;
mod report;
mod stock;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use a2a_registry_server::search::indexing::index_anew;
use futures::future::join_all;
use generator::Generator;
use load::Load;
use report::size;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, Value,
};
use stock::Stock;

/// Words per query, joined by OR.
const WORDS: usize = 3;
/// Cards inserted by one statement.
const BATCH: usize = 200;

/// A database with full-text search, and the statements of one search.
struct Engine {
    name: &'static str,
    database: DatabaseConnection,
    /// Statements for the page, the total and the facet; each has the query as its only value.
    statements: [&'static str; 3],
    /// Writes the words of a query in this engine's syntax.
    query: fn(&[&str]) -> String,
    /// The number of concurrent searches with which it is fastest.
    connections: usize,
}

const FTS5: [&str; 3] = [
    "SELECT rowid FROM cards WHERE cards MATCH ? ORDER BY rank LIMIT 10",
    "SELECT count(*) FROM cards WHERE cards MATCH ?",
    "SELECT tag, count(*) FROM cards JOIN tags ON tags.card = cards.rowid WHERE cards MATCH ? \
     GROUP BY tag ORDER BY 2 DESC, 1 LIMIT 50",
];

const POSTGRES: [&str; 3] = [
    "SELECT id FROM cards, to_tsquery('english', $1) AS q WHERE body @@ q \
     ORDER BY ts_rank(body, q) DESC LIMIT 10",
    "SELECT count(*) FROM cards WHERE body @@ to_tsquery('english', $1)",
    "SELECT tag, count(*) FROM cards, unnest(tags) AS tag WHERE body @@ to_tsquery('english', $1) \
     GROUP BY tag ORDER BY 2 DESC, 1 LIMIT 50",
];

/// Results of a load.
struct Measured {
    rate: f64,
    /// In milliseconds, sorted.
    latencies: Vec<f64>,
}

impl Measured {
    fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies[(last as f64 * share).round() as usize]
    }
}

#[tokio::main]
async fn main() {
    let agents = size("BENCH_AGENTS", 100_000);
    let generator = Generator::new(size("BENCH_SEED", 1) as u64);
    let stock = Stock::new().await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    index_anew(&stock.app, || false).await.unwrap();
    let (address, shutdown) = stock.serve().unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);

    println!("\n{agents} agents, top ten of three words, with the total and the facet of tags");
    println!(
        "{:<22} {:>11} {:>10} {:>10} {:>10} {:>9}",
        "", "connections", "searches/s", "p50, ms", "p99, ms", "slower"
    );
    let count = size("BENCH_QUERIES", 300);
    let queries = |number: usize| -> Vec<String> {
        (0..count)
            .map(|index| generator.query((number * count + index) as u64, WORDS))
            .collect()
    };
    let ours = |connections: usize, words: &[String]| {
        let paths: Vec<String> = words
            .iter()
            .map(|words| {
                format!(
                    "/v1/agents?page_size=10&facets=tag&q={}",
                    words.replace(' ', "+")
                )
            })
            .collect();
        let mut load = Load::new(address, &paths, "", "200");
        load.connections = connections;
        load.most = paths.len();
        load.time = Duration::from_secs(size("BENCH_SECONDS", 30) as u64);
        load.run().unwrap()
    };
    let mut own = Vec::new();
    for (number, connections) in [1, cores * 4].into_iter().enumerate() {
        let measured = ours(connections, &queries(number));
        own.push(measured.rate);
        row(
            "registry",
            connections,
            measured.rate,
            [measured.percentile(0.5), measured.percentile(0.99)],
            None,
        );
    }
    shutdown.cancel();

    let folder = tempfile::tempdir().unwrap();
    let mut engines = vec![fts5(folder.path(), cores).await];
    match std::env::var("A2A_REGISTRY_TEST_POSTGRES") {
        Ok(server) => engines.push(postgres(&server, cores).await),
        Err(_) => println!("SKIPPED: A2A_REGISTRY_TEST_POSTGRES names no server"),
    }
    for engine in &engines {
        let began = Instant::now();
        engine.fill(agents, generator).await;
        println!(
            "{} filled in {:.0} s",
            engine.name,
            began.elapsed().as_secs_f64()
        );
        for (number, connections) in [1, engine.connections].into_iter().enumerate() {
            let measured = engine.load(connections, queries(number)).await;
            let times = [measured.percentile(0.5), measured.percentile(0.99)];
            row(
                engine.name,
                connections,
                measured.rate,
                times,
                Some(own[number] / measured.rate),
            );
        }
        engine.empty().await;
    }
    stock.close().await;
}

fn row(name: &str, connections: usize, rate: f64, [half, most]: [f64; 2], slower: Option<f64>) {
    let slower = slower.map_or_else(String::new, |times| {
        let mark = if times < 10.0 { " missed" } else { "" };
        format!("{times:.1}x{mark}")
    });
    println!("{name:<22} {connections:>11} {rate:>10.1} {half:>10.2} {most:>10.2} {slower:>9}");
}

async fn fts5(folder: &Path, cores: usize) -> Engine {
    let url = format!(
        "sqlite://{}?mode=rwc",
        folder.join("cards.sqlite").display()
    );
    let mut options = ConnectOptions::new(url);
    options.max_connections(u32::try_from(cores).unwrap());
    let engine = Engine {
        name: "SQLite FTS5",
        database: Database::connect(options).await.unwrap(),
        statements: FTS5,
        query: |words| words.join(" OR "),
        connections: cores,
    };
    for statement in [
        "PRAGMA journal_mode = WAL",
        "CREATE VIRTUAL TABLE cards USING fts5 (body, tokenize = 'porter unicode61')",
        "CREATE TABLE tags (card INTEGER, tag TEXT, PRIMARY KEY (card, tag)) WITHOUT ROWID",
    ] {
        engine.execute(statement, Vec::new()).await;
    }
    engine
}

async fn postgres(server: &str, cores: usize) -> Engine {
    let mut options = ConnectOptions::new(server.to_owned());
    options.max_connections(u32::try_from(cores * 2).unwrap());
    let engine = Engine {
        name: "PostgreSQL full text",
        database: Database::connect(options).await.unwrap(),
        statements: POSTGRES,
        query: |words| words.join(" | "),
        connections: cores * 2,
    };
    for statement in [
        "DROP TABLE IF EXISTS cards",
        "CREATE TABLE cards (id integer PRIMARY KEY, body tsvector, tags text[])",
    ] {
        engine.execute(statement, Vec::new()).await;
    }
    engine
}

impl Engine {
    fn is_sqlite(&self) -> bool {
        self.database.get_database_backend() == DbBackend::Sqlite
    }

    async fn execute(&self, statement: &str, values: Vec<Value>) {
        let backend = self.database.get_database_backend();
        let statement = Statement::from_sql_and_values(backend, statement, values);
        self.database.execute_raw(statement).await.unwrap();
    }

    /// Inserts the cards.
    async fn fill(&self, agents: usize, generator: Generator) {
        let indexes: Vec<usize> = (0..agents).collect();
        for indexes in indexes.chunks(BATCH) {
            let cards = indexes.iter().map(|index| {
                let card = a2a_card::parse(&generator.card(*index as u64))
                    .unwrap()
                    .card;
                (*index, card)
            });
            let cards: Vec<_> = cards.collect();
            if self.is_sqlite() {
                self.fill_fts5(&cards).await;
            } else {
                self.fill_postgres(&cards).await;
            }
        }
        if self.is_sqlite() {
            self.execute("INSERT INTO cards (cards) VALUES ('optimize')", Vec::new())
                .await;
        } else {
            self.execute("CREATE INDEX ON cards USING gin (body)", Vec::new())
                .await;
            self.execute("ANALYZE cards", Vec::new()).await;
        }
    }

    async fn fill_fts5(&self, cards: &[(usize, a2a_card::AgentCard)]) {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        let (mut tag_rows, mut tag_values) = (Vec::new(), Vec::new());
        for (index, card) in cards {
            rows.push("(?, ?)");
            values.extend([number(*index), fts5::texts(card).into()]);
            for tag in tags(card) {
                tag_rows.push("(?, ?)");
                tag_values.extend([number(*index), tag.into()]);
            }
        }
        let into = format!("INSERT INTO cards (rowid, body) VALUES {}", rows.join(", "));
        self.execute(&into, values).await;
        let into = format!("INSERT INTO tags VALUES {}", tag_rows.join(", "));
        self.execute(&into, tag_values).await;
    }

    async fn fill_postgres(&self, cards: &[(usize, a2a_card::AgentCard)]) {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (index, card) in cards {
            let next = values.len() + 1;
            rows.push(format!(
                "(${next}::integer, to_tsvector('english', ${}), string_to_array(${}, ','))",
                next + 1,
                next + 2
            ));
            let tags: Vec<String> = tags(card).collect();
            values.extend([
                number(*index),
                fts5::texts(card).into(),
                tags.join(",").into(),
            ]);
        }
        let into = format!("INSERT INTO cards VALUES {}", rows.join(", "));
        self.execute(&into, values).await;
    }

    /// Runs the queries on this number of connections.
    async fn load(&self, connections: usize, queries: Vec<String>) -> Measured {
        let queries: Arc<Vec<String>> = Arc::new(queries);
        let next = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let until = began + Duration::from_secs(size("BENCH_SECONDS", 30) as u64);
        let searchers = (0..connections).map(|_| {
            let (queries, next) = (Arc::clone(&queries), Arc::clone(&next));
            async move {
                let mut latencies = Vec::new();
                while let Some(query) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    if begun >= until {
                        break;
                    }
                    self.search(query).await;
                    latencies.push(begun.elapsed().as_secs_f64() * 1_000.0);
                }
                latencies
            }
        });
        let mut latencies = join_all(searchers).await.concat();
        latencies.sort_by(f64::total_cmp);
        Measured {
            rate: latencies.len() as f64 / began.elapsed().as_secs_f64(),
            latencies,
        }
    }

    async fn search(&self, query: &str) {
        let words: Vec<&str> = query.split(' ').collect();
        let query = (self.query)(&words);
        let backend = self.database.get_database_backend();
        for statement in self.statements {
            let values = [Value::from(query.clone())];
            let statement = Statement::from_sql_and_values(backend, statement, values);
            self.database.query_all_raw(statement).await.unwrap();
        }
    }

    /// Drops the table on a server that others use too.
    async fn empty(&self) {
        if !self.is_sqlite() {
            self.execute("DROP TABLE cards", Vec::new()).await;
        }
    }
}

fn number(index: usize) -> Value {
    Value::from(i64::try_from(index).unwrap())
}

/// The different tags of a card.
fn tags(card: &a2a_card::AgentCard) -> impl Iterator<Item = String> {
    let mut tags: Vec<String> = card
        .skills
        .iter()
        .flat_map(|skill| skill.tags.clone())
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags.into_iter()
}
