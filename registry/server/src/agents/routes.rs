//! One agent: what is known of it, and the acts on it.

use a2a_registry_api::{Act, Agent, AgentPatch, Deprecate, Diff, FindingList, VersionList};
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, patch, post, web};

use crate::agents::diff::DiffQuery;
use crate::agents::views::FindingsQuery;
use crate::agents::{acts, diff, owner, views as agents};
use crate::http::answer;
use crate::http::auth::{Anyone, Curate, Register, Require};
use crate::http::body::Body;
use crate::http::path::AgentRef;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::state::State;
use crate::paging::PageRequest;

/// Show an agent
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The agent", body = Agent,
         headers(("ETag" = String, description = "Changes with the answer"))),
        (status = 304, description = "The caller has this already",
         headers(("ETag" = String, description = "Changes with the answer"))),
    )
)]
#[get("/v1/agents/{agent}")]
pub async fn agent_show(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = agents::agent_show(&state.context, &caller.0, &agent.0).await?;
    answer::resource(&request, &agent)
}

/// List the kept versions of an agent's card, newest first
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN"), PageRequest),
    security((), ("token" = [])),
    responses((status = 200, description = "A page of versions", body = VersionList))
)]
#[get("/v1/agents/{agent}/versions")]
pub async fn agent_versions(
    caller: Anyone,
    agent: AgentRef,
    page: Query<PageRequest>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let versions = agents::agent_versions(&state.context, &caller.0, &agent.0, &page.0).await?;
    answer::json(StatusCode::OK, &versions)
}

/// What changed between two versions of an agent's card
///
/// Each change with its place, what stood there before and after, and why it has its class. Without `from` and
/// `to`: the newest version against the one that is served.
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN"), DiffQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The changes, the gravest first", body = Diff,
         headers(("ETag" = String, description = "Changes with the answer"))),
        (status = 304, description = "The caller has this already",
         headers(("ETag" = String, description = "Changes with the answer"))),
    )
)]
#[get("/v1/agents/{agent}/diff")]
pub async fn agent_diff(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
    query: Query<DiffQuery>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let diff = diff::agent_diff(&state.context, &caller.0, &agent.0, &query.0).await?;
    answer::resource(&request, &diff)
}

/// What the linter found in an agent's card
///
/// In the version that is shown, or the one with that digest, as far as the caller may see it.
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN"), FindingsQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The findings, in the card's order", body = FindingList,
         headers(("ETag" = String, description = "Changes with the answer"))),
        (status = 304, description = "The caller has this already",
         headers(("ETag" = String, description = "Changes with the answer"))),
    )
)]
#[get("/v1/agents/{agent}/findings")]
pub async fn agent_findings(
    request: HttpRequest,
    caller: Anyone,
    agent: AgentRef,
    query: Query<FindingsQuery>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let findings = agents::agent_findings(&state.context, &caller.0, &agent.0, &query.0).await?;
    answer::resource(&request, &findings)
}

/// Withhold an agent from everybody but curators
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    request_body = Act,
    security(("token" = [])),
    responses(
        (status = 200, description = "The agent as it stands now", body = Agent),
        (status = 409, description = "The agent has been retired for good"),
    )
)]
#[post("/v1/agents/{agent}:suspend")]
pub async fn agent_suspend(
    caller: Require<Curate>,
    agent: AgentRef,
    act: Body<Act>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = acts::agent_suspend(&state.context, &caller, &agent.0, &act.0).await?;
    answer::json(StatusCode::OK, &agent)
}

/// Lift a hold
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    request_body = Act,
    security(("token" = [])),
    responses(
        (status = 200, description = "The agent as it stands now", body = Agent),
        (status = 409, description = "The agent has been retired for good, does not stand under that hold, or the \
            hold ends with its own cause"),
    )
)]
#[post("/v1/agents/{agent}:resume")]
pub async fn agent_resume(
    caller: Require<Curate>,
    agent: AgentRef,
    act: Body<Act>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = acts::agent_resume(&state.context, &caller, &agent.0, &act.0).await?;
    answer::json(StatusCode::OK, &agent)
}

/// Mark an agent as on its way out
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    request_body = Deprecate,
    security(("token" = [])),
    responses(
        (status = 200, description = "The agent as it stands now", body = Agent),
        (status = 409, description = "The agent is not approved, or has been retired for good, or its domain is disputed"),
    )
)]
#[post("/v1/agents/{agent}:deprecate")]
pub async fn agent_deprecate(
    caller: Require<Register>,
    agent: AgentRef,
    what: Body<Deprecate>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = acts::agent_deprecate(&state.context, &caller, &agent.0, &what.0).await?;
    answer::json(StatusCode::OK, &agent)
}

/// Take a deprecation back
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    request_body = Act,
    security(("token" = [])),
    responses(
        (status = 200, description = "The agent as it stands now", body = Agent),
        (status = 409, description = "The agent is not deprecated, or has been retired for good, or its domain is disputed"),
    )
)]
#[post("/v1/agents/{agent}:undeprecate")]
pub async fn agent_undeprecate(
    caller: Require<Register>,
    agent: AgentRef,
    act: Body<Act>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = acts::agent_undeprecate(&state.context, &caller, &agent.0, &act.0).await?;
    answer::json(StatusCode::OK, &agent)
}

/// End an agent for good
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    request_body = Act,
    security(("token" = [])),
    responses(
        (status = 200, description = "The agent as it stands now", body = Agent),
        (status = 409, description = "The agent has been retired for good, or its domain is disputed"),
    )
)]
#[post("/v1/agents/{agent}:retire")]
pub async fn agent_retire(
    caller: Require<Register>,
    agent: AgentRef,
    act: Body<Act>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = acts::agent_retire(&state.context, &caller, &agent.0, &act.0).await?;
    answer::json(StatusCode::OK, &agent)
}

/// Set who may find an agent, or its labels
///
/// An owner may narrow who finds it; curators set it, and the labels.
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    request_body = AgentPatch,
    security(("token" = [])),
    responses(
        (status = 200, description = "The agent as it stands now", body = Agent),
        (status = 409, description = "The agent's domain is disputed"),
    )
)]
#[patch("/v1/agents/{agent}")]
pub async fn agent_patch(
    caller: Require<Register>,
    agent: AgentRef,
    patch: Body<AgentPatch>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let agent = owner::agent_patch(&state.context, &caller, &agent.0, &patch.0).await?;
    answer::json(StatusCode::OK, &agent)
}
