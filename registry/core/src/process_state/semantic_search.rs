//! The state of semantic search in one process: the serving model, the vectors of queries, and the progress of models.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_registry_api::search_query::SearchMode;
use a2a_registry_embed::{EmbedError, Embedder, ModelLanguages, TextKind};
use a2a_registry_search::vectors::VectorStore;
use a2a_registry_search::{SearchRequest, SemanticQuery, query_words};
use arc_swap::ArcSwapOption;
use moka::sync::Cache;

use crate::process_state::CACHE_IDLE_TTL;
use crate::process_state::fair_semaphore::{FairSemaphore, MAX_WAITING, MAX_WAITING_PER_CALLER};
use crate::visibility::caller::CallerKey;

/// Megabytes of cached query vectors.
const QUERY_CACHE_MEGABYTES: u64 = 16;

/// Maximum number of concurrent queries in the encoder. The number is small because the encoder serves them in order
/// of arrival.
const MAX_CONCURRENT_ENCODES: usize = 8;

/// The mode of a response to this request.
pub const fn search_request_mode(request: &SearchRequest) -> SearchMode {
    match &request.semantic {
        None => SearchMode::Lexical,
        Some(semantic) if semantic.semantic_only => SearchMode::Semantic,
        Some(_) => SearchMode::Hybrid,
    }
}

/// The serving model, and the progress of all models.
#[derive(Debug)]
pub struct SemanticSearchState {
    pub serving_model: ArcSwapOption<ServingModel>,
    /// The vectors of queries, by the number of the vector set with which they are compared.
    pub query_vectors: Cache<(u64, String), Arc<[f32]>>,
    pub progress: Mutex<Vec<ModelProgress>>,
    pub query_timeout: Duration,
    /// The permits for queries in the encoder.
    pub permits: Arc<FairSemaphore>,
}

#[derive(Debug)]
pub struct ServingModel {
    pub embedder: Arc<dyn Embedder>,
    pub vectors: Arc<VectorStore>,
    pub cutoff: f32,
    /// The languages of the queries that it encodes.
    pub languages: ModelLanguages,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelProgress {
    pub model: String,
    pub name: String,
    /// Number of agents that have vectors.
    pub agents: usize,
    /// Memory of these vectors, in bytes.
    pub memory: usize,
    /// The similarity cutoff, once it is calibrated.
    pub cutoff: Option<f32>,
    /// Whether searches use the model.
    pub serving: bool,
}

impl ModelProgress {
    /// Describes the progress without the number of agents, because anyone may read it.
    pub fn status_text(&self) -> String {
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

/// The semantic part of a query, and the version of the vectors to which it belongs.
pub struct QueryEmbedding {
    pub semantic_query: SemanticQuery,
    pub vectors_version: (u64, u64, u32),
}

impl SemanticSearchState {
    /// Makes the state; a query waits for at most `query_timeout`.
    pub fn new(query_timeout: Duration) -> Self {
        Self {
            serving_model: ArcSwapOption::empty(),
            query_vectors: Cache::builder()
                .max_capacity(QUERY_CACHE_MEGABYTES * 1024 * 1024)
                .weigher(|(_, text): &(u64, String), vector: &Arc<[f32]>| {
                    u32::try_from(text.capacity() + size_of_val(&**vector)).unwrap_or(u32::MAX)
                })
                .time_to_idle(CACHE_IDLE_TTL)
                .build(),
            progress: Mutex::default(),
            query_timeout,
            permits: FairSemaphore::new(
                MAX_CONCURRENT_ENCODES,
                MAX_WAITING,
                MAX_WAITING_PER_CALLER,
            ),
        }
    }

    /// Frees query vectors that were not used recently.
    pub fn evict_expired(&self) {
        self.query_vectors.run_pending_tasks();
    }

    pub fn has_model(&self) -> bool {
        self.serving_model.load().is_some()
    }

    /// Whether a query is in a language that the serving model does not know, so that its vector would mislead.
    pub fn is_foreign_query(&self, query: &str) -> bool {
        let serving = self.serving_model.load();
        serving.as_ref().is_some_and(|serving| {
            query_words(query).is_some_and(|text| !serving.languages.cover_question(&text))
        })
    }

    /// Computes the semantic part of a query; `None` without a model, for a query without words, and if the encoder
    /// does not respond in time.
    pub async fn embed_query(
        &self,
        caller: CallerKey,
        query: &str,
        mode: SearchMode,
    ) -> Option<QueryEmbedding> {
        if mode == SearchMode::Lexical {
            return None;
        }
        let serving = self.serving_model.load_full()?;
        let text = query_words(query)?;
        let vector = self.query_vector(caller, &serving, text).await?;
        Some(QueryEmbedding {
            vectors_version: (
                serving.vectors.unique_id(),
                serving.vectors.snapshot().version(),
                serving.cutoff.to_bits(),
            ),
            semantic_query: SemanticQuery {
                vectors: Arc::clone(&serving.vectors),
                query: vector,
                cutoff: serving.cutoff,
                semantic_only: mode == SearchMode::Semantic,
            },
        })
    }

    pub async fn query_vector(
        &self,
        caller: CallerKey,
        serving: &ServingModel,
        text: String,
    ) -> Option<Arc<[f32]>> {
        let key = (serving.vectors.unique_id(), text);
        if let Some(cached) = self.query_vectors.get(&key) {
            return Some(cached);
        }
        let embedding = async {
            let permit = self.permits.acquire(caller).await;
            let _permit = permit.map_err(|_| EmbedError::Busy)?;
            let embedder = &serving.embedder;
            embedder.embed(vec![key.1.clone()], TextKind::Query).await
        };
        let mut vectors = match tokio::time::timeout(self.query_timeout, embedding).await {
            Ok(Ok(vectors)) => vectors,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the encoder failed; this search is full text only");
                return None;
            }
            Err(_) => {
                tracing::debug!(
                    "the encoder did not respond in time; this search is full text only"
                );
                return None;
            }
        };
        let vector: Arc<[f32]> = vectors.pop()?.into();
        self.query_vectors.insert(key, Arc::clone(&vector));
        Some(vector)
    }

    pub fn set_progress(&self, update: ModelProgress) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|known| known.model != update.model);
        progress.push(update);
    }

    /// Removes the progress of all models but these.
    pub fn retain_model_progress(&self, models: &[String]) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|known| models.contains(&known.model));
    }
}

#[cfg(test)]
mod tests;
