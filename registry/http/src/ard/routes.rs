//! Handlers for the ARD registry API (ARD section 5), for the whole registry and for each collection.

use std::future::{Ready, ready};

use a2a_registry_api::ard::{
    Entry, Error, ExploreRequest, ExploreResponse, List, SearchRequest, SearchResponse,
};
use a2a_registry_core::entity_tag::RenderedJson;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{FromRequest, HttpRequest, HttpResponse, routes};
use serde::Serialize;
use utoipa::IntoResponses;

use crate::answers::conditional_response::conditional_response;
use crate::answers::response::{self, HandlerResult};
use crate::ard::federated_search::FederatedPage;
use crate::ard::list::{self, ListQuery};
use crate::ard::without_urn::without_urn_hint;
use crate::ard::{ArdScope, explore, search};
use crate::problems::problem::Problem;
use crate::requests::auth::Anyone;
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::{CollectionRef, EntryRef};
use crate::requests::query::Query;

/// Names the queried peers that returned nothing.
const PEERS_MISSING: HeaderName = HeaderName::from_static("a2a-registry-peers-missing");

/// Reports the agents that the search left out; the response body allows no additional members.
const HINT: HeaderName = HeaderName::from_static("a2a-registry-hint");

/// Reports how many of the matching agents fit, for the same reason.
const TOTAL_FITTING: HeaderName = HeaderName::from_static("a2a-registry-total-fitting");

/// `Cache-Control` of public responses, which caches must revalidate.
const PUBLIC_CACHING: HeaderValue = HeaderValue::from_static("no-cache");
/// `Cache-Control` of responses for one caller.
const PRIVATE_CACHING: HeaderValue = HeaderValue::from_static("private, no-cache");

/// ARD error responses.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "read by the derived description only")]
pub enum ArdErrorResponses {
    /// `INVALID_ARGUMENT`: the request is invalid, as described in the message
    #[response(status = 400,
    example = json!({"errorCode": "INVALID_ARGUMENT", "message": "/query/text: text is required"}))]
    Invalid(Error),
    /// `UNAUTHENTICATED`: the token is not valid
    #[response(status = 401, example = json!({"errorCode": "UNAUTHENTICATED", "message": "The token is not valid."}))]
    Unauthenticated(Error),
    /// `NOT_FOUND`: the entry does not exist, or the caller may not see it
    #[response(status = 404, example = json!({"errorCode": "NOT_FOUND", "message": "No entry has this identifier."}))]
    NotFound(Error),
    /// `RATE_LIMIT_EXCEEDED`
    #[response(status = 429, example = json!({"errorCode": "RATE_LIMIT_EXCEEDED", "message": "Too many requests; try again in 2 seconds."}))]
    TooMany(Error),
    /// `INTERNAL_ERROR`
    #[response(status = 500, example = json!({"errorCode": "INTERNAL_ERROR", "message": "Something went wrong inside the registry."}))]
    Internal(Error),
    /// `INTERNAL_ERROR`: the index or the database is temporarily unavailable
    #[response(status = 503, example = json!({"errorCode": "INTERNAL_ERROR", "message": "The database does not respond. Try again in a moment."}))]
    Unavailable(Error),
}

/// Error response in ARD's format, which has no code for some statuses: 403 becomes 404, other request errors 400.
pub fn ard_error_response(_: &HttpRequest, problem: &Problem) -> HttpResponse {
    let (status, code) = match problem.kind().status.as_u16() {
        401 => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED"),
        403 | 404 => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        405 => (StatusCode::METHOD_NOT_ALLOWED, "INVALID_ARGUMENT"),
        429 => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMIT_EXCEEDED"),
        503 => (StatusCode::SERVICE_UNAVAILABLE, "INTERNAL_ERROR"),
        400..=499 => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR"),
    };
    let mut response = problem.response_builder();
    response.status(status);
    response.insert_header((header::CONTENT_TYPE, response::JSON_CONTENT_TYPE));
    response.json(Error {
        error_code: code.to_owned(),
        message: problem.detail_with_pointer(),
    })
}

/// JSON response, for GET with its entity tag, or 304. Caches must not share responses to a token.
fn conditional_json(
    request: &HttpRequest,
    caller: &Caller,
    value: &impl Serialize,
) -> HandlerResult {
    let cache_control = cache_control_for_caller(caller);
    let mut response = if *request.method() == Method::GET {
        let rendered = RenderedJson::render(value)?;
        let body = rendered.body;
        conditional_response(request, &rendered.tag, cache_control.clone(), || {
            response::json_bytes_response(StatusCode::OK, body)
        })
    } else {
        response::json_response(StatusCode::OK, value)?
    };
    set_caching_headers(&mut response, cache_control);
    Ok(response)
}

