//! Cross-origin access for pages of other sites, such as the console on an agent's page.
//!
//! The agents' data is public, and browsers are told to send no cookies, so every origin may call. A page sends a
//! preflight before each call, because the content type and the protocol's headers are not those of a form.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse};

/// Headers of every response.
const RESPONSE_HEADERS: [(HeaderName, &str); 2] = [
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        "A2A-Extensions, ETag, Retry-After",
    ),
];
/// Additional headers of responses to preflights. `*` does not cover `Authorization`.
const PREFLIGHT_HEADERS: [(HeaderName, &str); 3] = [
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        "GET, HEAD, POST, OPTIONS",
    ),
    (header::ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization"),
    (header::ACCESS_CONTROL_MAX_AGE, "600"),
];

/// Responds to preflights, and allows pages of every origin to read each response.
pub(super) async fn allow_cross_origin<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if is_preflight {
        let mut response = HttpResponse::NoContent().finish();
        insert_headers(response.headers_mut(), &RESPONSE_HEADERS);
        insert_headers(response.headers_mut(), &PREFLIGHT_HEADERS);
        return Ok(request.into_response(response).map_into_right_body());
    }
    let mut response = next.call(request).await?;
    insert_headers(response.headers_mut(), &RESPONSE_HEADERS);
    Ok(response.map_into_left_body())
}

fn insert_headers(headers: &mut HeaderMap, new_headers: &[(HeaderName, &'static str)]) {
    for (name, value) in new_headers {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
}
