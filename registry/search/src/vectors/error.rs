//! Errors of storing and comparing vectors.

use std::io;

/// An error of storing or comparing vectors.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// The file cannot be created, written or read.
    #[error("the file of vectors: {0}")]
    File(#[from] io::Error),
    /// Vectors or a query with other dimensions than these vectors.
    #[error("vectors of {0} numbers do not fit")]
    Dimensions(usize),
}
