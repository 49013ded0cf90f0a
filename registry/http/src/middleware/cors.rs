//! Cross-origin requests (Fetch standard): any site may read the API without credentials.

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpMessage, HttpRequest};

use crate::answers::route_table::RouteTable;
use crate::requests::auth::IgnoredAuthorization;

/// Headers that a browser may send with a `GET` from another site, without `Authorization`.
const CORS_ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "A2A-Extensions, A2A-Version, Accept, Cache-Control, Content-Type, If-None-Match, Traceparent, X-Request-Id",
);
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CorsPolicy {
    Disabled,
    PublicGet,
    /// A public GET with an `Authorization` header, which may be from another site.
    AuthorizedGet,
    Preflight,
}

impl CorsPolicy {
    pub(super) fn for_request(request: &ServiceRequest) -> Self {
        let is_read = |method: &Method| matches!(*method, Method::GET | Method::HEAD);
        let path = request.path();
        if is_read(request.method()) {
            return match request.headers().contains_key(header::AUTHORIZATION) {
                _ if !is_api_path(path) => Self::Disabled,
                false => Self::PublicGet,
                true => Self::AuthorizedGet,
            };
        }
        if request.method() != Method::OPTIONS || !is_api_path(path) {
            return Self::Disabled;
        }
        let requested_method = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD);
        let is_read_preflight =
            requested_method.is_some_and(|wanted| matches!(wanted.as_bytes(), b"GET" | b"HEAD"));
        let route_table = request.app_data::<&'static RouteTable>();
        if is_read_preflight && route_table.is_some_and(|addresses| addresses.allows_get(path)) {
            Self::Preflight
        } else {
            Self::Disabled
        }
    }

    /// CORS policy after authentication.
    pub(super) fn after_authentication(self, request: &HttpRequest) -> Self {
        match self {
            Self::AuthorizedGet if request.extensions().contains::<IgnoredAuthorization>() => {
                Self::PublicGet
            }
            other => other,
        }
    }

    pub(super) fn set_headers(self, status: StatusCode, headers: &mut HeaderMap) {
        match self {
            Self::Disabled | Self::AuthorizedGet => {}
            Self::PublicGet => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
            }
            Self::Preflight if status.is_success() => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
                headers.insert(
                    header::ACCESS_CONTROL_ALLOW_METHODS,
                    HeaderValue::from_static("GET, HEAD"),
                );
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, CORS_ALLOWED_HEADERS);
                headers.insert(
                    header::ACCESS_CONTROL_MAX_AGE,
                    HeaderValue::from_static("86400"),
                );
            }
            Self::Preflight => {}
        }
    }
}

/// Whether a path belongs to the API or the cards, not to pages or operations.
pub(super) fn is_api_path(path: &str) -> bool {
    path.starts_with("/v1/")
        || path == "/openapi.json"
        || path.starts_with("/ard/")
        || path.starts_with("/.well-known/")
        || (path.starts_with("/agents/") && path.contains("/.well-known/"))
}
