//! Conditional requests: 304 instead of what the caller has already (RFC 9110 section 13).

use actix_web::http::header::{
    CACHE_CONTROL, ETAG, EntityTag, Header as _, HeaderValue, IfNoneMatch, TryIntoHeaderValue as _,
};
use actix_web::{HttpRequest, HttpResponse};

/// The response that `full` makes, or 304 if `If-None-Match` names its entity tag, by weak comparison (RFC 9110 section
/// 13.1.2). Both carry the tag and `caching` as `Cache-Control`.
pub(crate) fn conditional(
    request: &HttpRequest,
    tag: EntityTag,
    caching: HeaderValue,
    full: impl FnOnce() -> HttpResponse,
) -> HttpResponse {
    let is_known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|other| other.weak_eq(&tag)),
        Err(_) => false,
    };
    let mut response = if is_known {
        HttpResponse::NotModified().finish()
    } else {
        full()
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, caching);
    if let Ok(tag) = tag.try_into_value() {
        headers.insert(ETAG, tag);
    }
    response
}
