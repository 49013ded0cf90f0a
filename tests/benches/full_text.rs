//! SQLite's FTS5 and PostgreSQL's full-text search over the texts of cards, called directly: the top ten hits of a
//! search with the total and the facet of tags.

pub use super::relevance::relevance_collections::fts5;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, Value,
};

use super::report::size_from_env;

/// Cards inserted by one statement.
const BATCH: usize = 200;

/// A database with full-text search, and the statements of one search.
pub struct FullTextEngine {
    /// Its name.
    pub name: &'static str,
    database: DatabaseConnection,
    /// Statements for the page, the total and the facet; each has the query as its only value.
    statements: [&'static str; 3],
    /// Writes the words of a query in this engine's syntax.
    query: fn(&[&str]) -> String,
    /// The number of concurrent searches with which it is fastest.
    pub connections: usize,
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
pub struct LoadResult {
    /// Searches per second.
    pub rate: f64,
    /// In milliseconds, sorted.
    latencies: Vec<f64>,
}

impl LoadResult {
    /// The latency in milliseconds at this percentile (0 to 1).
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies[(last as f64 * share).round() as usize]
    }
}

/// SQLite's FTS5 in a file of this folder.
pub async fn fts5(folder: &Path, cores: usize) -> FullTextEngine {
    let url = format!(
        "sqlite://{}?mode=rwc",
        folder.join("cards.sqlite").display()
    );
    let mut options = ConnectOptions::new(url);
    options.max_connections(u32::try_from(cores).unwrap());
    let engine = FullTextEngine {
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

/// PostgreSQL's full-text search on this server.
pub async fn postgres(server: &str, cores: usize) -> FullTextEngine {
    let mut options = ConnectOptions::new(server.to_owned());
    options.max_connections(u32::try_from(cores * 2).unwrap());
    let engine = FullTextEngine {
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

impl FullTextEngine {
    fn is_sqlite(&self) -> bool {
        self.database.get_database_backend() == DbBackend::Sqlite
    }

    async fn execute(&self, statement: &str, values: Vec<Value>) {
        let backend = self.database.get_database_backend();
        let statement = Statement::from_sql_and_values(backend, statement, values);
        self.database.execute_raw(statement).await.unwrap();
    }

    /// Inserts this number of cards, which `card` makes.
    pub async fn fill(&self, agents: usize, card: impl Fn(u64) -> Vec<u8>) {
        let indexes: Vec<usize> = (0..agents).collect();
        for indexes in indexes.chunks(BATCH) {
            let cards = indexes.iter().map(|index| {
                let card = a2a_card::parse_card(&card(*index as u64)).unwrap().card;
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
            values.extend([number(*index), fts5::searched_text(card).into()]);
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
                fts5::searched_text(card).into(),
                tags.join(",").into(),
            ]);
        }
        let into = format!("INSERT INTO cards VALUES {}", rows.join(", "));
        self.execute(&into, values).await;
    }

    /// Runs the queries on this number of connections.
    pub async fn run_load(&self, connections: usize, queries: Vec<String>) -> LoadResult {
        let queries: Arc<Vec<String>> = Arc::new(queries);
        let next = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let until = began + Duration::from_secs(size_from_env("BENCH_SECONDS", 30) as u64);
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
        LoadResult {
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
    pub async fn empty(&self) {
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
