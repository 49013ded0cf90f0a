//! The encoder in this process: a model, and the threads that run it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::error::ModelError;
use super::folder::{Links, ModelFiles};
use super::model::Model;
use super::pool::{Pool, one_thread};
use super::pooling::Pooling;
use super::{EmbedError, Embedder, MAX_TEXTS, ModelInfo, TextKind};

/// Queries and cards have separate threads, so that a query never waits for cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderOptions {
    /// Threads that each encode one request at a time.
    pub query_threads: NonZeroUsize,
    /// Beyond this number the encoder is busy.
    pub waiting_queries: NonZeroUsize,
    pub card_threads: NonZeroUsize,
    pub waiting_cards: NonZeroUsize,
}

/// Most threads of either kind; larger numbers are reduced to this.
pub const MAX_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
/// Most waiting requests of either kind; larger numbers are reduced to this.
pub const MAX_WAITING: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

impl Default for EncoderOptions {
    /// One thread for each kind: on a machine with two cores the search keeps one while cards are encoded. A query
    /// takes some milliseconds, so a 33rd waiter would exceed the search timeout.
    fn default() -> Self {
        Self {
            query_threads: NonZeroUsize::MIN,
            waiting_queries: NonZeroUsize::MIN.saturating_add(31),
            card_threads: NonZeroUsize::MIN,
            waiting_cards: NonZeroUsize::MIN.saturating_add(3),
        }
    }
}

type Request = (Vec<String>, TextKind);

/// A sentence encoder in this process. Its threads end when it is dropped.
pub struct Encoder {
    model: Arc<Model>,
    queries: Pool<Request, Vec<Vec<f32>>>,
    cards: Pool<Request, Vec<Vec<f32>>>,
}

impl Encoder {
    /// Opens a model's folder, checks its files and encodes a sentence. Blocks while the weights are read, and holds
    /// them twice meanwhile. Symbolic links in the folder are followed.
    pub fn open(folder: &Path, options: EncoderOptions) -> Result<Self, ModelError> {
        let files = ModelFiles::read(folder, &folder_name(folder), Links::Follow)?;
        Self::start(load(files)?, options)
    }

    pub(super) fn start(model: Model, options: EncoderOptions) -> Result<Self, ModelError> {
        let model = Arc::new(model);
        let pool = |name, threads: NonZeroUsize, waiting: NonZeroUsize| {
            let model = model.clone();
            Pool::start(
                name,
                threads.min(MAX_THREADS),
                waiting.min(MAX_WAITING),
                move |(texts, kind): Request, given_up| model.encode(&texts, kind, given_up),
            )
        };
        Ok(Self {
            queries: pool(
                "embed-query",
                options.query_threads,
                options.waiting_queries,
            )?,
            cards: pool("embed-card", options.card_threads, options.waiting_cards)?,
            model,
        })
    }

    /// Most tokens of a card; the rest of a longer card is not encoded.
    pub fn max_length(&self) -> usize {
        self.model.max_length
    }

    pub fn pooling(&self) -> Pooling {
        self.model.pooling
    }
}

#[async_trait]
impl Embedder for Encoder {
    fn model(&self) -> &ModelInfo {
        &self.model.info
    }

    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.len() > MAX_TEXTS {
            return Err(EmbedError::Failed(format!(
                "{} texts are too many for one call; at most {MAX_TEXTS} are allowed",
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
        pool.ask((texts, kind)).await
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Encoder")
            .field("model", &self.model.info)
            .finish_non_exhaustive()
    }
}

/// Loads and tests a model on its own thread, so that parallel arithmetic stays on it.
pub(super) fn load(files: ModelFiles) -> Result<Model, ModelError> {
    one_thread("embed-load".to_owned())?.install(|| Model::load(files))
}

pub(super) fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
