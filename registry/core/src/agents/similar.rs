//! Similar agents of one agent, and its duplicates.

use std::sync::Arc;

use a2a_registry_api::limits::{DEFAULT_SIMILAR, MAX_SIMILAR, SimilarSize};
use a2a_registry_api::{Duplicates, Hit, Match, Similar};
use a2a_registry_search::{HitRow, Index, IndexError, SimilarAgents, SimilarRequest};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::agents::replacements::hide_in_hits;
use crate::agents::views::agent_visible;
use crate::context::Context;
use crate::database::demand_database;
use crate::error::{AppError, Result};
use crate::index_pool::run;
use crate::memory::meanings::Mode;
use crate::paging::not_empty;
use crate::visibility::caller::Caller;

/// How many similar agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct SimilarQuery {
    /// Agents to show, at most 20; by default 5.
    #[serde(deserialize_with = "not_empty")]
    #[param(value_type = Option<SimilarSize>, inline)]
    pub page_size: Option<u32>,
}

/// The agents that are most similar to an agent, among those that the caller may see.
pub async fn agent_similar(
    context: &Context,
    caller: &Caller,
    agent: &str,
    query: &SimilarQuery,
) -> Result<Similar> {
    let size = query.page_size.unwrap_or(DEFAULT_SIMILAR);
    let is_allowed = (1..=MAX_SIMILAR).contains(&size);
    // An agent that the index shows to the caller needs no query of the database; any other may be newer than the
    // index.
    if let Some(id) = agent.parse::<Uuid>().ok().filter(|_| is_allowed)
        && let Some(similar) = if_seen(context, caller, id, size).await?
    {
        return Ok(similar);
    }
    let row = agent_visible(context, caller, agent).await?;
    if !is_allowed {
        let detail = format!("page_size must be between 1 and {MAX_SIMILAR}");
        return Err(AppError::invalid("/page_size", detail));
    }
    similar_to(context, caller, row.id, size).await
}

/// The same for an agent that the caller may see.
pub async fn similar_to(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    size: u32,
) -> Result<Similar> {
    let request = request(context, caller, id, size)?;
    let found = run(context, caller, move |index| {
        similar_or_by_words(index, &request)
    });
    let found = found.await?;
    shown(context, caller, found).await
}

/// The same for an agent that the index shows to the caller; `None` for any other.
async fn if_seen(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    size: u32,
) -> Result<Option<Similar>> {
    let request = request(context, caller, id, size)?;
    let found = run(context, caller, move |index| {
        match index.sees(id, &request.visible_to)? {
            true => similar_or_by_words(index, &request).map(Some),
            false => Ok(None),
        }
    });
    match found.await? {
        Some(found) => shown(context, caller, found).await.map(Some),
        None => Ok(None),
    }
}

fn request(context: &Context, caller: &Caller, id: Uuid, size: u32) -> Result<SimilarRequest> {
    demand_database(context)?;
    let serving = context.meanings.serving.load_full();
    let policies = context.policies.in_force();
    Ok(SimilarRequest {
        id,
        visible_to: caller.labels(&policies),
        class: caller.class_labels(&policies),
        limit: size as usize,
        vectors: serving.map(|serving| (Arc::clone(&serving.vectors), serving.cutoff)),
    })
}

async fn shown(context: &Context, caller: &Caller, mut found: SimilarAgents) -> Result<Similar> {
    hide_in_hits(context, caller, &mut found.hits).await?;
    let mode = match found.by_meaning {
        true => Mode::Semantic,
        false => Mode::Lexical,
    };
    Ok(Similar {
        agents: found.hits.iter().map(hit).collect::<Result<_, _>>()?,
        mode: mode.as_str().to_owned(),
        duplicates: found.duplicates.map(|duplicates| Duplicates {
            count: duplicates.count,
            agents: duplicates.agents,
        }),
    })
}

/// Similar agents, by words if the vectors cannot be read.
fn similar_or_by_words(
    index: &Index,
    request: &SimilarRequest,
) -> Result<SimilarAgents, IndexError> {
    match index.similar(request) {
        Err(IndexError::Vectors(error)) => {
            tracing::warn!(%error, "vectors cannot be read; similar agents are found by words");
            index.similar(&SimilarRequest {
                vectors: None,
                ..request.clone()
            })
        }
        found => found,
    }
}

fn hit(row: &HitRow) -> Result<Hit> {
    let summary = serde_json::from_slice(&row.hit)
        .map_err(|error| AppError::internal(format!("a stored hit cannot be parsed: {error}")))?;
    let matched = Match {
        score: row.score,
        ..Match::default()
    };
    Ok(Hit { summary, matched })
}
