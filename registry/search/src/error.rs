//! Errors of the index.

use std::path::PathBuf;

use crate::vectors::VectorsError;

/// An error of the index. None of them loses anything: the database stays the truth.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There is no usable index: it was never built, has another schema, or its folder went away. Searches that
    /// can still be answered from what is mapped into memory are; writing needs
    /// [`begin_rebuild`](super::Index::begin_rebuild).
    #[error("the search index needs a rebuild: {reason}")]
    NeedsRebuild {
        /// What is wrong with it.
        reason: String,
    },
    /// More changes wait for the index than the overlay can hide, so an answer could show what it must not.
    /// It passes when the follower has caught up.
    #[error("the search index is too far behind: {waiting} changed agents wait for it")]
    Behind {
        /// How many changed agents the overlay holds.
        waiting: usize,
    },
    /// A request exceeds a limit.
    #[error("too many {what}: at most {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
    /// A page position belongs to another order than the requested one.
    #[error("the page position does not fit the order")]
    Position,
    /// A rebuild runs already.
    #[error("a rebuild of the search index runs already")]
    RebuildRunning,
    /// A file of the index could not be read or written; the disk may be full.
    #[error("search index, {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The search library failed; the last good state stays in use.
    #[error("search index: {0}")]
    Engine(#[from] tantivy::TantivyError),
    /// The vectors of agents cannot be read.
    #[error("search by meaning: {0}")]
    Vectors(#[from] VectorsError),
    /// What the index holds cannot be read.
    #[error("search index: stored data is damaged: {0}")]
    Damaged(String),
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> Self {
        Self::Engine(error.into())
    }
}

impl IndexError {
    /// Whether it may come from files that are damaged, and is none of the caller.
    pub(super) fn may_be_damage(&self) -> bool {
        matches!(self, Self::Engine(_) | Self::Damaged(_) | Self::Io { .. })
    }

    /// Whether only a rebuild helps.
    pub fn needs_rebuild(&self) -> bool {
        matches!(self, Self::NeedsRebuild { .. })
    }
}
