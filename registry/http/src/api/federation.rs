//! The peers of this registry, for operators.

use a2a_registry_api::PeerList;
use a2a_registry_core::federation::peers;
use actix_web::get;
use actix_web::http::StatusCode;

use crate::answers::answer::{self, Answer};
use crate::requests::auth::{Require, SeeAll};

/// List the registries that searches over ARD reach
///
/// They are set in `[federation]`.
#[utoipa::path(
    tag = "ard",
    responses((status = 200, description = "The peers, by name", body = PeerList))
)]
#[get("/v1/peers")]
pub async fn peer_list(caller: Require<SeeAll>) -> Answer {
    let list = peers(&caller.context).await?;
    answer::json(StatusCode::OK, &list)
}
