//! Handlers for card bytes, exactly as the publishers wrote them.

use a2a_card::UnknownTarget;
use a2a_registry_api::limits::CardForm;
use a2a_registry_core::agents::cards::{self, convert_agent_card};
use a2a_registry_core::process_state::card_cache::ServedCard;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, routes, web};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::conditional_response::conditional_response;
use crate::answers::response::{self, HandlerResult};
use crate::middleware::envelope::prevent_body_changes;
use crate::problems::problem::Problem;
use crate::requests::auth::PublicCardCaller;
use crate::requests::path_parameters::{AgentRef, CardFormRef};
use crate::requests::query::Query;
use crate::requests::server_state::ServerState;

/// Media type of A2A cards, used for stored versions.
const CARD_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/a2a-agent-card+json");
/// `Cache-Control` of the approved card. It may change at any time, so caches must revalidate it; its bytes are
/// signed, so intermediaries must not rewrite them.
const APPROVED_CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
/// `Cache-Control` of a stored version. The bytes behind a digest never change, but their visibility can.
const VERSION_CACHE_CONTROL: HeaderValue = HeaderValue::from_static("max-age=300, no-transform");

/// Lists what a conversion added and could not express, and whether clients can call the agent with the result.
const CONVERSION_HEADER: HeaderName = HeaderName::from_static("a2a-registry-conversion");

/// Query parameters that choose a card of an agent.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct CardQuery {
    /// Digest of a stored version; by default the approved card.
    version: Option<String>,
    /// Protocol version to convert the card to: `1.0` or `0.3`. A converted card differs from what the publisher
    /// wrote: it is unsigned, and an extension names its origin.
    #[param(value_type = Option<CardForm>, inline)]
    #[serde(rename = "as")]
    convert: Option<String>,
}

/// Query parameter that chooses a version of an agent's card.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct VersionQuery {
    /// Digest of a stored version; by default the approved card.
    version: Option<String>,
}

/// Get the approved card, byte for byte
///
/// `version` selects a stored version of the card, sent as `application/a2a-agent-card+json`. `as` converts the card
/// to another protocol version, for clients that support no other. The response header `A2A-Registry-Conversion` then
/// lists the applied conversion rules, most severe first: values that were added, and values that could not be
/// converted. `a2a-registry lint --rules` explains them; `convert.no-client` means that clients of that version cannot
/// call the agent.
#[utoipa::path(
    params(CardQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The card", content(
            (Object = "application/json"),
            (Object = "application/a2a-agent-card+json"),
        ), headers(
            ("ETag" = String, description = "Digest of the bytes, in quotes"),
            ("A2A-Registry-Conversion" = String,
             description = "With `as`: the applied conversion rules, separated by commas, most severe first"),
        )),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"))),
    )
)]
#[routes]
#[get("/v1/agents/{agent}/card")]
#[get(
    "/agents/{agent}/.well-known/agent-card.json",
    name = "agent_card_well_known"
)]
#[get(
    "/agents/{agent}/.well-known/agent.json",
    name = "agent_card_well_known_0_2"
)]
pub async fn agent_card(
    request: HttpRequest,
    caller: PublicCardCaller,
    agent: AgentRef,
    query: Query<CardQuery>,
    state: web::Data<ServerState>,
) -> HandlerResult {
    respond_with_card(&request, &caller.0, &agent.0, &query.0, &state).await
}

/// Get the converted approved card at the path that SDK resolvers use
///
/// Like `/v1/agents/{agent}/card` with `as`: `/agents/{agent}/as/1.0/` is the base URL for a resolver that reads only
/// 1.0 cards.
#[utoipa::path(
    params(VersionQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The card", content(
            (Object = "application/json"),
            (Object = "application/a2a-agent-card+json"),
        ),
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"),
            ("A2A-Registry-Conversion" = String,
             description = "The applied conversion rules, separated by commas, most severe first"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Digest of the bytes, in quotes"))),
    )
)]
#[routes]
#[get("/agents/{agent}/as/{form}/.well-known/agent-card.json")]
#[get(
    "/agents/{agent}/as/{form}/.well-known/agent.json",
    name = "agent_card_as_well_known_0_2"
)]
pub async fn agent_card_as_well_known(
    request: HttpRequest,
    caller: PublicCardCaller,
    agent: AgentRef,
    form: CardFormRef,
    query: Query<VersionQuery>,
    state: web::Data<ServerState>,
) -> HandlerResult {
    let query = CardQuery {
        version: query.0.version,
        convert: Some(form.0),
    };
    respond_with_card(&request, &caller.0, &agent.0, &query, &state).await
}

async fn respond_with_card(
    request: &HttpRequest,
    caller: &Caller,
    agent: &str,
    query: &CardQuery,
    state: &ServerState,
) -> HandlerResult {
    let version = query.version.as_deref();
    let card = match query.convert.as_deref().map(str::parse) {
        None => cards::load_agent_card(&state.context, caller, agent, version).await?,
        Some(Ok(target)) => {
            convert_agent_card(&state.context, caller, agent, version, target).await?
        }
        Some(Err(UnknownTarget(_))) => {
            return Err(Problem::invalid(
                "/as",
                "`as` must be 1.0 or 0.3. Leave it out to get the card as its publisher wrote it.",
            ));
        }
    };
    Ok(match version {
        None => card_response(
            request,
            &card,
            response::JSON_CONTENT_TYPE,
            APPROVED_CACHE_CONTROL,
        ),
        Some(_) => {
            let mut response =
                card_response(request, &card, CARD_MEDIA_TYPE, VERSION_CACHE_CONTROL);
            response
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("authorization"));
            response
        }
    })
}

fn card_response(
    request: &HttpRequest,
    card: &ServedCard,
    media_type: HeaderValue,
    cache_control: HeaderValue,
) -> HttpResponse {
    let mut response = conditional_response(request, &card.etag, cache_control, || {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, media_type))
            .body(card.bytes.clone())
    });
    let headers = response.headers_mut();
    if request.headers().contains_key(header::ACCEPT_ENCODING) {
        prevent_body_changes(headers);
    }
    if !card.losses.is_empty()
        && let Ok(losses) = HeaderValue::from_str(&card.losses.join(", "))
    {
        headers.insert(CONVERSION_HEADER, losses);
    }
    response
}
