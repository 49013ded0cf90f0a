//! In-memory state of one process: caches and states that every start rebuilds.

pub mod active_policy_sets;
pub mod agent_cache;
pub mod cached_catalog;
pub mod card_cache;
pub mod change_counters;
pub mod crawl_state;
pub mod decision_callers;
pub mod delivery_counts;
pub mod dry_runs;
pub mod embedding_pace;
pub mod fair_semaphore;
pub mod federation;
pub mod health_state;
pub mod last_crawl;
pub mod lint_pool;
pub mod outage;
pub mod pending_decisions;
pub mod refusal_counters;
pub mod rules_progress;
pub mod search_cache;
pub mod self_agent;
pub mod semantic_search;
pub mod token_uses;
pub mod webhook_pace;

use std::time::Duration;

/// Unused cache entries are dropped after this, so that an idle process frees its memory.
pub const CACHE_IDLE_TTL: Duration = Duration::from_secs(300);
