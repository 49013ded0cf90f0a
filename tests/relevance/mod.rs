//! Relevance of search results: collections of cards and judged queries, and scores of the registry and of SQLite's
//! FTS5 over the same texts.

pub mod everyday_questions;
pub mod fts5;
mod judged_collections;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use a2a_registry_api::AgentList;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::embeddings::model_indexer::{
    EmbeddingStepResult, open_model_indexer, run_embedding_step,
};
use a2a_registry_core::search;
use a2a_registry_core::search::indexing::apply_next_events;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_embed::Embedder;

use crate::bench_registry::BenchRegistry;

pub use judged_collections::{
    JudgedCollection, JudgedQuery, QueryHalf, held_out, languages, own_collection,
    real_card_questions,
};

/// Number of hits that count for the reciprocal rank, and for recall.
const RANKED: usize = 10;
const RECALLED: usize = 5;

/// Score over the queries of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RelevanceScore {
    /// Number of queries.
    pub queries: usize,
    reciprocal: f64,
    recalled: f64,
    /// Number of queries with a right agent among the first ten hits.
    pub answered: usize,
    /// Number of these whose first right agent is marked as a weak match.
    pub weakly_answered: usize,
}

/// A hit of either side; FTS5 marks none as weak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHit {
    pub name: String,
    pub is_weak: bool,
}

impl RelevanceScore {
    /// The mean reciprocal rank of the first relevant hit; beyond the tenth it counts as 0.
    pub fn mrr(&self) -> f64 {
        self.reciprocal / self.queries.max(1) as f64
    }

    /// The mean share of the relevant agents that are among the first five hits.
    pub fn recall(&self) -> f64 {
        self.recalled / self.queries.max(1) as f64
    }

    fn add(&mut self, query: &JudgedQuery, hits: &[FoundHit]) {
        self.queries += 1;
        let relevant = |hit: &FoundHit| query.expect.contains(&hit.name);
        if let Some(position) = hits.iter().take(RANKED).position(relevant) {
            self.reciprocal += 1.0 / (position + 1) as f64;
            self.answered += 1;
            self.weakly_answered += usize::from(hits[position].is_weak);
        }
        let found = hits.iter().take(RECALLED).filter(|hit| relevant(hit));
        self.recalled += found.count() as f64 / query.expect.len().min(RECALLED) as f64;
    }
}

/// The scores of both sides, by kind.
#[derive(Debug, Clone, Default)]
pub struct ScoreComparison {
    /// The registry's and FTS5's.
    pub kinds: BTreeMap<String, (RelevanceScore, RelevanceScore)>,
    /// Number of queries that the registry answered in another mode than the requested one, as it does with a text
    /// without words, or when the encoder is late.
    pub answered_in_other_mode: usize,
}

impl ScoreComparison {
    /// The registry's score and FTS5's over all kinds.
    pub fn totals(&self) -> (RelevanceScore, RelevanceScore) {
        let add = |sum: RelevanceScore, one: RelevanceScore| RelevanceScore {
            queries: sum.queries + one.queries,
            reciprocal: sum.reciprocal + one.reciprocal,
            recalled: sum.recalled + one.recalled,
            answered: sum.answered + one.answered,
            weakly_answered: sum.weakly_answered + one.weakly_answered,
        };
        let kinds = self.kinds.values();
        kinds.fold(Default::default(), |(ours, theirs), (one, other)| {
            (add(ours, *one), add(theirs, *other))
        })
    }
}

impl fmt::Display for ScoreComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>4} {:>8} {:>8} {:>6} {:>9} {:>9}",
            "", "", "MRR@10", "FTS5", "ratio", "recall@5", "FTS5"
        )?;
        let all = ("all".to_owned(), self.totals());
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, scores)| (kind.clone(), *scores));
        for (kind, (ours, theirs)) in kinds.chain([all]) {
            writeln!(
                f,
                "{kind:<16} {:>4} {:>8.3} {:>8.3} {:>6.2} {:>9.3} {:>9.3}",
                ours.queries,
                ours.mrr(),
                theirs.mrr(),
                ours.mrr() / theirs.mrr(),
                ours.recall(),
                theirs.recall(),
            )?;
        }
        let (ours, _) = self.totals();
        writeln!(
            f,
            "right answers marked weak: {} of {}",
            ours.weakly_answered, ours.answered
        )?;
        match self.answered_in_other_mode {
            0 => Ok(()),
            queries => writeln!(f, "answered in another mode: {queries}"),
        }
    }
}

