//! Conditional requests: 304 if the caller already has the current response (RFC 9110 section 13).

use std::future::{Ready, ready};

use a2a_registry_core::precondition::IfMatch;
use actix_web::dev::Payload;
use actix_web::http::header::{
    CACHE_CONTROL, ETAG, EntityTag, Header as _, HeaderValue, IF_MATCH, IF_NONE_MATCH, IfNoneMatch,
};
use actix_web::{FromRequest, HttpRequest, HttpResponse};

use crate::problems::problem::Problem;

/// `If-Match` header of a request.
pub struct IfMatchHeader(pub IfMatch);

impl FromRequest for IfMatchHeader {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    /// Joins all `If-Match` header lines.
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let lines: Vec<_> = request
            .headers()
            .get_all(IF_MATCH)
            .map(|line| String::from_utf8_lossy(line.as_bytes()))
            .collect();
        let lines = (!lines.is_empty()).then(|| lines.join(","));
        ready(Ok(Self(IfMatch(lines))))
    }
}

/// Returns `full_response`, or 304 if `If-None-Match` has its entity tag by weak comparison (RFC 9110 section 13.1.2).
/// Both carry the tag, and `cache_control` as `Cache-Control`. `tag` is in header syntax, with quotes.
pub(crate) fn conditional_response(
    request: &HttpRequest,
    tag: &str,
    cache_control: HeaderValue,
    full_response: impl FnOnce() -> HttpResponse,
) -> HttpResponse {
    let mut response = if client_has_etag(request, tag) {
        HttpResponse::NotModified().finish()
    } else {
        full_response()
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, cache_control);
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    response
}

fn client_has_etag(request: &HttpRequest, tag: &str) -> bool {
    // Most callers send back the single tag that they received, which needs no parsing.
    match request.headers().get(IF_NONE_MATCH) {
        None => return false,
        Some(known) if known.as_bytes() == tag.as_bytes() => return true,
        Some(_) => {}
    }
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(known)) => tag
            .parse::<EntityTag>()
            .is_ok_and(|tag| known.iter().any(|other| other.weak_eq(&tag))),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_tag_is_found_in_every_form_of_the_header() {
        for (tag, lines, expected) in [
            ("\"a\"", &["\"a\""][..], true),
            ("\"a\"", &["W/\"a\""], true),
            ("W/\"a\"", &["\"a\""], true),
            ("\"a\"", &["\"b\", W/\"a\""], true),
            ("\"a\"", &["\"b\"", "\"a\""], true),
            ("\"a\"", &["*"], true),
            ("\"a\"", &["\"b\""], false),
            ("\"a\"", &["a"], false),
            ("\"a\"", &[""], false),
            ("\"a\"", &[], false),
        ] {
            let mut request = TestRequest::default();
            for line in lines {
                request = request.append_header((IF_NONE_MATCH, *line));
            }
            assert_eq!(
                client_has_etag(&request.to_http_request(), tag),
                expected,
                "{tag} {lines:?}"
            );
        }
    }
}
