//! Texts as vectors: sentence encoders, in this process or behind an HTTP endpoint.
//!
//! It knows neither cards nor the search: it is given texts and answers vectors of unit length, whose products say
//! how near in meaning two texts are.
//!
//! The encoder in this process takes any BERT as sentence-transformers lays it out: `folder` and `config` read what its
//! files say, `tokens`, `forward` and `pooling` go from a text to its vector, `pool` keeps that to threads of its own,
//! and `install` and `installed` keep models in the data folder.

mod config;
mod encoder;
mod endpoint;
mod error;
mod folder;
mod forward;
mod install;
mod installed;
mod model;
mod pool;
mod pooling;
mod product;
mod prompts;
mod rows;
mod tokens;
mod weights;

use async_trait::async_trait;

pub use config::MAX_DIMENSIONS;
pub use encoder::{Encoder, EncoderOptions, MAX_THREADS, MAX_WAITING};
pub use endpoint::{Endpoint, EndpointOptions, OpenError};
pub use error::ModelError;
pub use folder::{MAX_NAME, MAX_SETTINGS_BYTES, MAX_TOKENIZER_BYTES, MAX_WEIGHTS_BYTES};
pub use install::{Installation, install};
pub use installed::{About, InstalledModel, MAX_LISTED, current, installed};
pub use model::QUERY_TOKENS;
pub use pooling::Pooling;
pub use prompts::MAX_PROMPT_BYTES;
pub use tokens::MAX_TEXT_BYTES;

/// What an embedder turns texts into vectors with. Vectors of different models cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Lower-case hexadecimal SHA-256 of everything that decides what its vectors are.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Numbers in a vector.
    pub dimensions: usize,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// What somebody searches for: short, and somebody waits.
    Query,
    /// What is said of an agent or a skill: as long as the model takes, and nobody waits.
    Card,
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// As much waits already as may.
    #[error("the encoder is busy")]
    Busy,
    /// It cannot be reached, or is stopping.
    #[error("the encoder is away: {0}")]
    Away(String),
    /// It answered something that is not vectors of this model.
    #[error("the encoder failed: {0}")]
    Failed(String),
}

/// The most texts that are given at once.
pub const MAX_TEXTS: usize = 64;

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// What its vectors are of.
    fn model(&self) -> &ModelInfo;

    /// A vector of unit length for each text, in order; at most [`MAX_TEXTS`]. Dropping the future takes back what has
    /// not begun.
    ///
    /// # Errors
    /// [`EmbedError`]; none of the vectors is given then.
    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError>;
}

#[cfg(test)]
mod tests;
