//! Serving a card: its bytes with an entity tag, or 304 for a client that has them already.

use actix_web::http::header::{CacheControl, CacheDirective, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) struct CardResponder {
    body: web::Bytes,
    etag: EntityTag,
}

impl CardResponder {
    pub fn new(card: &Value) -> Self {
        let body = web::Bytes::from(format!("{card:#}\n"));
        let etag = EntityTag::new_strong(a2a_card::bytes_digest(&body));
        Self { body, etag }
    }

    /// Responds conditionally, by entity tag (1.0 section 8.6).
    pub fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let is_cached = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|tag| tag.weak_eq(&self.etag)),
            Err(_) => false,
        };
        let mut response = if is_cached {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        response
            .insert_header(ETag(self.etag.clone()))
            .insert_header(CacheControl(vec![
                CacheDirective::Public,
                CacheDirective::MaxAge(60),
            ]));
        if is_cached {
            return response.finish();
        }
        response
            .content_type("application/json")
            .body(self.body.clone())
    }
}
