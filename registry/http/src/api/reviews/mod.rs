//! Handlers for the curators' review queue.

pub mod feeds;
pub mod writing;

use a2a_registry_api::limits::PageSize;
use a2a_registry_api::{ReviewDetail, ReviewList, Waiting, deserialize_nonempty_parameter};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::list::ReviewListFilter;
use a2a_registry_core::reviews::reviewed_card::ReviewedCardFilter;
use a2a_registry_core::reviews::{inbox, list as reviews};
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, get};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Read, Require};
use crate::requests::path_parameters::ReviewId;
use crate::requests::query::Query;

/// Query parameters that choose reviews.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct ReviewQuery {
    /// Returns only reviews in this state; by default all.
    #[param(inline)]
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    state: Option<ReviewState>,
    /// Returns only reviews of this kind.
    #[param(inline)]
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    kind: Option<ReviewKind>,
    /// Returns only reviews of changes of these classes; `first` for first cards.
    #[param(inline)]
    change_class: Vec<ReviewedChange>,
    /// Returns only reviews of agents of this domain.
    domain: Option<String>,
    /// Returns only reviews of cards whose source was registered by the account with this name.
    submitter: Option<String>,
    /// Returns only reviews of agents of this provider, by the name in the card.
    provider: Option<String>,
    /// Returns only reviews of cards with a skill that has this tag.
    #[param(example = "travel")]
    tag: Option<String>,
    /// Returns only reviews of cards that require this authentication, with the values of the same filter of searches.
    auth: Option<String>,
    /// Returns only reviews of cards with an interface on this host.
    endpoint_host: Option<String>,
    /// Returns only reviews assigned to the account with this name; `me` for the caller.
    assignee: Option<String>,
    /// Returns only reviews of the caller's own agents. Callers with limited access never get others.
    mine: bool,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<PageSize>, inline)]
    page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    page_token: Option<String>,
}

/// List reviews, oldest first
///
/// Callers with limited access get only the reviews of their own agents. With a filter by what cards say, a page may
/// have fewer entries than asked for, even none, while `next_page_token` is set: one request reads 2,000 cards at most.
#[utoipa::path(
    params(ReviewQuery),
    responses((status = 200, description = "A page of reviews", body = ReviewList))
)]
#[get("/v1/reviews")]
pub async fn review_list(caller: Require<Read>, query: Query<ReviewQuery>) -> HandlerResult {
    let ReviewQuery {
        state: in_state,
        kind,
        change_class,
        domain,
        submitter,
        provider,
        tag,
        auth,
        endpoint_host,
        assignee,
        mine,
        page_size,
        page_token,
    } = query.0;
    let list_filter = ReviewListFilter {
        state: in_state,
        kind,
        change_class,
        domain,
        submitter,
        assignee,
        mine,
        card: ReviewedCardFilter {
            provider,
            tag,
            auth,
            endpoint_host,
        },
    };
    let page = PageRequest {
        page_size,
        page_token,
    };
    let reviews = reviews::review_list(&caller.context, &caller, &list_filter, &page).await?;
    response::json_response(StatusCode::OK, &reviews)
}

/// Show a review
#[utoipa::path(
    responses(
        (status = 200, description = "The review, with the data needed for a decision", body = ReviewDetail,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/reviews/{review}")]
pub async fn review_show(
    request: HttpRequest,
    caller: Require<Read>,
    review: ReviewId,
) -> HandlerResult {
    let review = reviews::render_review(&caller.context, &caller, review.0).await?;
    Ok(response::rendered_with_etag(&request, &review))
}

/// Show the caller's inbox
///
/// Lists reviews to decide, decisions and comments on own agents since the caller's last visit, and domains to prove.
#[utoipa::path(
    tag = "reviews",
    responses((status = 200, description = "The caller's inbox", body = Waiting))
)]
#[get("/v1/me/waiting")]
pub async fn me_waiting(caller: Require<Read>) -> HandlerResult {
    let waiting = inbox::load_inbox(&caller.context, &caller).await?;
    response::json_response(StatusCode::OK, &waiting)
}
