//! Semantic search: the models of a process, and the vectors of its agents.
//!
//! A model serves once every agent has its vectors. Until then the previous model serves, if its files still exist;
//! without a model, searches are full text only and nothing here runs.

use std::sync::PoisonError;

use crate::context::Context;
use crate::memory::meanings::ModelProgress;
pub mod calibration;
pub mod embedding;
pub mod job;
pub mod making;
pub mod models;
pub mod texts;

/// The progress of each model of this process.
pub fn meaning_progress(context: &Context) -> Vec<ModelProgress> {
    let progress = context.meanings.progress.lock();
    progress.unwrap_or_else(PoisonError::into_inner).clone()
}
