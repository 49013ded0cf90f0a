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

/// Approve the content a review is about
#[utoipa::path(
    request_body = ReviewDecision,
    responses(
        (status = 200, description = "The updated review; still open if further accounts must approve", body = Review),
        (status = 409, description = "The review is closed, it is about another content, the caller has approved it already, or its domain is disputed"),
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

/// Reject the content a review is about
#[utoipa::path(
    request_body = ReviewDecision,
    responses(
        (status = 200, description = "The updated review; still open if further accounts must approve", body = Review),
        (status = 409, description = "The review is closed, it is about another content, or its domain is disputed"),
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

/// Approve the content of a review alone, for a day
///
/// For an account that is both curator and admin, where others must approve. A review of the kind `break_glass` opens, by
/// which others confirm it; without that what was before returns.
#[utoipa::path(
    request_body = ReviewDecision,
    responses(
        (status = 200, description = "The review by which others confirm it", body = Review),
        (status = 409, description = "The review is closed or about another content, the caller may approve it alone, the glass is broken for the agent already, or was not confirmed for this content before"),
    )
)]
#[post("/v1/reviews/{review}:break-glass")]
pub async fn review_break_glass(
    caller: Require<Approve>,
    review: ReviewId,
    decision: JsonBody<ReviewDecision>,
) -> HandlerResult {
    let review = break_glass::break_glass(&caller.context, &caller, review.0, &decision.0).await?;
    response::json_response(StatusCode::OK, &review)
}

/// Take back one's own approval of a review that is still open
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
/// Each decision is made or not made as a whole, one after the other, and has a result of its own.
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
    let outcome = |(id, result): bulk::BulkItemResult| match result {
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
/// Curators comment on every review, publishers on those of their own agents.
#[utoipa::path(
    request_body = NewComment,
    responses(
        (status = 201, description = "The comment", body = ReviewComment),
        (status = 409, description = "The review has as many comments as it can have"),
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

/// Set who is to decide a review, and by when
///
/// What is absent stays as it is. Without `If-Match` the change is made to whatever the review is now.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of what is to be changed")),
    request_body = ReviewPatch,
    responses(
        (status = 200, description = "The updated review", body = Review,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 409, description = "The review is closed, or the assignee cannot decide it"),
        (status = 412, description = "`If-Match` names another state than the present one"),
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
    Ok(response::changed_rendered_resource(review))
}

/// Lift a hold
///
/// One that a change has set is lifted so only by an account that may approve that change alone.
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
/// Curators decide what follows; nothing is hidden by a report.
#[utoipa::path(
    request_body = NewReport,
    security((), ("token" = [])),
    responses(
        (status = 202, description = "The report was taken in", body = ReportAccepted),
        (status = 409, description = "The agent is retired"),
    )
)]
#[post("/v1/agents/{agent}:report")]
pub async fn agent_report(
    caller: AnyoneWriting,
    agent: AgentRef,
    new_report: JsonBody<NewReport>,
) -> HandlerResult {
    let accepted = reports::agent_report(&caller.context, &caller, &agent.0, &new_report.0).await?;
    response::json_response(StatusCode::ACCEPTED, &accepted)
}

/// Open a review of the content that an agent serves
///
/// As the registry does by itself before an approval ends. The reason is the first comment on the review.
#[utoipa::path(
    request_body = Act,
    responses(
        (status = 200, description = "The opened review", body = Review),
        (status = 409, description = "The agent serves nothing, or such a review is open already"),
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

/// Note up to when the caller has seen its news
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
