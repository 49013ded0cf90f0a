//! What one process keeps in memory: caches and states that every start makes anew.

pub mod cards;
pub mod changes;
pub mod database;
pub mod meanings;
pub mod orders;
pub mod outage;
pub mod searches;
pub mod stream;

use std::time::Duration;

/// What is kept ready and asked for by nobody goes after this; a process that is idle gives its memory back.
pub(crate) const KEPT_UNUSED: Duration = Duration::from_secs(300);
