//! Handlers for one agent: its data and the actions on it.

pub mod cards;

use a2a_registry_api::{
    Act, Agent, AgentPatch, Deprecate, Diff, EndpointView, FindingList, Similar, VersionList,
};
use a2a_registry_core::agents::diff::{self, VersionDiffQuery};
use a2a_registry_core::agents::rendering::render_agent;
use a2a_registry_core::agents::similar::{self, SimilarAgentsQuery};
use a2a_registry_core::agents::views::FindingsQuery;
use a2a_registry_core::agents::{lifecycle_actions, owner_updates, views as agents};
use a2a_registry_core::endpoints::views as endpoints;
use a2a_registry_core::paging::PageRequest;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, get, patch, post};

use crate::answers::conditional_response::IfMatchHeader;
use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Anyone, Curate, Register, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::AgentRef;
use crate::requests::query::Query;

/// Show an agent
#[utoipa::path(
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The agent", body = Agent,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/agents/{agent}")]
pub async fn agent_show(request: HttpRequest, caller: Anyone, agent: AgentRef) -> HandlerResult {
    let agent = render_agent(&caller.context, &caller, &agent.0).await?;
    Ok(response::rendered_with_etag(&request, &agent))
}

/// List the stored versions of an agent's card, newest first
#[utoipa::path(
    params(PageRequest),
    security((), ("token" = [])),
    responses((status = 200, description = "A page of versions", body = VersionList))
)]
#[get("/v1/agents/{agent}/versions")]
pub async fn agent_versions(
    caller: Anyone,
    agent: AgentRef,
    page: Query<PageRequest>,
) -> HandlerResult {
    let versions = agents::agent_versions(&caller.context, &caller, &agent.0, &page.0).await?;
    response::json_response(StatusCode::OK, &versions)
}

/// Show the changes between two versions of an agent's card
///
/// Each change has its JSON pointer, the old and the new value, and the reason for its class. By default the newest
/// version is compared with the served one.
#[utoipa::path(
    params(VersionDiffQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "Changes, most severe first", body = Diff,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/agents/{agent}/diff")]
pub async fn agent_diff(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
    query: Query<VersionDiffQuery>,
) -> HandlerResult {
    let diff = diff::agent_diff(&caller.context, &caller, &agent.0, &query.0).await?;
    response::json_with_etag(&request, &diff)
}

/// List the lint findings of an agent's card
///
/// By default the findings of the effective version. A version that the caller may not see is not found.
#[utoipa::path(
    params(FindingsQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "Findings in the order of the card", body = FindingList,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/agents/{agent}/findings")]
pub async fn agent_findings(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
    query: Query<FindingsQuery>,
) -> HandlerResult {
    let findings = agents::agent_findings(&caller.context, &caller, &agent.0, &query.0).await?;
    response::json_with_etag(&request, &findings)
}

/// Show whether an agent answers
///
/// The registry asks an agent once a day for a task that does not exist, if checks are enabled and a proof or a vouch
/// permits it. Everyone who may see the agent sees the result in one word and its day; its owner, curators and
/// auditors see the details.
#[utoipa::path(
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The last result", body = EndpointView,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/agents/{agent}/endpoint")]
pub async fn agent_endpoint(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
) -> HandlerResult {
    let endpoint = endpoints::agent_endpoint(&caller.context, &caller, &agent.0).await?;
    response::json_with_etag(&request, &endpoint)
}

/// Show similar agents
///
/// Similarity is semantic if the registry has an embedding model, otherwise based on the agent's most significant
/// words. The results exclude the agent itself and its duplicates, which are in `duplicates`.
#[utoipa::path(
    params(SimilarAgentsQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "Similar agents, the most similar first", body = Similar,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/agents/{agent}/similar")]
pub async fn agent_similar(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
    query: Query<SimilarAgentsQuery>,
) -> HandlerResult {
    let similar = similar::agent_similar(&caller.context, &caller, &agent.0, &query.0).await?;
    response::json_with_etag(&request, &similar)
}

/// Put an agent on hold, so that only curators see it
#[utoipa::path(
    request_body = Act,
    responses(
        (status = 200, description = "The updated agent", body = Agent),
        (status = 409, description = "The agent is retired"),
    )
)]
#[post("/v1/agents/{agent}:suspend")]
pub async fn agent_suspend(
    caller: Require<Curate>,
    agent: AgentRef,
    act: JsonBody<Act>,
) -> HandlerResult {
    let agent =
        lifecycle_actions::agent_suspend(&caller.context, &caller, &agent.0, &act.0).await?;
    response::json_response(StatusCode::OK, &agent)
}

/// Deprecate an agent
#[utoipa::path(
    request_body = Deprecate,
    responses(
        (status = 200, description = "The updated agent", body = Agent),
        (status = 409, description = "The agent is not approved, it is retired, or its domain is disputed"),
    )
)]
#[post("/v1/agents/{agent}:deprecate")]
pub async fn agent_deprecate(
    caller: Require<Register>,
    agent: AgentRef,
    request: JsonBody<Deprecate>,
) -> HandlerResult {
    let agent =
        lifecycle_actions::agent_deprecate(&caller.context, &caller, &agent.0, &request.0).await?;
    response::json_response(StatusCode::OK, &agent)
}

/// Undo a deprecation
#[utoipa::path(
    request_body = Act,
    responses(
        (status = 200, description = "The updated agent", body = Agent),
        (status = 409, description = "The agent is not deprecated, it is retired, or its domain is disputed"),
    )
)]
#[post("/v1/agents/{agent}:undeprecate")]
pub async fn agent_undeprecate(
    caller: Require<Register>,
    agent: AgentRef,
    act: JsonBody<Act>,
) -> HandlerResult {
    let agent =
        lifecycle_actions::agent_undeprecate(&caller.context, &caller, &agent.0, &act.0).await?;
    response::json_response(StatusCode::OK, &agent)
}

/// Retire an agent permanently
#[utoipa::path(
    request_body = Act,
    responses(
        (status = 200, description = "The updated agent", body = Agent),
        (status = 409, description = "The agent is retired, or its domain is disputed"),
    )
)]
#[post("/v1/agents/{agent}:retire")]
pub async fn agent_retire(
    caller: Require<Register>,
    agent: AgentRef,
    act: JsonBody<Act>,
) -> HandlerResult {
    let agent = lifecycle_actions::agent_retire(&caller.context, &caller, &agent.0, &act.0).await?;
    response::json_response(StatusCode::OK, &agent)
}

/// Set the visibility, the labels or the sponsor of an agent
///
/// Owners may restrict the visibility and its groups and set the sponsor; curators may set everything. Absent members
/// stay unchanged. Without `If-Match` the change applies to the current state of the agent; with it, only these members
/// must be unchanged.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to change")),
    request_body = AgentPatch,
    responses(
        (status = 200, description = "The updated agent", body = Agent,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 409, description = "The agent's domain is disputed, a group does not exist, or the sponsor account \
         does not exist or is disabled"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[patch("/v1/agents/{agent}")]
pub async fn agent_patch(
    caller: Require<Register>,
    agent: AgentRef,
    patch: JsonBody<AgentPatch>,
    precondition: IfMatchHeader,
) -> HandlerResult {
    let (agent, patch) = (&agent.0, &patch.0);
    let changed =
        owner_updates::agent_patch(&caller.context, &caller, agent, patch, &precondition.0).await?;
    Ok(response::rendered_resource_response(changed))
}
