//! JSON responses, with entity tags for conditional requests.

use a2a_registry_core::entity_tag::RenderedJson;
use a2a_registry_core::error::AppError;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use serde::Serialize;

use crate::answers::conditional_response::conditional_response;
use crate::problems::problem::Problem;

/// Result of a handler: a response, or a problem that is rendered as a problem document or a page.
pub type HandlerResult = Result<HttpResponse, Problem>;

pub const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
/// `Cache-Control` of responses that caches may store but must revalidate before every use.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

pub fn json_response(status: StatusCode, value: &impl Serialize) -> HandlerResult {
    let body = to_json_bytes(value)?;
    Ok(json_bytes_response(status, Bytes::from(body)))
}

pub fn json_bytes_response(status: StatusCode, body: Bytes) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header((header::CONTENT_TYPE, JSON_CONTENT_TYPE))
        .insert_header((header::CACHE_CONTROL, REVALIDATE))
        .body(body)
}

/// A resource as JSON with an entity tag, or 304 if the caller already has it.
pub fn json_with_etag(request: &HttpRequest, value: &impl Serialize) -> HandlerResult {
    Ok(rendered_with_etag(request, &RenderedJson::render(value)?))
}

/// Like [`json_with_etag`], for a resource that is already rendered.
pub(crate) fn rendered_with_etag(request: &HttpRequest, value: &RenderedJson) -> HttpResponse {
    conditional_response(request, &value.tag, REVALIDATE, || {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, JSON_CONTENT_TYPE))
            .body(value.body.clone())
    })
}

fn to_json_bytes(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| AppError::internal(error.to_string()).into())
}

/// A changed resource as JSON, with the entity tag for the next change.
pub fn changed_resource_response(value: &impl Serialize) -> HandlerResult {
    Ok(rendered_resource_response(RenderedJson::render(value)?))
}

/// Like [`changed_resource`], for a resource that is already rendered.
pub(crate) fn rendered_resource_response(rendered: RenderedJson) -> HttpResponse {
    let mut response = json_bytes_response(StatusCode::OK, rendered.body);
    if let Ok(tag) = HeaderValue::from_str(&rendered.tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// A JSON response with a secret, which no cache may store.
pub fn uncached_json(status: StatusCode, value: &impl Serialize) -> HandlerResult {
    let mut response = json_response(status, value)?;
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
