//! Search by meaning: which model serves, what queries mean, and how agents come to their vectors.
//!
//! A model serves once it has seen every agent. Until a new one has, the one before serves on where its files are
//! still there; without any, searches go by words alone and nothing here runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_registry_embed::{Embedder, TextKind};
use a2a_registry_search::vectors::Vectors;
use a2a_registry_search::{Meaning, SearchRequest, asked_text};
use arc_swap::ArcSwapOption;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};

use crate::memory::KEPT_UNUSED;

/// Megabytes of queries' vectors that are kept ready.
const QUERY_CACHE_MEGABYTES: u64 = 16;

/// How a search asks for meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// By words alone.
    Lexical,
    /// By words and meaning.
    Hybrid,
    /// By meaning alone.
    Semantic,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Lexical, Self::Hybrid, Self::Semantic];

    /// The name in requests and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lexical => "lexical",
            Self::Hybrid => "hybrid",
            Self::Semantic => "semantic",
        }
    }

    /// How a request is answered.
    pub(crate) const fn of(request: &SearchRequest) -> Self {
        match &request.meaning {
            None => Self::Lexical,
            Some(meaning) if meaning.alone => Self::Semantic,
            Some(_) => Self::Hybrid,
        }
    }

    /// The mode of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// The model that serves, and how far others are.
#[derive(Debug)]
pub(crate) struct Meanings {
    pub(crate) serving: ArcSwapOption<Serving>,
    /// Vectors of queries, by the number of the vectors they are compared with.
    pub(crate) queries: Cache<(u64, String), Arc<[f32]>>,
    pub(crate) progress: Mutex<Vec<Progress>>,
    pub(crate) patience: Duration,
}

/// A model that searches go by.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) vectors: Arc<Vectors>,
    pub(crate) cutoff: f32,
}

/// How far a model is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Its id.
    pub model: String,
    /// What people call it.
    pub name: String,
    /// Agents that have vectors.
    pub agents: usize,
    /// Bytes of memory that these take.
    pub memory: usize,
    /// How near an agent has to be to match, once that is worked out.
    pub cutoff: Option<f32>,
    /// Whether searches go by it.
    pub serving: bool,
}

impl Progress {
    /// How far it is, without telling how many agents there are: anyone may read it.
    pub(crate) fn sentence(&self) -> String {
        match (self.serving, self.cutoff) {
            (false, _) => format!("{:?} is on its way to every agent", self.name),
            (true, None) => format!("searches go by {:?}", self.name),
            (true, Some(cutoff)) => {
                format!(
                    "searches go by {:?}; who is nearer than {cutoff:.3} matches",
                    self.name
                )
            }
        }
    }
}

/// What a query means, as a search takes it, and which state of the vectors that is of.
pub(crate) struct Meant {
    pub meaning: Meaning,
    pub version: (u64, u64, u32),
}

impl Meanings {
    /// No model yet; a query waits for at most `patience`.
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            serving: ArcSwapOption::empty(),
            queries: Cache::builder()
                .max_capacity(QUERY_CACHE_MEGABYTES * 1024 * 1024)
                .weigher(|(_, text): &(u64, String), vector: &Arc<[f32]>| {
                    u32::try_from(text.capacity() + size_of_val(&**vector)).unwrap_or(u32::MAX)
                })
                .time_to_idle(KEPT_UNUSED)
                .build(),
            progress: Mutex::default(),
            patience,
        }
    }

    /// Gives back what nobody has asked for of late.
    pub(crate) fn forget_ended(&self) {
        self.queries.run_pending_tasks();
    }

    /// Whether there is a model that searches can go by.
    pub(crate) fn serves(&self) -> bool {
        self.serving.load().is_some()
    }

    /// What a query means, where a model serves, the query says anything and the encoder answers in time.
    pub(crate) async fn of(&self, query: &str, mode: Mode) -> Option<Meant> {
        if mode == Mode::Lexical {
            return None;
        }
        let serving = self.serving.load_full()?;
        let text = asked_text(query)?;
        let vector = self.vector(&serving, text).await?;
        Some(Meant {
            version: (
                serving.vectors.number(),
                serving.vectors.snapshot().version(),
                serving.cutoff.to_bits(),
            ),
            meaning: Meaning {
                vectors: Arc::clone(&serving.vectors),
                query: vector,
                cutoff: serving.cutoff,
                alone: mode == Mode::Semantic,
            },
        })
    }

    pub(crate) async fn vector(&self, serving: &Serving, text: String) -> Option<Arc<[f32]>> {
        let key = (serving.vectors.number(), text);
        if let Some(known) = self.queries.get(&key) {
            return Some(known);
        }
        let asked = serving.embedder.embed(vec![key.1.clone()], TextKind::Query);
        let mut vectors = match tokio::time::timeout(self.patience, asked).await {
            Ok(Ok(vectors)) => vectors,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a search goes by words alone");
                return None;
            }
            Err(_) => {
                tracing::debug!("a search goes by words alone: the encoder is too slow");
                return None;
            }
        };
        let vector: Arc<[f32]> = vectors.pop()?.into();
        self.queries.insert(key, Arc::clone(&vector));
        Some(vector)
    }

    /// Tells how far a model is, in the place of what was told of it before.
    pub(crate) fn tell(&self, told: Progress) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|known| known.model != told.model);
        progress.push(told);
    }

    /// Tells no more of other models than these.
    pub(crate) fn forget_but(&self, kept: &[String]) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|known| kept.contains(&known.model));
    }
}

#[cfg(test)]
mod tests;
