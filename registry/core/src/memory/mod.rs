//! In-memory state of one process: caches and states that every start rebuilds.

pub mod agents;
pub mod cards;
pub mod changes;
pub mod database;
pub mod dry_runs;
pub mod fair_semaphore;
pub mod federation;
pub mod last_crawl;
pub mod lints;
pub mod meanings;
pub mod outage;
pub mod own_agent;
pub mod policies;
pub mod published;
pub mod refusals;
pub mod rules_progress;
pub mod searches;
pub mod stream;
pub mod token_uses;

use std::time::Duration;

/// Unused cache entries are dropped after this, so that an idle process frees its memory.
pub const KEPT_UNUSED: Duration = Duration::from_secs(300);
