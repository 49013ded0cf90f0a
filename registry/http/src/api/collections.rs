//! Handlers for collections.

use a2a_registry_api::{Collection, CollectionContent, CollectionList};
use a2a_registry_core::collections::actions;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, delete, get, put};

use crate::answers::conditional_response::IfMatchHeader;
use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Anyone, Curate, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::CollectionRef;

/// List the collections that the caller may see
#[utoipa::path(
    security((), ("token" = [])),
    responses((status = 200, description = "The collections, by name", body = CollectionList))
)]
#[get("/v1/collections")]
pub async fn collection_list(caller: Anyone) -> HandlerResult {
    let list = actions::collection_list(&caller.context, &caller).await?;
    response::json_response(StatusCode::OK, &list)
}

/// Show a collection
///
/// To list its agents, search with `collection=NAME`.
#[utoipa::path(
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The collection", body = Collection,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/collections/{collection}")]
pub async fn collection_show(
    request: HttpRequest,
    caller: Anyone,
    collection: CollectionRef,
) -> HandlerResult {
    let found = actions::collection_show(&caller.context, &caller, &collection.0).await?;
    response::json_with_etag(&request, &found)
}

/// Set the definition of a collection, creating the collection if needed
///
/// Without `If-Match` the change applies to the current state of the collection. A name has at most 64 characters:
/// lower-case letters, digits, `.`, `_` and `-`.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to change")),
    request_body = CollectionContent,
    responses(
        (status = 200, description = "The collection", body = Collection,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 409, description = "A group or an account does not exist"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[put("/v1/collections/{collection}")]
pub async fn collection_put(
    caller: Require<Curate>,
    collection: CollectionRef,
    content: JsonBody<CollectionContent>,
    precondition: IfMatchHeader,
) -> HandlerResult {
    let (name, content) = (&collection.0, &content.0);
    let found =
        actions::collection_put(&caller.context, &caller, name, content, &precondition.0).await?;
    response::changed_resource_response(&found)
}

/// Delete a collection but keep its agents
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to delete")),
    responses(
        (status = 204, description = "The collection is deleted"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[delete("/v1/collections/{collection}")]
pub async fn collection_delete(
    caller: Require<Curate>,
    collection: CollectionRef,
    precondition: IfMatchHeader,
) -> HandlerResult {
    actions::collection_delete(&caller.context, &caller, &collection.0, &precondition.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
