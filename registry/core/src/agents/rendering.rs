//! Rendered agents for responses, one for each class of callers, cached while the agent does not change.

use std::sync::Arc;

use a2a_registry_api::Agent;
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::Action;
use a2a_registry_search::is_visible_to;
use a2a_registry_store::agents;
use uuid::Uuid;

use crate::agents::decidable_urls::approved_urls;
use crate::agents::owner_updates::editable_agent_fields;
use crate::agents::policy_attributes::{action_policy_matches, agent_visibility_labels};
use crate::agents::policy_hiding::may_be_hidden_by_policies;
use crate::agents::records::load_agent_records;
use crate::agents::replacements::is_replacement_visible;
use crate::agents::views::{
    agent_show, build_cacheable_agent_view, load_responsible_account, require_visible_agent,
};
use crate::context::AppContext;
use crate::database_health::require_recent_database_contact;
use crate::entity_tag::RenderedJson;
use crate::error::AppError;
use crate::process_state::agent_cache::{AgentCacheStamp, RenderedAgent};
use crate::process_state::dry_runs::DryRunObservedResponse;
use crate::visibility::caller::Caller;

/// One agent in full, as [`agent_show`] returns it, rendered.
///
/// # Errors
/// `NotFound` if the agent does not exist or the caller may not see it; `Unavailable` if the database has not
/// responded for too long.
pub async fn render_agent(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<RenderedJson, AppError> {
    let rendered = require_rendered_agent(context, caller, agent).await?;
    let policies = context.policy_sets.enforced_set();
    let shown = || DryRunObservedResponse::Agent(rendered.id);
    context.dry_runs.observe_response(&policies, caller, shown);
    let sees_holds = caller.has_permission(Permission::SeeAll)
        || caller.is_account(rendered.responsible_account);
    let may_be_hidden = || may_be_hidden_by_policies(&policies, &rendered.discover_matches);
    if sees_holds && (rendered.has_audience || may_be_hidden()) {
        // The names of groups and collections, and accounts, come from rows that do not invalidate the entry.
        let view = agent_show(context, caller, agent).await?;
        return rendered.without_holds.with_same_part(&view);
    }
    let with_holds = rendered.with_holds.as_ref().filter(|_| sees_holds);
    let response = with_holds.unwrap_or(&rendered.without_holds);
    if let Some(replacement) = rendered.replacement
        && !is_replacement_visible(context, caller, replacement).await?
    {
        let mut view = parse_rendered_agent(response)?;
        if let Some(deprecation) = &mut view.hit.summary.deprecation {
            deprecation.replacement = None;
        }
        return response.with_same_part(&view);
    }
    Ok(response.clone())
}

/// The cached entry of an agent that the caller may see.
pub async fn require_rendered_agent(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Arc<RenderedAgent>, AppError> {
    require_recent_database_contact(context)?;
    let missing = || AppError::no_agent(agent);
    let id = match agent.parse::<Uuid>() {
        Ok(id) => Some(id),
        Err(_) if agent.starts_with("urn:") => {
            let row = agents::agent_by_urn(&context.store, agent).await?;
            row.map(|row| row.id)
        }
        Err(_) => return Err(missing()),
    };
    if let Some(cached) = id.and_then(|id| cached_agent(context, id)) {
        // Most callers have no account, and all of these see the same agents.
        let is_visible = match caller.account {
            None => cached.is_public,
            Some(_) => cached.is_visible_to(caller, &context.policy_sets.enforced_set()),
        };
        if is_visible {
            return Ok(cached);
        }
    }
    // A cached entry that the caller may not see must neither be rejected faster than a missing one nor be rendered
    // for the caller.
    let id = require_visible_agent(context, caller, agent).await?.id;
    let rendered = load_rendered_agent(context, id)
        .await?
        .ok_or_else(missing)?;
    match rendered.is_visible_to(caller, &context.policy_sets.enforced_set()) {
        true => Ok(rendered),
        false => Err(missing()),
    }
}

/// The cached view of an agent, parsed.
///
/// # Errors
/// `NotFound` for an agent that does not exist or that the caller may not see, and database failures.
pub async fn load_cached_agent_view(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Agent, AppError> {
    parse_rendered_agent(&render_agent(context, caller, agent).await?)
}

pub fn parse_rendered_agent(rendered: &RenderedJson) -> Result<Agent, AppError> {
    serde_json::from_slice(&rendered.body).map_err(|error| AppError::internal(error.to_string()))
}

/// Loads the entry of an agent, whoever may see it; `None` if no caller may see the agent.
pub async fn load_rendered_agent(
    context: &AppContext,
    id: Uuid,
) -> Result<Option<Arc<RenderedAgent>>, AppError> {
    if let Some(cached) = cached_agent(context, id) {
        return Ok(Some(cached));
    }
    let Some(domain) = load_agent_row(context, id).await?.map(|row| row.domain_id) else {
        return Ok(None);
    };
    // The stamp is read before the rows, so that a change in between is detected later.
    let (stamp, read_at) = (
        agent_cache_stamp(context, id, domain),
        context.monotonic_time(),
    );
    let row = load_agent_row(context, id).await?;
    let rows = row.into_iter().collect();
    let Some(record) = load_agent_records(&context.store, rows).await?.pop() else {
        return Ok(None);
    };
    let mut view = build_cacheable_agent_view(context, &record).await?;
    let editable = editable_agent_fields(&record.agent);
    let with_holds = match view.holds.is_empty() {
        true => None,
        false => Some(RenderedJson::with_part(&view, &editable)?),
    };
    view.holds.clear();
    let deprecation = view.hit.summary.deprecation.as_ref();
    let replacement = deprecation.and_then(|deprecation| deprecation.replacement);
    let visible_to = agent_visibility_labels(context, &record);
    let policies = context.policy_sets.enforced_set();
    let entry = Arc::new(RenderedAgent {
        id,
        stamp,
        read_at,
        domain,
        // Either the stamp belongs to these policies, or the entry is already stale.
        is_public: is_visible_to(&Caller::default().labels(&policies), &visible_to),
        visible_to,
        invoke_matches: action_policy_matches(context, &policies, &record, Action::Invoke),
        discover_matches: action_policy_matches(context, &policies, &record, Action::Discover),
        lifecycle: view.hit.summary.lifecycle.to_string(),
        card_digest: view.hit.summary.card_digest.clone(),
        approved_urls: approved_urls(&record),
        has_audience: record.agent.audience.is_some() || record.agent.collections.is_some(),
        responsible_account: load_responsible_account(context, &record.agent).await?,
        replacement,
        without_holds: RenderedJson::with_part(&view, &editable)?,
        with_holds,
    });
    context.agent_cache.insert(id, Arc::clone(&entry));
    Ok(Some(entry))
}

/// The entry of an agent for a decision, from memory if nothing that decides has changed; `None` if no caller may see
/// the agent.
pub async fn load_decision_entry(
    context: &AppContext,
    id: Uuid,
) -> Result<Option<Arc<RenderedAgent>>, AppError> {
    if let Some(cached) = context.agent_cache.get_at_any_age(id)
        && cached.stamp == agent_cache_stamp(context, id, cached.domain)
    {
        return Ok(Some(cached));
    }
    load_rendered_agent(context, id).await
}

/// The entry of an agent, if it is cached and still current.
fn cached_agent(context: &AppContext, id: Uuid) -> Option<Arc<RenderedAgent>> {
    let cached = context.agent_cache.get(id, context.monotonic_time())?;
    (cached.stamp == agent_cache_stamp(context, id, cached.domain)).then_some(cached)
}

fn agent_cache_stamp(context: &AppContext, id: Uuid, domain: i64) -> AgentCacheStamp {
    AgentCacheStamp {
        events: context.change_counters.count(id),
        row_changes: context.store.row_changes().cache_stamp(id, domain),
        policies: context.policy_sets.evaluation_set_numbers(),
    }
}

async fn load_agent_row(
    context: &AppContext,
    id: Uuid,
) -> Result<Option<a2a_registry_store::entity::agent::Model>, AppError> {
    Ok(agents::agents_by_ids(&context.store, &[id]).await?.pop())
}
