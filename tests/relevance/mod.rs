//! How well searches find what is meant: collections of cards and questions, and who answers them best.
//!
//! The registry answers through its own search, SQLite's FTS5 over the same texts beside it.

pub mod fts5;
mod sets;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use a2a_registry_api::AgentList;
use a2a_registry_embed::Embedder;
use a2a_registry_search::asked_text;
use a2a_registry_server::caller::Caller;
use a2a_registry_server::meaning::embedding::{EmbeddingStep, embedding_open, embedding_step};
use a2a_registry_server::search;
use a2a_registry_server::search::indexing::index_next;
use a2a_registry_server::search::query::SearchQuery;

use crate::stock::Stock;

pub use sets::{Collection, JudgedQuery, held_out, own};

/// How many answers count for the reciprocal rank, and how many for recall.
const RANKED: usize = 10;
const RECALLED: usize = 5;

/// How well questions of one kind were answered.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Questions.
    pub questions: usize,
    reciprocal: f64,
    recalled: f64,
}

impl Score {
    /// The mean of one over the place of the first right answer, 0 beyond the tenth.
    pub fn mrr(&self) -> f64 {
        self.reciprocal / self.questions.max(1) as f64
    }

    /// The mean share of the right answers that are among the first five.
    pub fn recall(&self) -> f64 {
        self.recalled / self.questions.max(1) as f64
    }

    fn add(&mut self, question: &JudgedQuery, answers: &[String]) {
        self.questions += 1;
        let right = |name: &String| question.expect.contains(name);
        if let Some(place) = answers.iter().take(RANKED).position(right) {
            self.reciprocal += 1.0 / (place + 1) as f64;
        }
        let found = answers.iter().take(RECALLED).filter(|name| right(name));
        self.recalled += found.count() as f64 / question.expect.len().min(RECALLED) as f64;
    }
}

/// The scores of both sides, by kind.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// The registry's and FTS5's.
    pub kinds: BTreeMap<String, (Score, Score)>,
}

impl Comparison {
    /// The registry's score and FTS5's over all kinds.
    pub fn all(&self) -> (Score, Score) {
        let add = |sum: Score, one: Score| Score {
            questions: sum.questions + one.questions,
            reciprocal: sum.reciprocal + one.reciprocal,
            recalled: sum.recalled + one.recalled,
        };
        let kinds = self.kinds.values();
        kinds.fold(Default::default(), |(ours, theirs), (one, other)| {
            (add(ours, *one), add(theirs, *other))
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>4} {:>8} {:>8} {:>6} {:>9} {:>9}",
            "", "", "MRR@10", "FTS5", "ratio", "recall@5", "FTS5"
        )?;
        let all = ("all".to_owned(), self.all());
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, scores)| (kind.clone(), *scores));
        for (kind, (ours, theirs)) in kinds.chain([all]) {
            writeln!(
                f,
                "{kind:<16} {:>4} {:>8.3} {:>8.3} {:>6.2} {:>9.3} {:>9.3}",
                ours.questions,
                ours.mrr(),
                theirs.mrr(),
                ours.mrr() / theirs.mrr(),
                ours.recall(),
                theirs.recall(),
            )?;
        }
        Ok(())
    }
}

/// Asks both sides every question of a collection, the registry by words. With `A2A_REGISTRY_RELEVANCE_MISSES` set,
/// prints the questions whose first answer is wrong.
pub async fn compare(collection: &Collection) -> Comparison {
    compare_by(collection, "lexical", None).await
}

/// As [`compare`], in one of the modes of searching, with the model that it takes.
pub async fn compare_by(
    collection: &Collection,
    mode: &str,
    model: Option<Arc<dyn Embedder>>,
) -> Comparison {
    let stock = Stock::new().await;
    stock.add_sources(collection.cards.len(), 1, 80).await;
    stock
        .fill(|place| collection.cards[usize::try_from(place).unwrap()].clone())
        .await;
    while index_next(&stock.app).await.unwrap() {}
    if let Some(model) = model {
        let mut embedding = embedding_open(&stock.app, model).await.unwrap();
        while embedding_step(&stock.app, &mut embedding).await.unwrap() != EmbeddingStep::Done {}
    }
    let fts5 = fts5::Table::of(&collection.cards).await;
    let misses = std::env::var_os("A2A_REGISTRY_RELEVANCE_MISSES").is_some();
    let mut comparison = Comparison::default();
    for question in &collection.questions {
        let ours = search(&stock, &question.query, mode).await;
        let theirs = fts5.search(&question.query, RANKED).await;
        if misses
            && !ours
                .first()
                .is_some_and(|name| question.expect.contains(name))
        {
            println!(
                "{}: {:?}\n  wanted {:?}\n  got {ours:?}",
                question.kind, question.query, question.expect
            );
        }
        let scores = comparison.kinds.entry(question.kind.clone()).or_default();
        scores.0.add(question, &ours);
        scores.1.add(question, &theirs);
    }
    stock.close().await;
    comparison
}

/// The names that the registry finds, the best first.
async fn search(stock: &Stock, query: &str, mode: &str) -> Vec<String> {
    let query = SearchQuery {
        q: Some(query.chars().take(512).collect()),
        page_size: Some(10),
        mode: Some(mode.to_owned()),
        ..SearchQuery::default()
    };
    let found = search::search(&stock.app, &Caller::default(), &query)
        .await
        .unwrap();
    let found: AgentList = serde_json::from_slice(&found).unwrap();
    // Some card's example is no text at all, and asks for nothing that could mean anything.
    if asked_text(query.q.as_deref().unwrap_or_default()).is_some() {
        assert_eq!(found.mode, mode);
    }
    let names = found.agents.into_iter().map(|hit| hit.summary.name);
    names.collect()
}
