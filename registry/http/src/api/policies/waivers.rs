//! Handlers for waivers.

use a2a_registry_api::{NewWaiver, Waiver, WaiverList};
use a2a_registry_core::policies::waivers::{self, WaiverQuery};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, get, post};

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Approve, Curate, Read, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::WaiverId;
use crate::requests::query::Query;

/// List waivers, newest first
///
/// Callers who see everything list all of them, others those of their own agents.
#[utoipa::path(
    tag = "policies",
    params(WaiverQuery),
    responses(
        (status = 200, description = "A page of waivers", body = WaiverList),
        (status = 404, description = "The agent is not registered"),
    )
)]
#[get("/v1/waivers")]
pub async fn waiver_list(caller: Require<Read>, query: Query<WaiverQuery>) -> HandlerResult {
    let list = waivers::waiver_list(&caller.context, &caller, &query.0).await?;
    response::json_response(StatusCode::OK, &list)
}

/// Grant a waiver
///
/// Until the waiver ends, the policy does not apply to the agent's effective content. Under four-eyes neither the
/// owner of the agent nor the account that registered it may grant a waiver.
#[utoipa::path(
    tag = "policies",
    request_body = NewWaiver,
    responses(
        (status = 201, description = "The waiver", body = Waiver),
        (status = 404, description = "The agent is not registered"),
        (status = 409, description = "The agent has other effective content, is retired, or already has this waiver"),
    )
)]
#[post("/v1/waivers")]
pub async fn waiver_grant(caller: Require<Approve>, new: JsonBody<NewWaiver>) -> HandlerResult {
    let waiver = waivers::waiver_grant(&caller.context, &caller, &new.0).await?;
    response::json_response(StatusCode::CREATED, &waiver)
}

/// End a waiver
#[utoipa::path(
    tag = "policies",
    responses(
        (status = 204, description = "The waiver has ended; the policy applies again"),
        (status = 404, description = "No such waiver is in force"),
    )
)]
#[delete("/v1/waivers/{waiver}")]
pub async fn waiver_end(caller: Require<Curate>, waiver: WaiverId) -> HandlerResult {
    waivers::end_active_waiver(&caller.context, &caller, waiver.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
