//! Handlers for decisions by policies: about the caller, about others, for gateways, and their records.

use a2a_registry_api::{
    DecisionBatch, DecisionBatchResult, DecisionRequest, PolicyDecision, RecordedDecision,
};
use a2a_registry_core::decision_log::lookup::load_decision;
use a2a_registry_core::error::PolicyDenial;
use a2a_registry_core::policies::access_decision::decide_request;
use a2a_registry_core::policies::subject_decisions::{
    GatewayQuery, authenticate_gateway, decide_batch, decide_for_gateway,
};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, get, post};

use crate::answers::response::{self, HandlerResult};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::auth::{Anyone, Decide, Require, bearer_token, bearer_token_in};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::DecisionId;
use crate::requests::query::parse_query;
use crate::requests::refusal_recording::record_credential_refusal;
use crate::requests::server_state::server_state;

/// The header with the access token of the subject, which a gateway copies from the `Authorization` that it got.
pub const SUBJECT_AUTHORIZATION: HeaderName = HeaderName::from_static("subject-authorization");
/// The header with the id of the decision, for a gateway's log.
const DECISION_ID: HeaderName = HeaderName::from_static("decision-id");

/// Check whether the caller, or another subject, may find or call an agent
///
/// Every caller may ask about itself. Accounts that see everything may ask about others with a token of the scope
/// `decide`: they name the subject in `subject`, or send its access token of an identity provider in
/// `Subject-Authorization`, which the registry verifies. They may name an agent by the exact URL of an approved
/// interface on a host that its domain has proved or an admin vouches for; where several agents share a URL, the first
/// one that is denied decides.
#[utoipa::path(
    tag = "policies",
    params(("Subject-Authorization" = Option<String>, Header, pattern = r"^Bearer [!-~]+$",
    description = "`Bearer` and an access token of an identity provider, whose holder is the subject")),
    request_body = DecisionRequest,
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The decision", body = PolicyDecision),
        (status = 403, description = "The caller asks about others, and may not"),
        (status = 404, description = "The agent is not registered, or the caller may not find it"),
    )
)]
#[post("/v1/decide")]
pub async fn policy_decide(
    http_request: HttpRequest,
    caller: Anyone,
    request: JsonBody<DecisionRequest>,
) -> HandlerResult {
    let subject = subject_token(&http_request)?;
    let decision = decide_request(&caller.context, &caller, &request.0, subject).await?;
    response::json_response(StatusCode::OK, &decision)
}

/// Check several questions at once
///
/// Each is decided and recorded by itself. A question without a subject is about the holder of the token in
/// `Subject-Authorization`, and without that about the caller.
#[utoipa::path(
    tag = "policies",
    params(("Subject-Authorization" = Option<String>, Header, pattern = r"^Bearer [!-~]+$",
    description = "`Bearer` and an access token of an identity provider, whose holder is the subject")),
    request_body = DecisionBatch,
    responses((status = 200, description = "The decisions", body = DecisionBatchResult))
)]
#[post("/v1/decide:batch")]
pub async fn policy_decide_batch(
    http_request: HttpRequest,
    caller: Require<Decide>,
    batch: JsonBody<DecisionBatch>,
) -> HandlerResult {
    let subject = subject_token(&http_request)?;
    let result = decide_batch(&caller.context, &caller, &batch.0, subject).await?;
    response::json_response(StatusCode::OK, &result)
}

/// Check a call for a gateway, as `auth_request` of nginx asks
///
/// The status is the decision: 200 if the call is allowed, and 403 otherwise, also for invalid requests and tokens,
/// under overload, and if the database has not responded for 5 s. The subject is the holder of the access token in
/// `Subject-Authorization`, which the registry verifies; without that header, the account or the groups in the query;
/// without these, a client without a token.
#[utoipa::path(
    tag = "policies",
    params(GatewayQuery, ("Subject-Authorization" = Option<String>, Header, pattern = r"^Bearer [!-~]+$",
    description = "`Bearer` and an access token of an identity provider, whose holder is the subject")),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "It is allowed", body = PolicyDecision,
         headers(("Decision-Id" = String, description = "Id of the decision"))),
        (status = 403, description = "It is denied, and `Decision-Id` has the id of the decision; or the question \
         cannot be answered"),
    )
)]
#[get("/v1/decide")]
pub async fn gateway_decide(request: HttpRequest) -> HttpResponse {
    match decide_gateway_request(&request).await {
        Ok(decision) if decision.allowed => {
            let answer = response::json_response(StatusCode::OK, &decision);
            let answer = answer.unwrap_or_else(|problem| gateway_problem(&request, &problem));
            with_decision_id(answer, &decision)
        }
        Ok(decision) => {
            let reason = decision.reason.as_deref().unwrap_or("It is denied.");
            let problem =
                Problem::new(&problem_kinds::POLICY_DENIED, reason).with_denial(PolicyDenial {
                    decision: decision.id,
                    notices: decision.notices.clone(),
                });
            with_decision_id(problem.to_response(request.uri().path()), &decision)
        }
        Err(problem) => gateway_problem(&request, &problem),
    }
}

/// Show the record of a decision
///
/// The caller who asked and auditors can read a record for 7 days, from every process. The registry keeps the newest
/// 10,000 records of each account, and the newest 100 of each network of clients without an account.
#[utoipa::path(
    tag = "policies",
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The decision", body = RecordedDecision),
        (status = 404, description = "The caller has made no such decision, or its record was lost or deleted"),
    )
)]
#[get("/v1/decisions/{decision}")]
pub async fn decision_show(caller: Anyone, decision: DecisionId) -> HandlerResult {
    let record = load_decision(&caller.context, &caller, decision.0).await?;
    response::json_response(StatusCode::OK, &record)
}

async fn decide_gateway_request(request: &HttpRequest) -> Result<PolicyDecision, Problem> {
    let context = &server_state(request)?.context;
    let token = bearer_token(request)
        .inspect_err(|problem| record_credential_refusal(request, problem))?
        .ok_or_else(|| {
            Problem::new(
                &problem_kinds::UNAUTHENTICATED,
                "This needs a token: send it as `Authorization: Bearer …`.",
            )
        })?;
    let gateway = authenticate_gateway(context, token).await;
    let gateway = gateway
        .map_err(Problem::from)
        .inspect_err(|problem| record_credential_refusal(request, problem))?;
    let query: GatewayQuery = parse_query(request.query_string())?;
    let subject = subject_token(request)?;
    Ok(decide_for_gateway(context, &gateway, &query, subject).await?)
}

/// The token in `Subject-Authorization`.
fn subject_token(request: &HttpRequest) -> Result<Option<&str>, Problem> {
    bearer_token_in(request, &SUBJECT_AUTHORIZATION).map_err(|()| {
        let detail = "Subject-Authorization must be a single bearer token, as Authorization is.";
        Problem::invalid("/Subject-Authorization", detail)
    })
}

/// The answer to a gateway whose question was not decided.
fn gateway_problem(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    if problem.kind().status.is_server_error() {
        let internal = problem.internal_text();
        tracing::warn!(internal, "a gateway was denied: {problem}");
    }
    let detail = problem.detail_with_pointer();
    Problem::new(&problem_kinds::FORBIDDEN, detail).to_response(request.uri().path())
}

fn with_decision_id(mut answer: HttpResponse, decision: &PolicyDecision) -> HttpResponse {
    if let Ok(id) = HeaderValue::from_str(&decision.id.to_string()) {
        answer.headers_mut().insert(DECISION_ID, id);
    }
    answer
}
