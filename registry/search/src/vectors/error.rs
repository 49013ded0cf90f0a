//! Errors of storing and comparing vectors.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    #[error("the file of vectors: {0}")]
    File(#[from] io::Error),
    /// Vectors or a query with another number of dimensions than these vectors.
    #[error("vectors of {0} numbers do not fit")]
    Dimensions(usize),
}
