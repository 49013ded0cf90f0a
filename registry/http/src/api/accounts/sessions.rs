//! Handlers for sessions of accounts.

use a2a_registry_api::{Session, SessionList};
use a2a_registry_core::paging::PageRequest;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, delete, get};

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Read, Require};
use crate::requests::path_parameters::SessionId;
use crate::requests::query::Query;
use crate::sessions;

/// List sessions, newest first
///
/// Admins see all sessions, other callers only their own. Sessions start on the pages; the API accepts tokens only.
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of sessions", body = SessionList))
)]
#[get("/v1/sessions")]
pub async fn session_list(caller: Require<Read>, page: Query<PageRequest>) -> HandlerResult {
    let sessions = sessions::session_list(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &sessions)
}

/// Show a session
#[utoipa::path(
    responses((status = 200, description = "The session", body = Session,
        headers(("ETag" = String, description = "Changes when the response changes"))))
)]
#[get("/v1/sessions/{session}")]
pub async fn session_show(
    request: HttpRequest,
    caller: Require<Read>,
    session: SessionId,
) -> HandlerResult {
    let session = sessions::session_show(&caller.context, &caller, session.0).await?;
    response::json_with_etag(&request, &session)
}

/// Revoke a session
///
/// Accounts revoke their own sessions, using a token with at least the same scopes; admins revoke any session.
#[utoipa::path(
    responses(
        (status = 204, description = "The session is revoked"),
        (status = 409, description = "The session is the last admin access"),
    )
)]
#[delete("/v1/sessions/{session}")]
pub async fn session_revoke(caller: Require<Read>, session: SessionId) -> HandlerResult {
    sessions::session_revoke(&caller.context, &caller, session.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
