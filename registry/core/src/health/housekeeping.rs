//! Housekeeping: deletes the bytes of agents retired long ago, old totals, and sessions that have ended.

use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::crawl::DAYS_PER_SOURCE;
use a2a_registry_store::versions::BODIES_AT_ONCE;

use crate::context::Context;
use crate::error::Result;

/// How long the bytes of a retired agent's cards are stored; ids, digests, decisions and events stay.
pub const BODY_RETENTION: i64 = 90 * DAY;

/// Days for which the changes that policies on a dry run would have made are stored.
pub const DRY_RUN_DAYS: i32 = 90;

/// Frees expired cache entries, which caches themselves do only while they are used.
pub fn forget_ended(context: &Context) {
    context.searches.forget_ended();
    context.cards.forget_ended();
    context.agents.forget_ended();
    context.meanings.forget_ended();
}

/// Deletes a bounded number of expired rows; returns whether there may be more.
pub async fn housekeep(context: &Context) -> Result<bool> {
    let now = context.now();
    let write = context.store.write().await?;
    let dropped = write.bodies_evict(now.plus(-BODY_RETENTION).0).await?;
    let today = now.day();
    write
        .source_days_forget(today.saturating_sub(DAYS_PER_SOURCE))
        .await?;
    write.sessions_forget(now.0).await?;
    write
        .dry_run_changes_forget(today.saturating_sub(DRY_RUN_DAYS))
        .await?;
    write.used_attempts_forget(now.0).await?;
    let more_tasks = write
        .tasks_forget(now.0, context.config().a2a.tasks.into())
        .await?;
    write.commit().await?;
    if dropped > 0 {
        tracing::info!(
            dropped,
            "the card bytes of agents retired long ago were deleted"
        );
    }
    Ok(dropped == BODIES_AT_ONCE || more_tasks)
}
