//! Handlers for saved searches.

use a2a_registry_api::{NewSavedSearch, SavedSearch, SavedSearchList};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, get, post};

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Read, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::SearchId;
use crate::saved_searches as saved;

/// List the caller's saved searches
#[utoipa::path(
    tag = "agents",
    responses((status = 200, description = "The saved searches, by name", body = SavedSearchList))
)]
#[get("/v1/searches")]
pub async fn saved_search_list(caller: Require<Read>) -> HandlerResult {
    let list = saved::saved_search_list(&caller.context, &caller).await?;
    response::json_response(StatusCode::OK, &list)
}

/// Save a search
///
/// Replaces a search that the caller has saved under the same name.
#[utoipa::path(
    tag = "agents",
    request_body = NewSavedSearch,
    responses((status = 201, description = "The saved search", body = SavedSearch))
)]
#[post("/v1/searches")]
pub async fn saved_search_put(
    caller: Require<Read>,
    new: JsonBody<NewSavedSearch>,
) -> HandlerResult {
    let saved_search = saved::saved_search_put(&caller.context, &caller, &new.0).await?;
    response::json_response(StatusCode::CREATED, &saved_search)
}

/// Delete a saved search
#[utoipa::path(
    tag = "agents",
    responses(
        (status = 204, description = "The saved search is deleted"),
        (status = 409, description = "A hook uses the saved search"),
    )
)]
#[delete("/v1/searches/{search}")]
pub async fn saved_search_delete(caller: Require<Read>, search: SearchId) -> HandlerResult {
    saved::saved_search_delete(&caller.context, &caller, search.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