/// Runs every query of a collection on both sides, in full-text mode on the registry.
pub async fn compare_collection(collection: &JudgedCollection) -> ScoreComparison {
    let trial = RelevanceTrial::new(&collection.cards, None).await;
    let comparison = trial.run_queries(&collection.queries, "lexical").await;
    trial.close().await;
    comparison
}

/// Cards in a registry and in an FTS5 table, ready for any number of queries.
pub struct RelevanceTrial {
    stock: BenchRegistry,
    fts5: fts5::Fts5Table,
}

impl RelevanceTrial {
    /// Both sides filled with these cards; with a model, the registry has made all vectors.
    pub async fn new(cards: &[Vec<u8>], model: Option<Arc<dyn Embedder>>) -> Self {
        let stock = BenchRegistry::new().await;
        stock.add_sources(cards.len(), 1, 80).await;
        stock
            .fill(|index| cards[usize::try_from(index).unwrap()].clone())
            .await;
        while apply_next_events(&stock.app).await.unwrap() {}
        if let Some(model) = model {
            let mut embedding = open_model_indexer(&stock.app, model).await.unwrap();
            while run_embedding_step(&stock.app, &mut embedding)
                .await
                .unwrap()
                != EmbeddingStepResult::Idle
            {}
        }
        Self {
            stock,
            fts5: fts5::Fts5Table::from_cards(cards).await,
        }
    }

    /// Runs these queries on both sides, in this search mode on the registry. With `A2A_REGISTRY_RELEVANCE_MISSES` set,
    /// prints the queries whose first hit is wrong.
    pub async fn run_queries(&self, queries: &[JudgedQuery], mode: &str) -> ScoreComparison {
        let misses = std::env::var_os("A2A_REGISTRY_RELEVANCE_MISSES").is_some();
        let mut comparison = ScoreComparison::default();
        for judged in queries {
            let (ours, used_mode) = self.search(&judged.query, mode).await;
            comparison.answered_in_other_mode += usize::from(used_mode != mode);
            let theirs = self.fts5.search(&judged.query, RANKED).await;
            let theirs = theirs.into_iter().map(|name| FoundHit {
                name,
                is_weak: false,
            });
            let theirs: Vec<FoundHit> = theirs.collect();
            let is_right = |hit: &FoundHit| judged.expect.contains(&hit.name);
            if misses && !ours.first().is_some_and(is_right) {
                let names: Vec<&str> = ours.iter().map(|hit| hit.name.as_str()).collect();
                println!(
                    "{mode} {}: {:?}\n  wanted {:?}\n  got {names:?}",
                    judged.kind, judged.query, judged.expect
                );
            }
            let scores = comparison.kinds.entry(judged.kind.clone()).or_default();
            scores.0.add(judged, &ours);
            scores.1.add(judged, &theirs);
        }
        comparison
    }

    /// The first ten agents that the registry finds, best first, and the mode that it used. The search goes the whole
    /// way that one of the API goes, so that filters in words are understood.
    pub async fn search(&self, text: &str, mode: &str) -> (Vec<FoundHit>, String) {
        let query = SearchQuery {
            q: Some(text.chars().take(512).collect()),
            page_size: Some(10),
            mode: Some(mode.to_owned()),
            ..SearchQuery::default()
        };
        let found = search::search_agents(&self.stock.app, &Caller::default(), &query)
            .await
            .unwrap();
        let found: AgentList = serde_json::from_slice(&found).unwrap();
        let hits = found.agents.into_iter().map(|hit| FoundHit {
            name: hit.summary.name,
            is_weak: hit.matched.weak,
        });
        (hits.collect(), found.mode)
    }

    pub async fn close(self) {
        self.stock.close().await;
    }
}
