//! Handlers of the curators' queue.

use a2a_registry_api::limits::PageSize;
use a2a_registry_api::{Review, ReviewDecision, ReviewDetail, ReviewList};
use a2a_registry_domain::review::ReviewState;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::answer;
use crate::http::auth::{Approve, Require, SeeAll};
use crate::http::body::Body;
use crate::http::path::ReviewId;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::state::State;
use crate::paging::{PageRequest, not_empty};
use crate::reviews::queue as reviews;

/// Which reviews.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct ReviewQuery {
    /// Only reviews in this state; by default all.
    #[param(inline)]
    #[serde(deserialize_with = "not_empty")]
    state: Option<ReviewState>,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "not_empty")]
    #[param(value_type = Option<PageSize>, inline)]
    page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    page_token: Option<String>,
}

/// List reviews, oldest first
#[utoipa::path(
    tag = "reviews",
    params(ReviewQuery),
    security(("token" = [])),
    responses((status = 200, description = "A page of reviews", body = ReviewList))
)]
#[get("/v1/reviews")]
pub async fn review_list(
    caller: Require<SeeAll>,
    query: Query<ReviewQuery>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let ReviewQuery {
        state: wanted,
        page_size,
        page_token,
    } = query.0;
    let page = PageRequest {
        page_size,
        page_token,
    };
    let reviews = reviews::review_list(&state.context, &caller, wanted, &page).await?;
    answer::json(StatusCode::OK, &reviews)
}

/// Show a review
#[utoipa::path(
    tag = "reviews",
    params(("review" = uuid::Uuid, Path, description = "Id of the review")),
    security(("token" = [])),
    responses(
        (status = 200, description = "The review, with what is needed to decide on it", body = ReviewDetail,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/reviews/{review}")]
pub async fn review_show(
    request: HttpRequest,
    caller: Require<SeeAll>,
    review: ReviewId,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let review = reviews::review_show(&state.context, &caller, review.0).await?;
    answer::resource(&request, &review)
}

/// Approve the content a review is about
#[utoipa::path(
    tag = "reviews",
    params(("review" = uuid::Uuid, Path, description = "Id of the review")),
    request_body = ReviewDecision,
    security(("token" = [])),
    responses(
        (status = 200, description = "The updated review", body = Review),
        (status = 409, description = "The review is closed, it is about another content, or its domain is disputed"),
    )
)]
#[post("/v1/reviews/{review}:approve")]
pub async fn review_approve(
    caller: Require<Approve>,
    review: ReviewId,
    decision: Body<ReviewDecision>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let review = reviews::review_approve(&state.context, &caller, review.0, &decision.0).await?;
    answer::json(StatusCode::OK, &review)
}

/// Reject the content a review is about
#[utoipa::path(
    tag = "reviews",
    params(("review" = uuid::Uuid, Path, description = "Id of the review")),
    request_body = ReviewDecision,
    security(("token" = [])),
    responses(
        (status = 200, description = "The updated review", body = Review),
        (status = 409, description = "The review is closed, it is about another content, or its domain is disputed"),
    )
)]
#[post("/v1/reviews/{review}:reject")]
pub async fn review_reject(
    caller: Require<Approve>,
    review: ReviewId,
    decision: Body<ReviewDecision>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let review = reviews::review_reject(&state.context, &caller, review.0, &decision.0).await?;
    answer::json(StatusCode::OK, &review)
}
