//! `Link` header on every page that points to the registry's catalog.

use actix_web::http::header::{self, HeaderMap, HeaderValue};

/// Marker in the application data that adds links to the catalog (RFC 8288) to every page.
#[derive(Debug, Clone, Copy)]
pub struct CatalogLinkHeader;

impl CatalogLinkHeader {
    const LINK_HEADER: HeaderValue = HeaderValue::from_static(
        "</.well-known/ard.json>; rel=\"ard\", </.well-known/ai-catalog.json>; rel=\"ai-catalog\"; \
         type=\"application/ai-catalog+json\"",
    );

    pub fn append_to(self, headers: &mut HeaderMap) {
        headers.append(header::LINK, Self::LINK_HEADER);
    }
}
