//! Handlers for searching agents.

pub mod saved;

use a2a_registry_api::search_query::{LookupQuery, SearchQuery, SuggestQuery};
use a2a_registry_api::{AgentList, Lookup, Suggestions};
use a2a_registry_core::search::{lookup_agents, search_agents, suggest_completions};
use actix_web::get;
use actix_web::http::StatusCode;

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::Anyone;
use crate::requests::query::Query;

/// Search and list agents
///
/// Values of one parameter are combined with OR, different parameters with AND. Without `lifecycle` every caller gets
/// only listed agents.
#[utoipa::path(
    params(SearchQuery),
    security((), ("token" = [])),
    responses((status = 200, description = "A page of agents", body = AgentList))
)]
#[get("/v1/agents")]
pub async fn agent_search(caller: Anyone, query: Query<SearchQuery>) -> HandlerResult {
    let body = search_agents(&caller.context, &caller, &query.0).await?;
    Ok(response::json_bytes_response(StatusCode::OK, body))
}

/// Complete a prefix over names, skills and tags
#[utoipa::path(
    params(SuggestQuery),
    security((), ("token" = [])),
    responses((status = 200, description = "Completions, best first", body = Suggestions))
)]
#[get("/v1/agents:suggest")]
pub async fn agent_suggest(caller: Anyone, query: Query<SuggestQuery>) -> HandlerResult {
    let suggestions = suggest_completions(&caller.context, &caller, &query.0).await?;
    response::json_response(StatusCode::OK, &suggestions)
}

/// Look up agents by card URL, endpoint URL, host, URN, digest or name
///
/// Exactly one parameter is required.
#[utoipa::path(
    params(LookupQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "Agents, best match first", body = Lookup),
        (status = 404, description = "No agent that the caller may see matches"),
    )
)]
#[get("/v1/agents:lookup")]
pub async fn agent_lookup(caller: Anyone, query: Query<LookupQuery>) -> HandlerResult {
    let found = lookup_agents(&caller.context, &caller, &query.0).await?;
    response::json_response(StatusCode::OK, &found)
}
