//! Agents as they are answered: rendered once for each class of callers, and kept while nothing of them has changed.

use std::sync::Arc;

use a2a_registry_api::Agent;
use a2a_registry_domain::role::Permission;
use a2a_registry_search::sees;
use a2a_registry_store::agents;
use uuid::Uuid;

use crate::agents::policy_facts::{invoke_matches, labels_of, tried_matches};
use crate::agents::records::records;
use crate::agents::replacements::is_visible;
use crate::agents::views::{agent_show, agent_visible, keeper_of, view_with_holds};
use crate::context::Context;
use crate::database::demand_database;
use crate::error::AppError;
use crate::memory::agents::{AgentStamp, RenderedAgent, RenderedJson};
use crate::memory::dry_runs::Shown;
use crate::visibility::caller::Caller;

/// One agent in full, as [`agent_show`](crate::agents::views::agent_show) gives it, rendered.
///
/// # Errors
/// `NotFound` where there is none, or none the caller may see; `Unavailable` if the database has not responded for too
/// long.
pub async fn agent_rendered(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<RenderedJson, AppError> {
    let rendered = agent_entry(context, caller, agent).await?;
    if rendered.discover.is_some() {
        let policies = context.policies.in_force();
        let shown = || Shown::Agent(rendered.id);
        context.dry_runs.answered(&policies, caller, shown);
    }
    let sees_holds = caller.may(Permission::SeeAll) || caller.is(rendered.keeper);
    if sees_holds && rendered.has_audience {
        // The names of groups and collections are not of the rows that the entry is kept by.
        return RenderedJson::of(&agent_show(context, caller, agent).await?);
    }
    let with_holds = rendered.with_holds.as_ref().filter(|_| sees_holds);
    let answer = with_holds.unwrap_or(&rendered.without_holds);
    if let Some(replacement) = rendered.replacement
        && !is_visible(context, caller, replacement).await?
    {
        let mut view = parsed(answer)?;
        if let Some(deprecation) = &mut view.hit.summary.deprecation {
            deprecation.replacement = None;
        }
        return RenderedJson::of(&view);
    }
    Ok(answer.clone())
}

/// The entry of an agent that the caller may see.
pub async fn agent_entry(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<Arc<RenderedAgent>, AppError> {
    demand_database(context)?;
    let missing = || AppError::no_agent(agent);
    let id = match agent.parse::<Uuid>() {
        Ok(id) => Some(id),
        Err(_) if agent.starts_with("urn:") => {
            let row = agents::agent_by_urn(&context.store, agent).await?;
            row.map(|row| row.id)
        }
        Err(_) => return Err(missing()),
    };
    if let Some(kept) = id.and_then(|id| cached_entry(context, id)) {
        // Most callers have no account, and all of those see the same agents.
        let is_visible = match caller.account {
            None => kept.is_public,
            Some(_) => kept.is_visible_to(caller, &context.policies.in_force()),
        };
        if is_visible {
            return Ok(kept);
        }
    }
    // A kept answer that the caller may not see must not be refused faster than a missing one, nor be made for it.
    let id = agent_visible(context, caller, agent).await?.id;
    let rendered = rendered(context, id).await?.ok_or_else(missing)?;
    match rendered.is_visible_to(caller, &context.policies.in_force()) {
        true => Ok(rendered),
        false => Err(missing()),
    }
}

/// The kept answer about an agent, parsed.
///
/// # Errors
/// `NotFound` for an agent that is missing or that the caller may not see, and failures of the database.
pub async fn agent_answered(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<Agent, AppError> {
    parsed(&agent_rendered(context, caller, agent).await?)
}

pub fn parsed(rendered: &RenderedJson) -> Result<Agent, AppError> {
    serde_json::from_slice(&rendered.body).map_err(|error| AppError::internal(error.to_string()))
}

/// The entry of an agent with that identifier, whoever may see it; `None` if there is none that anybody may see.
pub async fn any_entry(
    context: &Context,
    id: Uuid,
) -> Result<Option<Arc<RenderedAgent>>, AppError> {
    rendered(context, id).await
}

/// The entry of an agent; `None` if there is none that anybody may see.
async fn rendered(context: &Context, id: Uuid) -> Result<Option<Arc<RenderedAgent>>, AppError> {
    if let Some(kept) = cached_entry(context, id) {
        return Ok(Some(kept));
    }
    let Some(domain) = row_of(context, id).await?.map(|row| row.domain_id) else {
        return Ok(None);
    };
    // Before the rows, so that a change in between is noticed later.
    let (stamp, read_at) = (stamp(context, id, domain), context.uptime());
    let row = row_of(context, id).await?;
    let rows = row.into_iter().collect();
    let Some(record) = records(&context.store, rows).await?.pop() else {
        return Ok(None);
    };
    let mut view = view_with_holds(context, &record).await?;
    let with_holds = match view.holds.is_empty() {
        true => None,
        false => Some(RenderedJson::of(&view)?),
    };
    view.holds.clear();
    let deprecation = view.hit.summary.deprecation.as_ref();
    let replacement = deprecation.and_then(|deprecation| deprecation.replacement);
    let visible_to = labels_of(context, &record);
    let policies = context.policies.in_force();
    let entry = Arc::new(RenderedAgent {
        id,
        stamp,
        read_at,
        domain,
        // The stamp is of these policies, or does not hold any more.
        is_public: sees(&Caller::default().labels(&policies), &visible_to),
        visible_to,
        invoke: invoke_matches(context, &record),
        discover: tried_matches(context, &record),
        has_audience: record.agent.audience.is_some() || record.agent.collections.is_some(),
        keeper: keeper_of(context, &record.agent).await?,
        replacement,
        without_holds: RenderedJson::of(&view)?,
        with_holds,
    });
    context.agents.insert(id, Arc::clone(&entry));
    Ok(Some(entry))
}

/// The entry of an agent, if it is kept and nothing of it has changed since.
fn cached_entry(context: &Context, id: Uuid) -> Option<Arc<RenderedAgent>> {
    let kept = context.agents.get(id, context.uptime())?;
    (kept.stamp == stamp(context, id, kept.domain)).then_some(kept)
}

fn stamp(context: &Context, id: Uuid, domain: i64) -> AgentStamp {
    AgentStamp {
        events: context.changes.stamp(id),
        rows: context.store.changes().stamp(id, domain),
        policies: context.policies.stamp(),
    }
}

async fn row_of(
    context: &Context,
    id: Uuid,
) -> Result<Option<a2a_registry_store::entity::agent::Model>, AppError> {
    Ok(agents::agents_by_ids(&context.store, &[id]).await?.pop())
}
