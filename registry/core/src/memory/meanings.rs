//! The state of semantic search in one process: the serving model, the vectors of queries, and the progress of models.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_card::named_enum;
use a2a_registry_embed::{EmbedError, Embedder, TextKind};
use a2a_registry_search::vectors::Vectors;
use a2a_registry_search::{Meaning, SearchRequest, asked_text};
use arc_swap::ArcSwapOption;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};

use crate::memory::KEPT_UNUSED;
use crate::memory::fair_semaphore::{FairSemaphore, MAX_WAITING, MAX_WAITING_PER_CALLER};
use crate::visibility::caller::CallerKey;

/// Megabytes of cached query vectors.
const QUERY_CACHE_MEGABYTES: u64 = 16;

/// Maximum number of queries in the encoder: it serves them in the order in which they come, so they are few.
const ENCODED_AT_ONCE: usize = 8;

named_enum! {
    #[derive(Serialize, Deserialize)]
    pub enum Mode {
        Lexical = "lexical",
        /// Full text and semantic.
        Hybrid = "hybrid",
        Semantic = "semantic",
    }
}

impl Mode {
    /// The mode of a response to this request.
    pub const fn of(request: &SearchRequest) -> Self {
        match &request.meaning {
            None => Self::Lexical,
            Some(meaning) if meaning.alone => Self::Semantic,
            Some(_) => Self::Hybrid,
        }
    }
}

/// The serving model, and the progress of all.
#[derive(Debug)]
pub struct Meanings {
    pub serving: ArcSwapOption<ServingModel>,
    /// Vectors of queries, by the number of the set of vectors they are compared with.
    pub queries: Cache<(u64, String), Arc<[f32]>>,
    pub progress: Mutex<Vec<ModelProgress>>,
    pub patience: Duration,
    /// A permit for each query that the encoder has.
    pub permits: Arc<FairSemaphore>,
}

#[derive(Debug)]
pub struct ServingModel {
    pub embedder: Arc<dyn Embedder>,
    pub vectors: Arc<Vectors>,
    pub cutoff: f32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelProgress {
    pub model: String,
    pub name: String,
    /// Agents that have vectors.
    pub agents: usize,
    /// The memory that these take, in bytes.
    pub memory: usize,
    /// The similarity cutoff, once it is calibrated.
    pub cutoff: Option<f32>,
    /// Whether searches use it.
    pub serving: bool,
}

impl ModelProgress {
    /// A sentence on its progress, without the number of agents: anyone may read it.
    pub fn sentence(&self) -> String {
        match (self.serving, self.cutoff) {
            (false, _) => format!("vectors of {:?} are being computed", self.name),
            (true, None) => format!("searches use {:?}", self.name),
            (true, Some(cutoff)) => {
                format!(
                    "searches use {:?}, with a similarity cutoff of {cutoff:.3}",
                    self.name
                )
            }
        }
    }
}

/// The semantic part of a query, and the version of the vectors that it is for.
pub struct QueryMeaning {
    pub meaning: Meaning,
    pub version: (u64, u64, u32),
}

impl Meanings {
    /// A query waits for at most `patience`.
    pub fn new(patience: Duration) -> Self {
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
            permits: FairSemaphore::new(ENCODED_AT_ONCE, MAX_WAITING, MAX_WAITING_PER_CALLER),
        }
    }

    /// Frees query vectors that were not used lately.
    pub fn forget_ended(&self) {
        self.queries.run_pending_tasks();
    }

    pub fn serves(&self) -> bool {
        self.serving.load().is_some()
    }

    /// The semantic part of a query; `None` without a model, for a query without words, and if the encoder does not
    /// answer in time.
    pub async fn of(&self, caller: CallerKey, query: &str, mode: Mode) -> Option<QueryMeaning> {
        if mode == Mode::Lexical {
            return None;
        }
        let serving = self.serving.load_full()?;
        let text = asked_text(query)?;
        let vector = self.vector(caller, &serving, text).await?;
        Some(QueryMeaning {
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

    pub async fn vector(
        &self,
        caller: CallerKey,
        serving: &ServingModel,
        text: String,
    ) -> Option<Arc<[f32]>> {
        let key = (serving.vectors.number(), text);
        if let Some(known) = self.queries.get(&key) {
            return Some(known);
        }
        let asked = async {
            let permit = self.permits.acquire(caller).await;
            let _permit = permit.map_err(|_| EmbedError::Busy)?;
            let embedder = &serving.embedder;
            embedder.embed(vec![key.1.clone()], TextKind::Query).await
        };
        let mut vectors = match tokio::time::timeout(self.patience, asked).await {
            Ok(Ok(vectors)) => vectors,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the encoder failed; this search is full text only");
                return None;
            }
            Err(_) => {
                tracing::debug!(
                    "the encoder did not answer in time; this search is full text only"
                );
                return None;
            }
        };
        let vector: Arc<[f32]> = vectors.pop()?.into();
        self.queries.insert(key, Arc::clone(&vector));
        Some(vector)
    }

    pub fn set_progress(&self, update: ModelProgress) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|known| known.model != update.model);
        progress.push(update);
    }

    /// Removes the progress of all models but these.
    pub fn forget_but(&self, kept: &[String]) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|known| kept.contains(&known.model));
    }
}

#[cfg(test)]
mod tests;
