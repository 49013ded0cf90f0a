//! The peers of this registry, for operators.

use a2a_registry_api::PeerList;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, web};

use crate::federation::peers;
use crate::http::answer;
use crate::http::auth::{Require, SeeAll};
use crate::http::problem::Problem;
use crate::http::state::State;

/// List the registries that searches over ARD reach
///
/// They are set in `[federation]`.
#[utoipa::path(
    tag = "ard",
    responses((status = 200, description = "The peers, by name", body = PeerList))
)]
#[get("/v1/peers")]
pub async fn peer_list(
    _: Require<SeeAll>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let list = peers(&state.context).await?;
    answer::json(StatusCode::OK, &list)
}
