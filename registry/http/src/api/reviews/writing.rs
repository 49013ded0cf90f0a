//! Handlers that change reviews.

use a2a_registry_api::{
    Act, Agent, BulkDecision, BulkOutcome, DecisionOutcome, NewComment, NewReport, ReportAccepted,
    Review, ReviewComment, ReviewDecision, ReviewPatch, Seen,
};
use a2a_registry_core::reviews::{
    break_glass, bulk, decisions, inbox, notes, recertification, reports, resume,
};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, patch, post};

use crate::answers::conditional_response::IfMatchHeader;
use crate::answers::response::{self, HandlerResult};
use crate::problems::problem::Problem;
use crate::requests::auth::{AnyoneWriting, Approve, Curate, Read, Register, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::{AgentRef, ReviewId};

/// Approve the reviewed content
#[utoipa::path(
    request_body = ReviewDecision,
    responses(
        (status = 200, description = "The updated review; still open if more approvals are required", body = Review),
        (status = 409, description = "The review is closed or about other content, the caller has already approved \
         it, or the domain is disputed"),
    )
)]
#[post("/v1/reviews/{review}:approve")]
pub async fn review_approve(
    caller: Require<Approve>,
    review: ReviewId,
    decision: JsonBody<ReviewDecision>,
) -> HandlerResult {
    let review = decisions::review_approve(&caller.context, &caller, review.0, &decision.0).await?;
    response::json_response(StatusCode::OK, &review)
}

/// Reject the reviewed content
#[utoipa::path(
    request_body = ReviewDecision,
    responses(
        (status = 200, description = "The updated review; still open if more approvals are required", body = Review),
        (status = 409, description = "The review is closed or about other content, or its domain is disputed"),
    )
)]
#[post("/v1/reviews/{review}:reject")]
pub async fn review_reject(
    caller: Require<Approve>,
    review: ReviewId,
    decision: JsonBody<ReviewDecision>,
) -> HandlerResult {
    let review = decisions::review_reject(&caller.context, &caller, review.0, &decision.0).await?;
    response::json_response(StatusCode::OK, &review)
}

/// Approve reviewed content alone for one day (break-glass)
///
/// Allowed for an account that is both curator and admin, for reviews that others must approve. The registry opens a
/// review of the kind `break_glass`, in which others confirm the approval; without confirmation the previous content
/// is restored.
#[utoipa::path(
    request_body = ReviewDecision,
    responses(
        (status = 200, description = "The review for confirmation by others", body = Review),
        (status = 409, description = "The review is closed or about other content, the caller may approve it alone \
         anyway, the agent already has a break-glass approval, or an earlier one for this content was not confirmed"),
    )
)]
#[post("/v1/reviews/{review}:break-glass")]
pub async fn review_break_glass(
    caller: Require<Approve>,
    review: ReviewId,
    decision: JsonBody<ReviewDecision>,
) -> HandlerResult {
    let review =
        break_glass::approve_by_break_glass(&caller.context, &caller, review.0, &decision.0)
            .await?;
    response::json_response(StatusCode::OK, &review)
}

/// Withdraw the caller's approval of an open review
#[utoipa::path(
    responses(
        (status = 200, description = "The updated review", body = Review),
        (status = 409, description = "The review is closed, or the caller has not approved it"),
    )
)]
#[delete("/v1/reviews/{review}/approval")]
pub async fn approval_withdraw(caller: Require<Approve>, review: ReviewId) -> HandlerResult {
    let review = decisions::approval_withdraw(&caller.context, &caller, review.0).await?;
    response::json_response(StatusCode::OK, &review)
}

/// Decide several reviews
///
/// Decisions are made one by one; each succeeds or fails as a whole and has its own result.
#[utoipa::path(
    request_body = BulkDecision,
    responses((status = 200, description = "One result for each decision", body = BulkOutcome))
)]
#[post("/v1/reviews:decide")]
pub async fn review_decide_all(
    caller: Require<Approve>,
    body: JsonBody<BulkDecision>,
) -> HandlerResult {
    let results = bulk::review_decide_all(&caller.context, &caller, &body.0).await?;
    let outcome = |(id, result): bulk::BulkDecisionResult| match result {
        Ok(review) => DecisionOutcome {
            id,
            review: Some(review),
            problem: None,
        },
        Err(error) => DecisionOutcome {
            id,
            review: None,
            problem: Some(Problem::from(error).to_outcome_problem()),
        },
    };
    let outcomes = results.into_iter().map(outcome).collect();
    response::json_response(StatusCode::OK, &BulkOutcome { outcomes })
}

