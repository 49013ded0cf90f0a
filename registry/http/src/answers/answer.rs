//! JSON responses, with entity tags where the caller may ask for them again.

use a2a_registry_core::error::AppError;
use a2a_registry_core::memory::agents::RenderedJson;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use serde::Serialize;

use crate::answers::conditional::conditional;
use crate::problems::problem::Problem;

/// What a handler gives: a response, or a failure to be written as a problem document or a page.
pub type Answer = Result<HttpResponse, Problem>;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// `Cache-Control` of responses that caches may store, but revalidate before every use.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

pub fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = encode(value)?;
    Ok(bytes(status, Bytes::from(body)))
}

pub fn bytes(status: StatusCode, body: Bytes) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header((header::CONTENT_TYPE, JSON))
        .insert_header((header::CACHE_CONTROL, REVALIDATE))
        .body(body)
}

/// One resource as JSON with an entity tag, or 304 if the caller already has it.
pub fn resource(request: &HttpRequest, value: &impl Serialize) -> Answer {
    Ok(rendered(request, &RenderedJson::of(value)?))
}

/// As [`resource`], for a resource that is already rendered.
pub(crate) fn rendered(request: &HttpRequest, value: &RenderedJson) -> HttpResponse {
    conditional(request, &value.tag, REVALIDATE, || {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, JSON))
            .body(value.body.clone())
    })
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| AppError::internal(error.to_string()).into())
}

/// A resource after a change, with the entity tag for the next change.
pub fn changed(value: &impl Serialize) -> Answer {
    Ok(changed_rendered(RenderedJson::of(value)?))
}

/// As [`changed`], for a resource that is already rendered.
pub(crate) fn changed_rendered(rendered: RenderedJson) -> HttpResponse {
    let mut answer = bytes(StatusCode::OK, rendered.body);
    if let Ok(tag) = HeaderValue::from_str(&rendered.tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// A JSON response with a secret, which no cache may store.
pub fn secret(status: StatusCode, value: &impl Serialize) -> Answer {
    let mut answer = json(status, value)?;
    answer
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}
