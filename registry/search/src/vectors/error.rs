//! Errors of the vector store.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    #[error("vector file: {0}")]
    File(#[from] io::Error),
    /// The vectors or the query have another number of dimensions than the store.
    #[error("vectors of {0} numbers do not match the length of the stored vectors")]
    Dimensions(usize),
}
