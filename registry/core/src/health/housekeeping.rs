//! Housekeeping: deletes unapproved card bytes of agents retired long ago, old totals, decisions and deliveries,
//! credentials of ended sources, and ended sessions.

use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::versions::BODY_DELETE_BATCH;
use a2a_registry_store::visit_results::MAX_DAYS_PER_SOURCE;

use crate::context::AppContext;
use crate::decision_log::{
    DECISION_RETENTION, MAX_DECISIONS, MAX_DECISIONS_OF_NETWORKS, NETWORK_ASKER_PREFIX,
};
use crate::error::Result;

/// How long card bytes that were never approved are kept after their agent was retired; ids, digests, decisions and
/// events stay.
pub const BODY_RETENTION: i64 = 90 * DAY;

/// How long deliveries of hooks that were made are kept.
pub const DELIVERED_RETENTION: i64 = 7 * DAY;

/// How long deliveries of hooks that were given up are kept, so that they can be replayed.
pub const DEAD_RETENTION: i64 = 30 * DAY;

/// Days for which the results of dry runs of policies are kept.
pub const DRY_RUN_DAYS: i32 = 90;

/// Frees expired cache entries: the caches do it themselves only while they are in use.
pub fn evict_expired_caches(context: &AppContext) {
    context.search_cache.evict_expired();
    context.card_cache.evict_expired();
    context.agent_cache.evict_expired();
    context.semantic_search.evict_expired();
    context.decision_callers.evict_expired();
}

/// Deletes a bounded number of expired rows; returns whether there may be more.
pub async fn delete_expired_rows(context: &AppContext) -> Result<bool> {
    let now = context.now();
    let write = context.store.begin_write().await?;
    let dropped = write
        .delete_retired_bodies(now.plus_micros(-BODY_RETENTION).0)
        .await?;
    let today = now.days_since_epoch();
    write
        .delete_ended_source_totals(today.saturating_sub(MAX_DAYS_PER_SOURCE))
        .await?;
    write.delete_credentials_of_ended_sources().await?;
    write.delete_ended_sessions(now.0).await?;
    write
        .delete_old_dry_run_changes(today.saturating_sub(DRY_RUN_DAYS))
        .await?;
    let ended = now.plus_micros(-DECISION_RETENTION).0;
    let networks = (NETWORK_ASKER_PREFIX, MAX_DECISIONS_OF_NETWORKS);
    write
        .delete_old_access_decisions(ended, MAX_DECISIONS, networks)
        .await?;
    write.delete_expired_sign_in_attempts(now.0).await?;
    write
        .delete_old_hook_deliveries(
            now.plus_micros(-DELIVERED_RETENTION).0,
            now.plus_micros(-DEAD_RETENTION).0,
        )
        .await?;
    let more_tasks = write
        .prune_task_batch(now.0, context.config().a2a.tasks.into())
        .await?;
    write.commit().await?;
    if dropped > 0 {
        tracing::info!(
            dropped,
            "unapproved card bytes of agents retired long ago were deleted"
        );
    }
    Ok(dropped == BODY_DELETE_BATCH || more_tasks)
}
