//! Sentence encoders, in this process or behind an HTTP endpoint.
//!
//! This crate knows neither cards nor the search: it encodes texts as vectors of unit length, whose dot products
//! measure how similar the texts are in meaning.
//!
//! The encoder in this process runs any BERT model in the layout of sentence-transformers: `model_folder` and
//! `bert_config` read the settings; `tokenizer`, `bert` and `pooling` turn a text into its vector; `job_pool` runs
//! this on its own threads; `install`, `download` and `installed_models` manage the models in the data folder. One model
//! is a part of the program (`LocalEncoder::built_in`).
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod bert;
mod bert_config;
mod download;
mod encoder;
mod endpoint;
mod error;
mod install;
mod installed_models;
mod int8_matmul;
mod job_pool;
mod languages;
mod letter_statistics;
mod matmul;
mod model;
mod model_folder;
mod pooling;
mod prompts;
mod row_ops;
mod thread_priority;
mod token_table;
mod tokenizer;
mod weights;

use async_trait::async_trait;

pub use bert_config::MAX_DIMENSIONS;
pub use download::{ModelDownload, ModelFile, first_model_file, list_model_files};
pub use encoder::{EncoderOptions, LocalEncoder, MAX_THREADS, MAX_WAITING_REQUESTS};
pub use endpoint::{EndpointOpenError, EndpointOptions, RemoteEncoder};
pub use error::ModelError;
pub use install::{ModelInstallation, install_model};
pub use installed_models::{
    InstalledModel, MAX_LISTED_MODELS, ModelDescription, describe_built_in_model,
    find_current_model, list_installed_models,
};
pub use languages::ModelLanguages;
pub use model::MAX_QUERY_TOKENS;
pub use model_folder::{
    MAX_MODEL_NAME_CHARS, MAX_SETTINGS_BYTES, MAX_TOKENIZER_BYTES, MAX_WEIGHTS_BYTES,
};
pub use pooling::Pooling;
pub use prompts::MAX_PROMPT_BYTES;
pub use tokenizer::MAX_TEXT_BYTES;

/// The identity of a model. Vectors of different models cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// Lower-case hexadecimal SHA-256 of everything that determines the vectors.
    pub id: String,
    pub name: String,
    pub dimensions: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A short text whose caller waits.
    Query,
    /// A description of an agent or a skill: as long as the model accepts, encoded in the background.
    Card,
}

/// Why texts could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The limit of waiting requests is reached.
    #[error("the encoder is busy")]
    Busy,
    /// The encoder cannot be reached, or is stopping.
    #[error("the encoder is unavailable: {0}")]
    Unavailable(String),
    /// The encoder did not return vectors of this model.
    #[error("the encoder failed: {0}")]
    Failed(String),
}

/// Maximum number of texts in one call.
pub const MAX_TEXTS_PER_CALL: usize = 64;

#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    fn model_identity(&self) -> &ModelIdentity;

    /// The languages that the model knows; all where nothing shows them.
    fn model_languages(&self) -> ModelLanguages {
        ModelLanguages::All
    }

    /// Encodes at most [`MAX_TEXTS_PER_CALL`] texts, each as a vector of unit length. Dropping the future cancels work
    /// that has not begun.
    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError>;
}

#[cfg(test)]
mod tests;
