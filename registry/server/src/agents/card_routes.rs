//! The bytes of cards, exactly as their publishers wrote them.

use a2a_card::UnknownTarget;
use a2a_registry_api::limits::CardForm;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, get, web};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::agents::cards;
use crate::agents::cards::agent_card_as;
use crate::http::answer;
use crate::http::auth::CardReader;
use crate::http::envelope::leave_untouched;
use crate::http::path::AgentRef;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::state::State;
use crate::memory::cards::ServedCard;

/// The media type of A2A cards, which a kept version is sent with.
const CARD_JSON: HeaderValue = HeaderValue::from_static("application/a2a-agent-card+json");
/// The card served may change at any time; what is kept of it is asked for again. Its bytes are signed, so
/// that nobody on the way may write them differently.
const CURRENT: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
/// The bytes behind a digest never change; whether they may be shown can.
const VERSION: HeaderValue = HeaderValue::from_static("max-age=300, no-transform");

/// What a conversion had to put in and could not say, and whether clients can call the agent by it.
const CONVERSION: HeaderName = HeaderName::from_static("a2a-registry-conversion");

/// Which card of an agent.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct CardQuery {
    /// The digest of a kept version; the approved card where absent.
    version: Option<String>,
    /// The protocol version to convert the card to: `1.0` or `0.3`. The answer is not what the publisher
    /// wrote: it is never signed, and says by an extension what it was made from.
    #[param(value_type = Option<CardForm>, inline)]
    #[serde(rename = "as")]
    convert: Option<String>,
}

/// The approved card, byte for byte
///
/// With `version` a kept version of it, as `application/a2a-agent-card+json`; with `as` in the form of another
/// protocol version, for clients that read no other. The header `A2A-Registry-Conversion` then names what was put in
/// and what could not be said, by the rules of conversions that `a2a-registry lint --rules` lists, the gravest
/// first; `convert.no-client` among them says that no client of that version can call the agent.
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN"), CardQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The card", content(
            (Object = "application/json"),
            (Object = "application/a2a-agent-card+json"),
        ), headers(
            ("ETag" = String, description = "The digest of the bytes, in quotes"),
            ("A2A-Registry-Conversion" = String,
             description = "With `as`: the rules of conversions that were broken, separated by commas, the gravest first"),
        )),
        (status = 304, description = "The caller has these bytes already",
         headers(("ETag" = String, description = "The digest of the bytes, in quotes"))),
    )
)]
#[get("/v1/agents/{agent}/card")]
pub async fn agent_card(
    request: HttpRequest,
    caller: CardReader,
    agent: AgentRef,
    query: Query<CardQuery>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let version = query.0.version.as_deref();
    let card = match query.0.convert.as_deref().map(str::parse) {
        None => cards::agent_card(&state.context, &caller.0, &agent.0, version).await?,
        Some(Ok(target)) => {
            agent_card_as(&state.context, &caller.0, &agent.0, version, target).await?
        }
        Some(Err(UnknownTarget(_))) => {
            return Err(Problem::invalid(
                "/as",
                "A card is converted to 1.0 or to 0.3; leave `as` out for what the publisher wrote.",
            ));
        }
    };
    Ok(match version {
        None => deliver(&request, &card, answer::JSON, CURRENT),
        Some(_) => {
            let mut answer = deliver(&request, &card, CARD_JSON, VERSION);
            answer
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("authorization"));
            answer
        }
    })
}

/// The approved card where an SDK's resolver looks for it
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The card", body = Object,
         headers(("ETag" = String, description = "The digest of the bytes, in quotes"))),
        (status = 304, description = "The caller has these bytes already",
         headers(("ETag" = String, description = "The digest of the bytes, in quotes"))),
    )
)]
#[get("/agents/{agent}/.well-known/agent-card.json")]
pub async fn agent_card_well_known(
    request: HttpRequest,
    caller: CardReader,
    agent: AgentRef,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let card = cards::agent_card(&state.context, &caller.0, &agent.0, None).await?;
    Ok(deliver(&request, &card, answer::JSON, CURRENT))
}

/// The approved card where the resolver of an SDK of protocol version 0.2 looks for it
#[utoipa::path(
    tag = "agents",
    params(("agent" = String, Path, description = "The agent's id or URN")),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The card", body = Object,
         headers(("ETag" = String, description = "The digest of the bytes, in quotes"))),
        (status = 304, description = "The caller has these bytes already",
         headers(("ETag" = String, description = "The digest of the bytes, in quotes"))),
    )
)]
#[get("/agents/{agent}/.well-known/agent.json")]
pub async fn agent_card_well_known_0_2(
    request: HttpRequest,
    caller: CardReader,
    agent: AgentRef,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let card = cards::agent_card(&state.context, &caller.0, &agent.0, None).await?;
    Ok(deliver(&request, &card, answer::JSON, CURRENT))
}

/// The card, or 304 where the caller names its tag.
fn deliver(
    request: &HttpRequest,
    card: &ServedCard,
    media_type: HeaderValue,
    caching: HeaderValue,
) -> HttpResponse {
    let mut answer = if answer::matches(request.headers(), &card.etag) {
        HttpResponse::NotModified().finish()
    } else {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, media_type))
            .body(card.bytes.clone())
    };
    let headers = answer.headers_mut();
    if request.headers().contains_key(header::ACCEPT_ENCODING) {
        leave_untouched(headers);
    }
    headers.insert(header::CACHE_CONTROL, caching);
    if !card.losses.is_empty()
        && let Ok(losses) = HeaderValue::from_str(&card.losses.join(", "))
    {
        headers.insert(CONVERSION, losses);
    }
    if let Ok(etag) = HeaderValue::from_str(&card.etag) {
        headers.insert(header::ETAG, etag);
    }
    answer
}
