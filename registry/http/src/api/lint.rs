//! Handler that lints a card.

use a2a_registry_api::CardLint;
use a2a_registry_api::limits::Card;
use a2a_registry_core::lint;
use actix_web::http::StatusCode;
use actix_web::post;

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::AnyoneWriting;
use crate::requests::body::CardBody;

/// Lint a card without registering it
///
/// The body is the card, of at most 1 MiB. Nothing is fetched or stored. An anonymous request counts as a change for
/// the rate limit of the caller's address.
#[utoipa::path(
    request_body = Card,
    security((), ("token" = [])),
    responses(
        (status = 200, description = "Findings, and the parsed card", body = CardLint),
        (status = 422, description = "The document is JSON, but not an agent card (`not-a-card`)"),
        (status = 429, description = "Too many anonymous changes within a minute"),
    )
)]
#[post("/v1/cards:lint")]
pub async fn card_lint(caller: AnyoneWriting, card: CardBody) -> HandlerResult {
    let linted = lint::run_card_lint(&caller.context, card.0).await?;
    response::json_response(StatusCode::OK, &linted)
}
