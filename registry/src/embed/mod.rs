//! Texts as vectors: sentence encoders, in this process or behind an HTTP endpoint.
//!
//! It knows neither cards nor the search: it is given texts and answers vectors of unit length, whose products say
//! how near in meaning two texts are.

mod endpoint;

use async_trait::async_trait;

pub use endpoint::{Endpoint, OpenError};

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
