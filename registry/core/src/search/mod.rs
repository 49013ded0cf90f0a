//! Search, suggestions and look-ups.

pub mod collection_scope;
pub mod engine;
pub mod hit_liveness;
pub mod index_job;
pub mod indexing;
pub mod lexical_fallback;
pub mod policy_replicas;
pub mod policy_rollout;
pub mod query;
pub mod query_correction;
pub mod registry_stats;
pub mod render;
pub mod skill_names;
pub mod understanding;
pub mod value_names;

use std::sync::Arc;

use a2a_registry_api::search_query::{LookupQuery, SearchMode, SearchQuery, SuggestQuery};
use a2a_registry_api::{Lookup, SuggestionView, Suggestions};
use a2a_registry_search::{HitRow, query_words};
use bytes::Bytes;

use crate::agents::replacements::redact_hit_replacements;
use crate::context::AppContext;
use crate::database_health::require_recent_database_contact;
use crate::error::AppError;
use crate::process_state::dry_runs::DryRunObservedResponse;
use crate::search::engine::{PreparedSearch, SurfaceQuery};
use crate::search::query::{parse_hit_fields, query_lookup_keys, resolve_search_mode};
use crate::search::render::{render_hit, render_search_response};
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

/// Maximum number of completions of a prefix.
const MAX_SUGGESTIONS: usize = 10;
/// Maximum number of agents found by a look-up.
const MAX_LOOKUP_HITS: usize = 20;

/// Searches and lists agents; the response is an [`AgentList`](a2a_registry_api::AgentList), rendered as JSON.
///
/// # Errors
/// `Invalid` for a bad parameter; `Unavailable` while the index cannot be read, the queue is full, or the database
/// has not responded for too long.
pub async fn search_agents(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
) -> Result<Bytes, AppError> {
    let surface_query = SurfaceQuery::default();
    let prepared = PreparedSearch::prepare(context, caller, query, &surface_query).await?;
    let policies = Arc::clone(&prepared.policies);
    let key = prepared.cache_key(context);
    let response = match context.search_cache.responses.get(&key) {
        Some(response) => response,
        None => {
            let results = prepared.run(context, caller).await?;
            let response = render_search_response(&results, parse_hit_fields(query)?);
            if results.is_cacheable {
                context.search_cache.responses.insert(key, response.clone());
            }
            response
        }
    };
    let shown = || DryRunObservedResponse::Hits(response.clone());
    context.dry_runs.observe_response(&policies, caller, shown);
    Ok(response)
}

/// Whether a search is to be semantic, because of its mode or because the registry has a model, ready or not.
/// `query` is the search as it is run, after its text was understood.
pub fn is_semantic_search(context: &AppContext, query: &SearchQuery) -> bool {
    let state = &context.semantic_search;
    let mode = resolve_search_mode(query, state.has_model() || state.is_preparing());
    let text = query.q.as_deref().and_then(query_words);
    text.is_some() && mode.is_ok_and(|mode| mode != SearchMode::Lexical)
}

/// The number of public agents in the index; 0 while it cannot be read.
pub async fn count_public_agents(context: &AppContext) -> i64 {
    let labels = Caller::default().labels(&context.policy_sets.enforced_set());
    let registry = Caller::default();
    let count = run_search(context, &registry, move |index| {
        index.count_listed_agents(&labels)
    })
    .await;
    count.map_or(0, |agents| i64::try_from(agents).unwrap_or(i64::MAX))
}

/// Completes a prefix over names, skills and tags.
pub async fn suggest_completions(
    context: &AppContext,
    caller: &Caller,
    query: &SuggestQuery,
) -> Result<Suggestions, AppError> {
    require_recent_database_contact(context)?;
    crate::search::query::check_text_length("/q", &query.q, context.config().limits.query_chars)?;
    let (prefix, labels) = (
        query.q.clone(),
        caller.labels(&context.policy_sets.enforced_set()),
    );
    let completions = run_search(context, caller, move |index| {
        index.suggest(&prefix, &labels, MAX_SUGGESTIONS)
    })
    .await?;
    Ok(Suggestions {
        suggestions: completions
            .into_iter()
            .map(|one| SuggestionView {
                text: one.text,
                kind: one.kind.as_str().into(),
                count: one.count,
            })
            .collect(),
    })
}

/// Looks up agents by address, host, URN, digest or name.
///
/// # Errors
/// `Invalid` unless exactly one is given; `NotFound` if no agent has it.
pub async fn lookup_agents(
    context: &AppContext,
    caller: &Caller,
    query: &LookupQuery,
) -> Result<Lookup, AppError> {
    require_recent_database_contact(context)?;
    let (keys, labels) = (
        query_lookup_keys(query)?,
        caller.labels(&context.policy_sets.enforced_set()),
    );
    let lookup = run_search(context, caller, move |index| {
        let mut rows: Vec<HitRow> = Vec::new();
        for key in &keys {
            for row in index.lookup_agents_by_key(key, &labels, MAX_LOOKUP_HITS)? {
                if rows.iter().all(|known| known.id != row.id) {
                    rows.push(row);
                }
            }
        }
        rows.truncate(MAX_LOOKUP_HITS);
        Ok(rows)
    });
    let mut rows = lookup.await?;
    redact_hit_replacements(context, caller, &mut rows).await?;
    if rows.is_empty() {
        return Err(AppError::not_found(
            "No agent that you may see has this URL, URN, digest or name.",
        ));
    }
    let agents = rows
        .iter()
        .map(|row| {
            serde_json::from_slice(&render_hit(row)).map_err(|error| {
                AppError::internal(format!("a stored hit cannot be parsed: {error}"))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Lookup { agents })
}
