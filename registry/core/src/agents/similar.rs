//! Similar agents and duplicates of an agent.

use std::sync::Arc;

use a2a_registry_api::limits::{DEFAULT_SIMILAR_AGENTS, MAX_SIMILAR_AGENTS, SimilarSize};
use a2a_registry_api::search_query::SearchMode;
use a2a_registry_api::{Duplicates, Hit, Match, Similar, deserialize_nonempty_parameter};
use a2a_registry_search::{HitRow, Index, IndexError, SimilarAgents, SimilarRequest};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::agents::replacements::redact_hit_replacements;
use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::database_health::require_recent_database_contact;
use crate::error::{AppError, Result};
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

/// The number of similar agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct SimilarAgentsQuery {
    /// Agents to show, at most 20; by default 5.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<SimilarSize>, inline)]
    pub page_size: Option<u32>,
}

/// The agents that are most similar to an agent, among those that the caller may see.
pub async fn agent_similar(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    query: &SimilarAgentsQuery,
) -> Result<Similar> {
    let size = query.page_size.unwrap_or(DEFAULT_SIMILAR_AGENTS);
    let is_allowed = (1..=MAX_SIMILAR_AGENTS).contains(&size);
    // If the index shows the agent to the caller, no database query is needed; any other agent may be newer than the
    // index.
    if let Some(id) = agent.parse::<Uuid>().ok().filter(|_| is_allowed)
        && let Some(similar) = find_similar_if_visible(context, caller, id, size).await?
    {
        return Ok(similar);
    }
    let row = require_visible_agent(context, caller, agent).await?;
    if !is_allowed {
        let detail = format!("page_size must be between 1 and {MAX_SIMILAR_AGENTS}");
        return Err(AppError::invalid("/page_size", detail));
    }
    find_similar_agents(context, caller, row.id, size).await
}

/// Like [`agent_similar`], for an agent that the caller is known to see.
pub async fn find_similar_agents(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    size: u32,
) -> Result<Similar> {
    let similar_request = build_similar_request(context, caller, id, size)?;
    let search = run_search(context, caller, move |index| {
        find_similar_with_fallback(index, &similar_request)
    });
    let results = search.await?;
    build_similar_response(context, caller, results).await
}

/// Like [`find_similar`], for an agent that the index shows to the caller; `None` for any other.
async fn find_similar_if_visible(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    size: u32,
) -> Result<Option<Similar>> {
    let similar_request = build_similar_request(context, caller, id, size)?;
    let search = run_search(context, caller, move |index| {
        match index.is_agent_visible(id, &similar_request.visible_to)? {
            true => find_similar_with_fallback(index, &similar_request).map(Some),
            false => Ok(None),
        }
    });
    match search.await? {
        Some(found) => build_similar_response(context, caller, found)
            .await
            .map(Some),
        None => Ok(None),
    }
}

fn build_similar_request(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    size: u32,
) -> Result<SimilarRequest> {
    require_recent_database_contact(context)?;
    let serving = context.semantic_search.serving_model.load_full();
    let policies = context.policy_sets.enforced_set();
    Ok(SimilarRequest {
        id,
        visible_to: caller.labels(&policies),
        class_labels: caller.caller_class_labels(&policies),
        limit: size as usize,
        vectors: serving.map(|serving| (Arc::clone(&serving.vectors), serving.cutoff)),
    })
}

async fn build_similar_response(
    context: &AppContext,
    caller: &Caller,
    mut results: SimilarAgents,
) -> Result<Similar> {
    redact_hit_replacements(context, caller, &mut results.hits).await?;
    let mode = match results.by_vectors {
        true => SearchMode::Semantic,
        false => SearchMode::Lexical,
    };
    Ok(Similar {
        agents: results
            .hits
            .iter()
            .map(parse_hit)
            .collect::<Result<_, _>>()?,
        mode: mode.as_str().to_owned(),
        duplicates: results.duplicates.map(|duplicates| Duplicates {
            count: duplicates.count,
            agents: duplicates.agents,
        }),
    })
}

/// Similar agents, by text if the vectors cannot be read.
fn find_similar_with_fallback(
    index: &Index,
    request: &SimilarRequest,
) -> Result<SimilarAgents, IndexError> {
    match index.find_similar_agents(request) {
        Err(IndexError::Vectors(error)) => {
            tracing::warn!(%error, "vectors cannot be read; similar agents are found by text");
            index.find_similar_agents(&SimilarRequest {
                vectors: None,
                ..request.clone()
            })
        }
        found => found,
    }
}

fn parse_hit(row: &HitRow) -> Result<Hit> {
    let summary = serde_json::from_slice(&row.hit)
        .map_err(|error| AppError::internal(format!("a stored hit cannot be parsed: {error}")))?;
    let matched = Match {
        score: row.score,
        ..Match::default()
    };
    Ok(Hit { summary, matched })
}
