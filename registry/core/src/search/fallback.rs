//! Searches that continue as full text if the vectors cannot be read.

use a2a_registry_search::{Index, IndexError, SearchAnswer, SearchRequest};

use crate::memory::meanings::Mode;

/// Searches in the given mode, or full text only if the vectors cannot be read; returns the mode used.
pub(super) fn search_or_full_text(
    index: &Index,
    mut request: SearchRequest,
) -> Result<(SearchAnswer, Mode), IndexError> {
    match index.search(&request) {
        Err(IndexError::Vectors(error)) => {
            tracing::warn!(%error, "vectors cannot be read; this search is full text only");
            request.meaning = None;
            // A position among hybrid scores means nothing among full text scores.
            request.after = None;
        }
        answer => return Ok((answer?, Mode::of(&request))),
    }
    Ok((index.search(&request)?, Mode::Lexical))
}
