//! Watched agents: an account keeps a list, and those of its hooks that say so are told of the agents in it.

use a2a_registry_api::limits::{MAX_HOOKS_PER_ACCOUNT, MAX_WATCHED_AGENTS};
use a2a_registry_api::{HookFilter, WatchList};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent_watch, hook};
use a2a_registry_store::hooks::{hook_page, watched_agents};
use uuid::Uuid;

use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::hooks::notices::{parse_hook_filter, tells_of_sight};
use crate::hooks::sight::{load_agent_facts, select_agents};
use crate::visibility::caller::Caller;

/// The agents that the caller watches.
pub async fn watch_list(context: &AppContext, caller: &Caller) -> Result<WatchList> {
    let account = caller.require_permission(Permission::Read)?;
    Ok(WatchList {
        agents: watched_agents(&context.store, account.id).await?,
        has_hook: !watching_hooks(context, account.id).await?.is_empty(),
    })
}

/// Whether the caller watches an agent; `None` for callers who cannot watch any.
pub async fn is_agent_watched(
    context: &AppContext,
    caller: &Caller,
    agent: Uuid,
) -> Result<Option<bool>> {
    let account = caller.account.as_ref();
    let Some(account) = account.filter(|account| account.has_permission(Permission::Read)) else {
        return Ok(None);
    };
    let watched = watched_agents(&context.store, account.id).await?;
    Ok(Some(watched.contains(&agent)))
}

/// Adds an agent that the caller may see. Receivers know it from then on, so that they are told of changes only.
pub async fn watch_agent(context: &AppContext, caller: &Caller, agent: &str) -> Result<WatchList> {
    let account = caller.require_permission(Permission::Read)?;
    let agent = require_visible_agent(context, caller, agent).await?.id;
    let facts = load_agent_facts(context, &[agent]).await?;
    let mut known = Vec::new();
    for (row, filter) in watching_hooks(context, account.id).await? {
        let with_agent = HookFilter {
            agents: vec![agent],
            ..filter
        };
        let selected = select_agents(context, caller, &with_agent, Some(&[agent]), 1).await?;
        let seen = facts.get(&agent).filter(|_| selected.contains(&agent));
        known.extend(seen.map(|seen| seen.to_known(row.id, agent)));
    }
    let write = context.store.begin_write().await?;
    // The lock serializes concurrent changes for the count.
    write.lock_accounts().await?;
    let watched = watched_agents(&write, account.id).await?;
    if !watched.contains(&agent) {
        if watched.len() >= MAX_WATCHED_AGENTS {
            return Err(AppError::limit_reached(format!(
                "You watch {MAX_WATCHED_AGENTS} agents, which is the maximum. Stop watching one first."
            )));
        }
        let row = agent_watch::Model {
            account_id: account.id,
            agent_id: agent,
            created_at: context.now().0,
        };
        write.upsert_agent_watch(row).await?;
        // What has changed since the facts were read is noticed by a comparison.
        let now = context.now().0;
        let active = write.request_hook_comparison(Some(account.id), now).await?;
        known.retain(|row| active.contains(&row.hook_id));
        write.upsert_hook_agents(known).await?;
    }
    write.commit().await?;
    watch_list(context, caller).await
}

/// Removes an agent, which the caller may not see any more.
pub async fn unwatch_agent(context: &AppContext, caller: &Caller, agent: Uuid) -> Result<()> {
    let account = caller.require_permission(Permission::Read)?;
    let hooks = watching_hooks(context, account.id).await?;
    let write = context.store.begin_write().await?;
    write.delete_agent_watch(account.id, agent).await?;
    write.lock_active_hooks(Some(account.id)).await?;
    for (row, filter) in hooks {
        // Nothing is told of it: it is no longer asked for.
        if !filter.agents.contains(&agent) {
            write.delete_hook_agent(row.id, agent).await?;
        }
    }
    write.commit().await?;
    Ok(())
}

/// The hooks of an account that are told what it sees of watched agents.
async fn watching_hooks(
    context: &AppContext,
    account: Uuid,
) -> Result<Vec<(hook::Model, HookFilter)>> {
    let limit = MAX_HOOKS_PER_ACCOUNT as u64;
    let rows = hook_page(&context.store, Some(account), None, limit).await?;
    let parsed = rows.into_iter().filter_map(|row| {
        let filter = parse_hook_filter(&row)?;
        (filter.watched && tells_of_sight(&filter)).then_some((row, filter))
    });
    Ok(parsed.collect())
}
