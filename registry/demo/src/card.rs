//! Serves a card: its bytes, an entity tag of them, and 304 for a client that has it already.

use actix_web::http::header::{CacheControl, CacheDirective, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) struct ServedCard {
    body: web::Bytes,
    tag: EntityTag,
}

impl ServedCard {
    pub fn new(card: &Value) -> Self {
        let body = web::Bytes::from(format!("{card:#}\n"));
        let tag = EntityTag::new_strong(a2a_card::digest(&body));
        Self { body, tag }
    }

    /// Conditional, by entity tag (1.0 section 8.6).
    pub fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|tag| tag.weak_eq(&self.tag)),
            Err(_) => false,
        };
        let mut response = if known {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        response
            .insert_header(ETag(self.tag.clone()))
            .insert_header(CacheControl(vec![
                CacheDirective::Public,
                CacheDirective::MaxAge(60),
            ]));
        if known {
            return response.finish();
        }
        response
            .content_type("application/json")
            .body(self.body.clone())
    }
}
