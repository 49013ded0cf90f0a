//! Semantic search: the models of a process, and the vectors of its agents.
//!
//! A model serves once every agent has its vectors. Until then the previous model serves, if its files still exist.
//! Without a model, searches are full text only and nothing in this module runs.

use std::sync::PoisonError;

use crate::context::AppContext;
use crate::process_state::semantic_search::ModelProgress;
pub mod calibration;
pub mod embedded_texts;
pub mod indexing_job;
pub mod model_indexer;
pub mod models;
pub mod vector_encoding;

/// Returns the progress of each model of this process.
pub fn embedding_progress(context: &AppContext) -> Vec<ModelProgress> {
    let progress = context.semantic_search.progress.lock();
    progress.unwrap_or_else(PoisonError::into_inner).clone()
}
