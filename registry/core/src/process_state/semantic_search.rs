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
use crate::process_state::embedding_pace::EmbeddingPace;
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
    /// The vectors of recent queries, by the model's id and the text.
    pub query_vectors: Cache<(Arc<str>, String), Arc<[f32]>>,
    pub progress: Mutex<Vec<ModelProgress>>,
    pub query_timeout: Duration,
    /// The permits for queries in the encoder.
    pub permits: Arc<FairSemaphore>,
}

#[derive(Debug)]
pub struct ServingModel {
    /// The id of the model.
    pub model_id: Arc<str>,
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
    /// Number of agents whose vectors are current.
    pub agents: u64,
    /// Number of agents that are to have vectors.
    pub total: u64,
    /// Whether every agent has had its vectors; new and changed agents get theirs within seconds then.
    pub complete: bool,
    /// How fast this process computes them, until they are complete.
    pub pace: Option<EmbeddingPace>,
    /// Memory of these vectors, in bytes.
    pub memory: usize,
    /// The similarity cutoff, once it is calibrated.
    pub cutoff: Option<f32>,
    /// Whether searches use the model.
    pub serving: bool,
}

impl ModelProgress {
    /// Describes the progress for callers who may read the registry's load and size.
    pub fn status_text(&self) -> String {
        let name = &self.name;
        let counts = self.counts_text();
        match (self.serving, self.cutoff) {
            (false, _) => format!("vectors of {name:?} are being computed: {counts}"),
            (true, None) => format!("searches use {name:?}, with vectors of {counts}"),
            (true, Some(cutoff)) => format!(
                "searches use {name:?}, with vectors of {counts} and a similarity cutoff of {cutoff:.3}"
            ),
        }
    }

    fn progress_text(&self, sees_all: bool) -> String {
        match sees_all {
            true => self.counts_text(),
            false => format!("{} %", self.agents * 100 / self.total.max(1)),
        }
    }

    fn counts_text(&self) -> String {
        let counts = format!("{} of {} agents", self.agents, self.total);
        match &self.pace {
            None => counts,
            Some(pace) => format!("{counts}, {}", pace.text()),
        }
    }
}

/// Describes for a page what searches use, from the progress of all models. The numbers of agents include hidden ones,
/// so only callers who may see all agents get them; others get a percentage.
pub fn search_method_text(models: &[ModelProgress], sees_all: bool) -> String {
    // The one that was reported last has taken the place of the others.
    let serving = models.iter().rfind(|model| model.serving);
    let mut parts = vec![match serving {
        Some(model) => format!("by words and by meaning, with the model {}", model.name),
        None => "by words".to_owned(),
    }];
    if let Some(model) = serving.filter(|model| !model.complete) {
        let progress = model.progress_text(sees_all);
        parts.push(format!("its vectors are being renewed: {progress}"));
    }
    for model in models.iter().filter(|model| !model.serving) {
        let used = match serving {
            Some(_) => format!("with the model {} as soon as it", model.name),
            None => format!("by meaning as soon as the model {}", model.name),
        };
        let progress = model.progress_text(sees_all);
        parts.push(format!("{used} has read every agent: {progress}"));
    }
    parts.join("; ")
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
                .weigher(|(_, text): &(Arc<str>, String), vector: &Arc<[f32]>| {
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

    /// Whether a model computes the vectors of agents. Searches may use another one meanwhile.
    pub fn is_preparing(&self) -> bool {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.iter().any(|model| !model.complete)
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
        let key = (Arc::clone(&serving.model_id), text);
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
