//! Errors of the index.

use std::path::PathBuf;

use crate::vectors::VectorsError;

/// An error of the index. No error loses data: the database is the source of truth.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The index was never built, has another schema, or its folder was removed. Searches continue while the index is
    /// mapped into memory; writes require [`begin_rebuild`](super::Index::begin_rebuild).
    #[error("the search index needs a rebuild: {reason}")]
    NeedsRebuild { reason: String },
    /// More changed agents wait than the overlay can hide, so a response could show hidden ones. The error ends when
    /// the follower has caught up.
    #[error("the search index is too far behind: {waiting} changed agents are not applied yet")]
    Behind { waiting: usize },
    #[error("too many {what}: at most {limit}")]
    TooMany { what: &'static str, limit: usize },
    /// A page position belongs to another sort order than the requested one.
    #[error("the page position belongs to another sort order")]
    PositionMismatch,
    #[error("a rebuild of the search index is already running")]
    RebuildRunning,
    /// A file could not be read or written; the disk may be full.
    #[error("search index, {path}: {source}")]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The search library failed; the last good state stays in use.
    #[error("search index: {0}")]
    Engine(#[from] tantivy::TantivyError),
    #[error("semantic search: {0}")]
    Vectors(#[from] VectorsError),
    #[error("search index: stored data is damaged: {0}")]
    Damaged(String),
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> Self {
        Self::Engine(error.into())
    }
}

impl IndexError {
    /// Whether damaged files may be the cause, instead of the caller or a lack of file descriptors.
    pub(super) fn may_be_damage(&self) -> bool {
        matches!(self, Self::Engine(_) | Self::Damaged(_) | Self::Io { .. })
            && !self.is_out_of_descriptors()
    }

    /// Whether the cause is a lack of file descriptors, which the search library reports as text.
    pub(super) fn is_out_of_descriptors(&self) -> bool {
        let text = self.to_string().to_lowercase();
        let signs = ["too many open files", "no file descriptors available"];
        signs.iter().any(|sign| text.contains(sign))
    }

    pub fn needs_rebuild(&self) -> bool {
        matches!(self, Self::NeedsRebuild { .. })
    }
}
