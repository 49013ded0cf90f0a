//! Handler that lists the peers of this registry, for operators.

use a2a_registry_api::PeerList;
use a2a_registry_core::federation::list_peers;
use actix_web::get;
use actix_web::http::StatusCode;

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Require, SeeAll};

/// List the peer registries of federated ARD searches
///
/// Peers are configured in `[federation]`.
#[utoipa::path(
    tag = "ard",
    responses((status = 200, description = "The peers, by name", body = PeerList))
)]
#[get("/v1/peers")]
pub async fn peer_list(caller: Require<SeeAll>) -> HandlerResult {
    let list = list_peers(&caller.context).await?;
    response::json_response(StatusCode::OK, &list)
}
