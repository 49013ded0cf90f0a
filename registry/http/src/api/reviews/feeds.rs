//! Handlers for feeds: the feed itself, and the actions that create its URL and end it.

use a2a_registry_api::CreatedFeed;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpResponse, delete, post, web};
use askama::Template as _;

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Read, Require};
use crate::requests::path_parameters::FeedSecret;
use crate::review_feed as feed;

/// Create a new URL for the caller's feed
///
/// The feed is an Atom feed of reviews to decide, and of decisions and comments on own agents. An earlier URL becomes
/// invalid.
#[utoipa::path(
    tag = "reviews",
    responses((status = 201, description = "The URL, which is shown only once", body = CreatedFeed))
)]
#[post("/v1/me/feed")]
pub async fn feed_renew(caller: Require<Read>) -> HandlerResult {
    let created = feed::review_feed_renew(&caller.context, &caller).await?;
    response::uncached_json(StatusCode::CREATED, &created)
}

/// End the caller's feed
#[utoipa::path(
    tag = "reviews",
    responses(
        (status = 204, description = "The feed has ended"),
        (status = 404, description = "The caller has no feed"),
    )
)]
#[delete("/v1/me/feed")]
pub async fn feed_revoke(caller: Require<Read>) -> HandlerResult {
    feed::review_feed_revoke(&caller.context, &caller).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(crate) async fn serve_review_feed(
    context: web::Data<AppContext>,
    FeedSecret(secret): FeedSecret,
) -> HandlerResult {
    let document = feed::load_review_feed(&context, &secret).await?;
    let body = document.render();
    let body = body.map_err(|error| AppError::internal(error.to_string()))?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/atom+xml; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "private, no-cache"))
        .body(body))
}
