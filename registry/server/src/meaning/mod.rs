//! Search by meaning: how agents come to their vectors, and with which model.
//!
//! A model serves once it has seen every agent. Until a new one has, the one before serves on where its files are
//! still there; without any, searches go by words alone and nothing here runs.

use std::sync::PoisonError;

use crate::context::Context;
use crate::memory::meanings::Progress;
pub mod calibration;
pub mod embedding;
pub mod job;
pub mod making;
pub mod models;
pub mod texts;

/// How far each model of this process is.
pub fn meaning_progress(context: &Context) -> Vec<Progress> {
    let progress = context.meanings.progress.lock();
    progress.unwrap_or_else(PoisonError::into_inner).clone()
}