fn set_caching_headers(response: &mut HttpResponse, cache_control: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, cache_control);
    headers.append(header::VARY, HeaderValue::from_static("authorization"));
}

fn cache_control_for_caller(caller: &Caller) -> HeaderValue {
    match caller.account {
        None => PUBLIC_CACHING,
        Some(_) => PRIVATE_CACHING,
    }
}

/// Search response, with headers for peers that returned nothing and for agents without a URN.
fn search_response(caller: &Caller, page: FederatedPage) -> HttpResponse {
    let mut response = response::json_bytes_response(StatusCode::OK, page.response);
    set_caching_headers(&mut response, cache_control_for_caller(caller));
    if !page.missing_peers.is_empty()
        && let Ok(names) = HeaderValue::from_str(&page.missing_peers.join(", "))
    {
        response.headers_mut().insert(PEERS_MISSING, names);
    }
    if let Some(fitting) = page.total_fitting {
        let headers = response.headers_mut();
        headers.insert(TOTAL_FITTING, HeaderValue::from(fitting));
    }
    let hint = without_urn_hint(page.without_urn);
    if let Some(Ok(hint)) = hint.map(|hint| HeaderValue::from_str(&hint)) {
        response.headers_mut().insert(HINT, hint);
    }
    response
}

impl FromRequest for ArdScope {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        if request.match_info().get("collection").is_none() {
            return ready(Ok(Self::default()));
        }
        let collection = CollectionRef::extract(request).into_inner();
        ready(collection.map(|collection| Self {
            collection: Some(collection.0),
        }))
    }
}

/// Search entries (ARD)
///
/// Returns the agents with a catalog identifier that `/v1/agents` finds for the same text and caller, in the same
/// order.
#[utoipa::path(
    request_body = SearchRequest,
    security((), ("token" = [])),
    responses(
        (status = 200, description = "A page of results", body = SearchResponse, headers(
            ("A2A-Registry-Peers-Missing" = String,
             description = "Queried peers that returned nothing, separated by commas; absent if all responded"),
            ("A2A-Registry-Hint" = String,
             description = "On the first page, the number of matching agents without a URN, which are left out; \
             absent if none"),
            ("A2A-Registry-Total-Fitting" = u64,
             description = "Number of matching agents that fit the query well, with a score of at least 20; absent if \
             results are merged with those of peers"),
        )),
        ArdErrorResponses,
    )
)]
#[routes]
#[post("/ard/search")]
#[post("/ard/c/{collection}/search", name = "ard_collection_search")]
pub async fn ard_search(
    caller: Anyone,
    scope: ArdScope,
    body: JsonBody<SearchRequest>,
) -> HandlerResult {
    let found = search::search_entries(&caller.context, &caller, &scope, &body.0).await?;
    Ok(search_response(&caller, found))
}

/// Count facet values over all matches (ARD)
#[utoipa::path(
    request_body = ExploreRequest,
    security((), ("token" = [])),
    responses((status = 200, description = "The facets", body = ExploreResponse), ArdErrorResponses)
)]
#[routes]
#[post("/ard/explore")]
#[post("/ard/c/{collection}/explore", name = "ard_collection_explore")]
pub async fn ard_explore(
    http: HttpRequest,
    caller: Anyone,
    scope: ArdScope,
    body: JsonBody<ExploreRequest>,
) -> HandlerResult {
    let counts = explore::count_facets(&caller.context, &caller, &scope, &body.0).await?;
    conditional_json(&http, &caller, &counts)
}

/// List entries (ARD)
#[utoipa::path(
    params(ListQuery),
    security((), ("token" = [])),
    responses(
        (status = 200, description = "A page of entries", body = List),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`"),
        ArdErrorResponses,
    )
)]
#[routes]
#[get("/ard/agents")]
#[get("/ard/c/{collection}/agents", name = "ard_collection_list")]
pub async fn ard_list(
    http: HttpRequest,
    caller: Anyone,
    scope: ArdScope,
    query: Query<ListQuery>,
) -> HandlerResult {
    let page = list::list_catalog_entries(&caller.context, &caller, &scope, &query.0).await?;
    conditional_json(&http, &caller, &page)
}

/// Get an entry by its identifier (ARD)
///
/// The identifier is one path segment, percent-encoded once. An entry that the caller may not see is not found.
#[utoipa::path(
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The entry", body = Entry),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`"),
        ArdErrorResponses,
    )
)]
#[routes]
#[get("/ard/agents/{identifier}")]
#[get(
    "/ard/c/{collection}/agents/{identifier}",
    name = "ard_collection_retrieve"
)]
pub async fn ard_retrieve(
    http: HttpRequest,
    caller: Anyone,
    scope: ArdScope,
    entry: EntryRef,
) -> HandlerResult {
    let entry = list::load_catalog_entry(&caller.context, &caller, &scope, &entry.0).await?;
    conditional_json(&http, &caller, &entry)
}