/// Comment on a review
///
/// Curators may comment on every review, publishers only on reviews of their own agents.
#[utoipa::path(
    request_body = NewComment,
    responses(
        (status = 201, description = "The comment", body = ReviewComment),
        (status = 409, description = "The review has the maximum number of comments"),
    )
)]
#[post("/v1/reviews/{review}/comments")]
pub async fn comment_add(
    caller: Require<Register>,
    review: ReviewId,
    new_comment: JsonBody<NewComment>,
) -> HandlerResult {
    let comment = notes::comment_add(&caller.context, &caller, review.0, &new_comment.0).await?;
    response::json_response(StatusCode::CREATED, &comment)
}

/// Set the assignee and due date of a review
///
/// Absent members stay unchanged. Without `If-Match` the change applies to the current state of the review.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to change")),
    request_body = ReviewPatch,
    responses(
        (status = 200, description = "The updated review", body = Review,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 409, description = "The review is closed, or the assignee cannot decide it"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[patch("/v1/reviews/{review}")]
pub async fn review_patch(
    caller: Require<Curate>,
    review: ReviewId,
    patch: JsonBody<ReviewPatch>,
    precondition: IfMatchHeader,
) -> HandlerResult {
    let review = notes::review_patch(
        &caller.context,
        &caller,
        review.0,
        &patch.0,
        &precondition.0,
    )
    .await?;
    Ok(response::rendered_resource_response(review))
}

/// Lift a hold
///
/// A hold that a change has set can be lifted only by an account that may approve the change alone.
#[utoipa::path(
    request_body = Act,
    responses(
        (status = 200, description = "The updated agent", body = Agent),
        (status = 409, description = "The agent is retired, the hold is not set, or it ends only with its cause"),
    )
)]
#[post("/v1/agents/{agent}:resume")]
pub async fn agent_resume(
    caller: Require<Curate>,
    agent: AgentRef,
    act: JsonBody<Act>,
) -> HandlerResult {
    let agent = resume::agent_resume(&caller.context, &caller, &agent.0, &act.0).await?;
    response::json_response(StatusCode::OK, &agent)
}

/// Report an agent
///
/// Curators decide on the report; the report itself hides nothing.
#[utoipa::path(
    request_body = NewReport,
    security((), ("token" = [])),
    responses(
        (status = 202, description = "The report was received", body = ReportAccepted),
        (status = 409, description = "The agent is retired"),
    )
)]
#[post("/v1/agents/{agent}:report")]
pub async fn agent_report(
    caller: AnyoneWriting,
    agent: AgentRef,
    new_report: JsonBody<NewReport>,
) -> HandlerResult {
    let accepted = reports::report_agent(&caller.context, &caller, &agent.0, &new_report.0).await?;
    response::json_response(StatusCode::ACCEPTED, &accepted)
}

/// Open a review of an agent's served content
///
/// The registry does the same automatically before an approval ends. The reason becomes the first comment.
#[utoipa::path(
    request_body = Act,
    responses(
        (status = 200, description = "The opened review", body = Review),
        (status = 409, description = "The agent serves no content, or such a review is already open"),
    )
)]
#[post("/v1/agents/{agent}:recertify")]
pub async fn agent_recertify(
    caller: Require<Curate>,
    agent: AgentRef,
    act: JsonBody<Act>,
) -> HandlerResult {
    let review =
        recertification::agent_recertify(&caller.context, &caller, &agent.0, &act.0).await?;
    response::json_response(StatusCode::OK, &review)
}

/// Mark news as read up to a given time
#[utoipa::path(
    tag = "reviews",
    request_body = Seen,
    responses((status = 204, description = "Noted"))
)]
#[post("/v1/me:seen")]
pub async fn me_seen(caller: Require<Read>, body: JsonBody<Seen>) -> HandlerResult {
    inbox::mark_news_read(&caller.context, &caller, &body.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
