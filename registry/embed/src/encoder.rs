//! Local encoder: a model, and the threads that run it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::error::ModelError;
use super::job_pool::{JobPool, single_thread_pool};
use super::languages::ModelLanguages;
use super::model::LoadedModel;
use super::model_folder::{ModelFiles, SymlinkPolicy};
use super::pooling::Pooling;
use super::thread_priority::lower_thread_priority;
use super::{EmbedError, Embedder, MAX_TEXTS_PER_CALL, ModelIdentity, TextKind};

/// Options of a local encoder. Queries and cards have separate threads, so a query never waits for cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderOptions {
    /// Threads for queries; each encodes one request at a time.
    pub query_threads: NonZeroUsize,
    /// Maximum number of waiting queries; beyond this number the encoder is busy.
    pub max_waiting_queries: NonZeroUsize,
    pub card_threads: NonZeroUsize,
    pub max_waiting_cards: NonZeroUsize,
}

/// Maximum number of threads of either kind; larger numbers are reduced to this.
pub const MAX_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
/// Maximum number of waiting requests of either kind; larger numbers are reduced to this.
pub const MAX_WAITING_REQUESTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

impl Default for EncoderOptions {
    /// One thread of each kind: on a machine with two cores, the search keeps one while cards are encoded. A query
    /// takes a few milliseconds, so a 33rd waiting query would exceed the search timeout.
    fn default() -> Self {
        Self {
            query_threads: NonZeroUsize::MIN,
            max_waiting_queries: NonZeroUsize::MIN.saturating_add(31),
            card_threads: NonZeroUsize::MIN,
            max_waiting_cards: NonZeroUsize::MIN.saturating_add(3),
        }
    }
}

type EncodeRequest = (Vec<String>, TextKind);

/// A sentence encoder in this process, whose threads end when it is dropped.
pub struct LocalEncoder {
    model: Arc<LoadedModel>,
    queries: JobPool<EncodeRequest, Vec<Vec<f32>>>,
    cards: JobPool<EncodeRequest, Vec<Vec<f32>>>,
}

impl LocalEncoder {
    /// Opens a model folder, checks its files and encodes a test sentence. Blocks while it reads the weights, and
    /// holds them twice during that time. Symbolic links in the folder are followed.
    pub fn open(folder: &Path, options: EncoderOptions) -> Result<Self, ModelError> {
        let files = ModelFiles::read(folder, &folder_name(folder), SymlinkPolicy::Follow)?;
        Self::start(load_model(files)?, options)
    }

    /// Opens the built-in model. Its weights stay a part of the program's file in memory, and are not copied.
    pub fn built_in(options: EncoderOptions) -> Result<Self, ModelError> {
        Self::start(load_model(ModelFiles::built_in()?)?, options)
    }

    pub(super) fn start(model: LoadedModel, options: EncoderOptions) -> Result<Self, ModelError> {
        let model = Arc::new(model);
        let build_pool = |name, threads: NonZeroUsize, max_waiting: NonZeroUsize| {
            let model = model.clone();
            JobPool::start(
                name,
                threads.min(MAX_THREADS),
                max_waiting.min(MAX_WAITING_REQUESTS),
                move |(texts, kind): EncodeRequest, is_abandoned| {
                    if kind == TextKind::Card {
                        lower_thread_priority();
                    }
                    model.encode(&texts, kind, is_abandoned)
                },
            )
        };
        Ok(Self {
            queries: build_pool(
                "embed-query",
                options.query_threads,
                options.max_waiting_queries,
            )?,
            cards: build_pool(
                "embed-card",
                options.card_threads,
                options.max_waiting_cards,
            )?,
            model,
        })
    }

    /// Maximum number of tokens encoded of a card; the rest of a longer card is not encoded.
    pub fn max_card_tokens(&self) -> usize {
        self.model.max_length
    }

    pub fn pooling(&self) -> Pooling {
        self.model.pooling
    }
}

#[async_trait]
impl Embedder for LocalEncoder {
    fn model_identity(&self) -> &ModelIdentity {
        &self.model.info
    }

    fn model_languages(&self) -> ModelLanguages {
        self.model.languages.clone()
    }

    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.len() > MAX_TEXTS_PER_CALL {
            return Err(EmbedError::Failed(format!(
                "{} texts are too many for one call; at most {MAX_TEXTS_PER_CALL} are allowed",
                texts.len()
            )));
        }
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let pool = match kind {
            TextKind::Query => &self.queries,
            TextKind::Card => &self.cards,
        };
        pool.submit((texts, kind)).await
    }
}

impl std::fmt::Debug for LocalEncoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Encoder")
            .field("model", &self.model.info)
            .finish_non_exhaustive()
    }
}

/// Loads and tests a model on a separate thread, so that parallel arithmetic stays on it.
pub(super) fn load_model(files: ModelFiles) -> Result<LoadedModel, ModelError> {
    single_thread_pool("embed-load".to_owned())?.install(|| LoadedModel::load(files))
}

/// The name of the model in a folder: that of the folder, or in a cache of `huggingface_hub`, where the folder is
/// named after a commit (`models--OWNER--NAME/snapshots/COMMIT`), the name on the hub.
pub(super) fn folder_name(folder: &Path) -> String {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let file_name = |path: &Path| {
        let name = path.file_name();
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let snapshots = path.parent().filter(|parent| parent.ends_with("snapshots"));
    let cache_name = snapshots.and_then(Path::parent).map(file_name);
    let hub_name = cache_name
        .as_deref()
        .and_then(|name| name.strip_prefix("models--"));
    match hub_name {
        Some(name) => name.replace("--", "/"),
        None => file_name(&path),
    }
}
