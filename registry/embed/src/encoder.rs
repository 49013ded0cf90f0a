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

/// How many threads encode, and how many requests wait for them. Queries and cards have threads of their own, so that
/// a query never waits behind cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderOptions {
    /// Threads for queries, each of which encodes one request at a time.
    pub query_threads: NonZeroUsize,
    /// Requests that wait for them; one more is told that the encoder is busy.
    pub waiting_queries: NonZeroUsize,
    /// Threads for cards.
    pub card_threads: NonZeroUsize,
    /// Requests that wait for them.
    pub waiting_cards: NonZeroUsize,
}

/// The most threads of either kind; whoever asks for more gets these.
pub const MAX_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
/// The most requests of either kind that wait; whoever asks for more gets these.
pub const MAX_WAITING: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

impl Default for EncoderOptions {
    /// One thread for each kind: on a machine of two cores the search keeps one while cards are encoded. A query takes
    /// some milliseconds, so a 33rd waiter would exceed the search timeout.
    fn default() -> Self {
        Self {
            query_threads: NonZeroUsize::MIN,
            waiting_queries: NonZeroUsize::MIN.saturating_add(31),
            card_threads: NonZeroUsize::MIN,
            waiting_cards: NonZeroUsize::MIN.saturating_add(3),
        }
    }
}

/// Texts that wait for their vectors.
type Request = (Vec<String>, TextKind);

/// A sentence encoder that runs in this process. Its threads end when it is dropped.
pub struct Encoder {
    model: Arc<Model>,
    queries: Pool<Request, Vec<Vec<f32>>>,
    cards: Pool<Request, Vec<Vec<f32>>>,
}

impl Encoder {
    /// Opens a model's folder, checks everything in it and encodes a sentence. This blocks for as long as reading the
    /// weights takes, and holds them twice meanwhile. Symbolic links in the folder are followed.
    ///
    /// # Errors
    /// In one sentence that says what to do.
    pub fn open(folder: &Path, options: EncoderOptions) -> Result<Self, ModelError> {
        let files = ModelFiles::read(folder, &folder_name(folder), Links::Follow)?;
        Self::start(load(files)?, options)
    }

    /// Starts the threads of a model.
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

    /// The longest card, in tokens; the rest of a longer one is not read.
    pub fn max_length(&self) -> usize {
        self.model.max_length
    }

    /// How the vectors of tokens become one.
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
                "{} texts were given at once, and {MAX_TEXTS} are the most",
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

/// Loads and tries a model on a thread of its own, for what its arithmetic may be split up into stays there.
pub(super) fn load(files: ModelFiles) -> Result<Model, ModelError> {
    one_thread("embed-load".to_owned())?.install(|| Model::load(files))
}

/// What a folder is called, for models that do not name themselves.
pub(super) fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
