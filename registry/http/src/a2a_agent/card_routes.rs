//! The registry's own card and its key set, at their well-known paths.

use std::time::{Duration, SystemTime};

use a2a_registry_core::error::AppError;
use a2a_registry_core::process_state::self_agent::SelfAgentCard;
use actix_web::http::header::{self, HeaderMap, HeaderValue, HttpDate};
use actix_web::{HttpRequest, HttpResponse, get, routes, web};
use bytes::Bytes;

use crate::answers::conditional_response::conditional_response;
use crate::answers::response::JSON_CONTENT_TYPE;
use crate::middleware::envelope::prevent_body_changes;
use crate::problems::problem::Problem;
use crate::requests::auth::PublicCardCaller;
use crate::requests::server_state::ServerState;

const CACHE_POLICY: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// Get the registry's own agent card
///
/// The registry is itself an A2A agent that finds and describes agents. The card is signed and is the same for every
/// caller.
#[utoipa::path(
    tag = "a2a",
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The card", body = Object,
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"),
                 ("Last-Modified" = String, description = "When the card was signed"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`, or since `If-Modified-Since`",
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"),
                 ("Last-Modified" = String, description = "When the card was signed"))),
        (status = 404, description = "The registry is not served as an agent"),
    )
)]
#[routes]
#[get("/.well-known/agent-card.json")]
#[get("/.well-known/agent.json", name = "own_card_0_2")]
pub async fn own_card(
    request: HttpRequest,
    _caller: PublicCardCaller,
    state: web::Data<ServerState>,
) -> Result<HttpResponse, Problem> {
    let card = own_signed_card(&state)?;
    Ok(conditional_card_response(
        &request,
        card,
        &card.tag,
        &card.bytes,
    ))
}

/// Get the public keys that sign the registry's own agent card
#[utoipa::path(
    tag = "a2a",
    security((), ("token" = [])),
    responses(
        (status = 200, description = "A JWK Set (RFC 7517)", body = Object,
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"),
                 ("Last-Modified" = String, description = "When the card was signed"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`, or since `If-Modified-Since`",
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"),
                 ("Last-Modified" = String, description = "When the card was signed"))),
        (status = 404, description = "The registry is not served as an agent"),
    )
)]
#[get("/.well-known/jwks.json")]
pub async fn own_keys(
    request: HttpRequest,
    _caller: PublicCardCaller,
    state: web::Data<ServerState>,
) -> Result<HttpResponse, Problem> {
    let card = own_signed_card(&state)?;
    Ok(conditional_card_response(
        &request,
        card,
        &card.key_set_tag,
        &card.key_set,
    ))
}

fn own_signed_card(state: &ServerState) -> Result<&SelfAgentCard, AppError> {
    let card = state.context.self_agent.card.get();
    card.ok_or_else(AppError::no_resource)
}

fn conditional_card_response(
    request: &HttpRequest,
    card: &SelfAgentCard,
    tag: &str,
    bytes: &Bytes,
) -> HttpResponse {
    let signed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(card.signed_at);
    let mut response = conditional_response(request, tag, CACHE_POLICY, || {
        if is_unmodified_since(request.headers(), signed_at) {
            return HttpResponse::NotModified().finish();
        }
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, JSON_CONTENT_TYPE))
            .body(bytes.clone())
    });
    let headers = response.headers_mut();
    if let Ok(text) = HeaderValue::from_str(&HttpDate::from(signed_at).to_string()) {
        headers.insert(header::LAST_MODIFIED, text);
    }
    if request.headers().contains_key(header::ACCEPT_ENCODING) {
        prevent_body_changes(headers);
    }
    response
}

/// Whether `If-Modified-Since` is at or after this time. `If-None-Match` takes precedence (RFC 9110 section 13.2.2).
fn is_unmodified_since(headers: &HeaderMap, modified_at: SystemTime) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return false;
    }
    let since = headers.get(header::IF_MODIFIED_SINCE);
    let since = since.and_then(|since| since.to_str().ok()?.parse::<HttpDate>().ok());
    since.is_some_and(|since| SystemTime::from(since) >= modified_at)
}
