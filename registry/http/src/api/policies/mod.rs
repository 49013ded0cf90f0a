//! Handlers for policy sets.

pub mod decisions;
pub mod waivers;

use a2a_registry_api::limits::MAX_POLICIES_BODY_BYTES;
use a2a_registry_api::{
    DryRun, NewPolicies, Policies, PoliciesAccepted, PolicyCaseResults, PolicyCases, PolicyHistory,
    PreviewJob,
};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::policies::{dry_run, policy_cases, preview_jobs, sets};
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, HeaderValue};
use actix_web::{HttpResponse, delete, get, post, put};

use crate::answers::conditional_response::IfMatchHeader;
use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Administer, Require, SeeAll};
use crate::requests::body::LimitedJsonBody;
use crate::requests::path_parameters::{PolicyRef, PreviewId};
use crate::requests::query::Query;

/// Show a policy set, the newest by default
#[utoipa::path(
    params(sets::PolicySetQuery),
    responses(
        (status = 200, description = "The policy set; the `ETag` is its number", body = Policies,
         headers(("ETag" = String, description = "The number, for `If-Match`"))),
        (status = 404, description = "No policy set has this number"),
    )
)]
#[get("/v1/policies")]
pub async fn policies_show(
    caller: Require<SeeAll>,
    query: Query<sets::PolicySetQuery>,
) -> HandlerResult {
    let policies = sets::policies_show(&caller.context, &caller, &query.0).await?;
    let mut answer = response::json_response(StatusCode::OK, &policies)?;
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", policies.number)) {
        answer.headers_mut().insert(ETAG, tag);
    }
    Ok(answer)
}

/// Create a policy set
///
/// All agents are first evaluated under the new set while the previous set still decides; then the new set takes
/// effect, which `in_force` of `GET /v1/policies` shows. To go back, submit an earlier set again. A set without an
/// enforced permit for `discover` is rejected unless `allow_no_permit` is true. A set that hides every listed agent
/// from every kind of caller is rejected unless `preview` is the token of its preview.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header,
    description = "The number of the newest set known to the caller, in quotes")),
    request_body = NewPolicies,
    responses(
        (status = 202, description = "The set is accepted", body = PoliciesAccepted),
        (status = 412, description = "Another set was created since"),
        (status = 422, description = "No policy permits `discover`, and `allow_no_permit` is not true"),
        (status = 428, description = "The set hides every agent, and `preview` is not the token of its preview"),
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

/// List policy sets, newest first
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of policy sets", body = PolicyHistory))
)]
#[get("/v1/policies/history")]
pub async fn policy_history(caller: Require<SeeAll>, page: Query<PageRequest>) -> HandlerResult {
    let history = sets::policy_history(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &history)
}

/// Request a preview of a policy set
///
/// Every agent is evaluated under the newest set and under this one, for each kind of caller that a policy of either
/// set names. Previews are made in the background, one after another. One of the same policies is not made again while
/// it is in progress, or nothing has happened in the registry since. Nothing is changed.
#[utoipa::path(
    request_body = NewPolicies,
    responses((status = 202, description = "The preview with its state", body = PreviewJob))
)]
#[post("/v1/policies/previews")]
pub async fn policy_preview_start(
    caller: Require<Administer>,
    new: LimitedJsonBody<NewPolicies, MAX_POLICIES_BODY_BYTES>,
) -> HandlerResult {
    let job = preview_jobs::policy_preview_start(&caller.context, &caller, &new.0).await?;
    response::json_response(StatusCode::ACCEPTED, &job)
}

/// Show a preview with its progress or result
#[utoipa::path(
    responses(
        (status = 200, description = "The preview", body = PreviewJob),
        (status = 404, description = "No preview has this identifier"),
    )
)]
#[get("/v1/policies/previews/{preview}")]
pub async fn policy_preview_show(caller: Require<Administer>, preview: PreviewId) -> HandlerResult {
    let job = preview_jobs::policy_preview_show(&caller.context, &caller, preview.0).await?;
    response::json_response(StatusCode::OK, &job)
}

/// Cancel a preview
#[utoipa::path(
    responses(
        (status = 204, description = "The preview is cancelled, or had ended"),
        (status = 404, description = "No preview has this identifier"),
    )
)]
#[delete("/v1/policies/previews/{preview}")]
pub async fn policy_preview_cancel(
    caller: Require<Administer>,
    preview: PreviewId,
) -> HandlerResult {
    preview_jobs::policy_preview_cancel(&caller.context, &caller, preview.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Test the decisions of policies
#[utoipa::path(
    request_body = PolicyCases,
    responses((status = 200, description = "How each case was decided", body = PolicyCaseResults))
)]
#[post("/v1/policies:test")]
pub async fn policies_test(
    caller: Require<SeeAll>,
    cases: LimitedJsonBody<PolicyCases, MAX_POLICIES_BODY_BYTES>,
) -> HandlerResult {
    let results = policy_cases::policies_test(&caller.context, &caller, &cases.0).await?;
    response::json_response(StatusCode::OK, &results)
}

/// Show what a dry-run policy would have changed
///
/// Counts the decisions about registration, admission and calls, and the responses about agents that were found, as
/// far as this registry could track them. Daily counts are kept for 90 days.
#[utoipa::path(
    responses(
        (status = 200, description = "The counted changes", body = DryRun),
        (status = 404, description = "The newest set has no policy with this identifier"),
    )
)]
#[get("/v1/policies/{policy}/dry-run")]
pub async fn policy_dry_run(caller: Require<SeeAll>, policy: PolicyRef) -> HandlerResult {
    let dry_run = dry_run::load_policy_dry_run(&caller.context, &caller, &policy.0).await?;
    response::json_response(StatusCode::OK, &dry_run)
}
