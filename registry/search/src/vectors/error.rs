//! Why vectors cannot be kept or compared.

use std::io;

/// Why vectors cannot be kept or compared.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// The file cannot be made, written or read.
    #[error("the file of vectors: {0}")]
    File(#[from] io::Error),
    /// Vectors or a query of a length that these are not.
    #[error("vectors of {0} numbers do not fit")]
    Dimensions(usize),
}
