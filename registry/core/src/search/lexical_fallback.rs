//! The fallback to full text if the vectors cannot be read.

use a2a_registry_api::search_query::SearchMode;
use a2a_registry_search::{Index, IndexError, IndexSearchResponse, SearchRequest};

use crate::process_state::semantic_search::search_request_mode;

/// Runs a search in the given mode, or as full text if the vectors cannot be read; returns the mode used.
pub(super) fn search_with_fallback(
    index: &Index,
    mut request: SearchRequest,
) -> Result<(IndexSearchResponse, SearchMode), IndexError> {
    match index.search(&request) {
        Err(IndexError::Vectors(error)) => {
            tracing::warn!(%error, "vectors cannot be read; this search is full text only");
            request.semantic = None;
            // A position among hybrid scores is meaningless among full text scores.
            request.after = None;
        }
        result => return Ok((result?, search_request_mode(&request))),
    }
    Ok((index.search(&request)?, SearchMode::Lexical))
}
