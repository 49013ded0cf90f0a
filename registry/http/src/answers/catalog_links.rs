//! The header by which every page links to the registry's catalog.

use actix_web::http::header::{self, HeaderMap, HeaderValue};

/// Links to the catalog (RFC 8288) on every page of an application that has this among its data.
#[derive(Debug, Clone, Copy)]
pub struct CatalogLinks;

impl CatalogLinks {
    const LINK_HEADER: HeaderValue = HeaderValue::from_static(
        "</.well-known/ard.json>; rel=\"ard\", </.well-known/ai-catalog.json>; rel=\"ai-catalog\"; \
         type=\"application/ai-catalog+json\"",
    );

    pub fn append_to(self, headers: &mut HeaderMap) {
        headers.append(header::LINK, Self::LINK_HEADER);
    }
}
