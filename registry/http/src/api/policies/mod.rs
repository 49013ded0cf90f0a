//! Handlers of policy sets and decisions.

pub mod waivers;

use a2a_registry_api::limits::MAX_POLICIES_BODY_BYTES;
use a2a_registry_api::{
    DecisionRequest, DryRun, NewPolicies, Policies, PoliciesAccepted, PolicyCaseResults,
    PolicyCases, PolicyDecision, PolicyHistory, PolicyPreview,
};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::policies::{access_decision, dry_run, policy_tests, preview, sets};
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, HeaderValue};
use actix_web::{get, post, put};

use crate::answers::conditional_response::IfMatchHeader;
use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Administer, Anyone, Require, SeeAll};
use crate::requests::body::{JsonBody, LimitedJsonBody};
use crate::requests::path_parameters::PolicyRef;
use crate::requests::query::Query;

/// Show a policy set, the newest by default
#[utoipa::path(
    params(sets::PoliciesQuery),
    responses(
        (status = 200, description = "The policy set; the `ETag` is its number", body = Policies,
         headers(("ETag" = String, description = "The number, for `If-Match`"))),
        (status = 404, description = "There is no set with this number"),
    )
)]
#[get("/v1/policies")]
pub async fn policies_show(
    caller: Require<SeeAll>,
    query: Query<sets::PoliciesQuery>,
) -> HandlerResult {
    let policies = sets::policies_show(&caller.context, &caller, &query.0).await?;
    let mut answer = response::json_response(StatusCode::OK, &policies)?;
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", policies.number)) {
        answer.headers_mut().insert(ETAG, tag);
    }
    Ok(answer)
}

/// Make a new policy set
///
/// All agents are evaluated under it first, while the one before decides; then it decides. `in_force` of `GET /v1/policies`
/// shows when. Going back is putting an earlier set. A set without an enforced permit about `discover` is refused unless
/// `allow_no_permit` is true, and one that hides every listed agent from every kind of caller unless `preview` has the token of
/// its preview.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "The number of the newest set that is known, in quotes")),
    request_body = NewPolicies,
    responses(
        (status = 202, description = "The set is accepted", body = PoliciesAccepted),
        (status = 412, description = "Another set was made since"),
        (status = 422, description = "No policy permits `discover`, and `allow_no_permit` is not true"),
        (status = 428, description = "The set hides every agent, and `preview` is no token of its preview"),
    )
)]
#[put("/v1/policies")]
pub async fn policies_put(
    caller: Require<Administer>,
    new: LimitedJsonBody<NewPolicies, MAX_POLICIES_BODY_BYTES>,
    precondition: IfMatchHeader,
) -> HandlerResult {
    let accepted = sets::policies_put(&caller.context, &caller, &new.0, &precondition.0).await?;
    response::json_response(StatusCode::ACCEPTED, &accepted)
}

/// List the policy sets that were made, newest first
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of policy sets", body = PolicyHistory))
)]
#[get("/v1/policies/history")]
pub async fn policy_history(caller: Require<SeeAll>, page: Query<PageRequest>) -> HandlerResult {
    let history = sets::policy_history(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &history)
}

/// Decide whether the caller may find or call an agent
#[utoipa::path(
    tag = "policies",
    request_body = DecisionRequest,
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The decision", body = PolicyDecision),
        (status = 404, description = "The agent is not registered, or the caller may not find it"),
    )
)]
#[post("/v1/decide")]
pub async fn policy_decide(caller: Anyone, request: JsonBody<DecisionRequest>) -> HandlerResult {
    let decision = access_decision::decide_access(&caller.context, &caller, &request.0).await?;
    response::json_response(StatusCode::OK, &decision)
}

/// Show what a policy set would change
///
/// Every agent is decided about under the newest set and under this one, for each kind of caller that a policy of either
/// names, which takes a while where there are many agents. Nothing is changed.
#[utoipa::path(
    request_body = NewPolicies,
    responses((status = 200, description = "What would change", body = PolicyPreview))
)]
#[post("/v1/policies:preview")]
pub async fn policies_preview(
    caller: Require<Administer>,
    new: LimitedJsonBody<NewPolicies, MAX_POLICIES_BODY_BYTES>,
) -> HandlerResult {
    let preview = preview::policies_preview(&caller.context, &caller, &new.0).await?;
    response::json_response(StatusCode::OK, &preview)
}

/// Test how policies decide
#[utoipa::path(
    request_body = PolicyCases,
    responses((status = 200, description = "How each case was decided", body = PolicyCaseResults))
)]
#[post("/v1/policies:test")]
pub async fn policies_test(
    caller: Require<SeeAll>,
    cases: LimitedJsonBody<PolicyCases, MAX_POLICIES_BODY_BYTES>,
) -> HandlerResult {
    let results = policy_tests::policies_test(&caller.context, &caller, &cases.0).await?;
    response::json_response(StatusCode::OK, &results)
}

/// Show what a policy on a dry run would have changed
///
/// Counted are decisions about registering, admitting and calling, and answers about agents that were found, as far as this
/// registry could follow; days are kept for 90 days.
#[utoipa::path(
    responses(
        (status = 200, description = "What it would have changed", body = DryRun),
        (status = 404, description = "The newest set has no policy with this identifier"),
    )
)]
#[get("/v1/policies/{policy}/dry-run")]
pub async fn policy_dry_run(caller: Require<SeeAll>, policy: PolicyRef) -> HandlerResult {
    let dry_run = dry_run::policy_dry_run(&caller.context, &caller, &policy.0).await?;
    response::json_response(StatusCode::OK, &dry_run)
}
