//! Where the registry's catalog is found: the well-known paths of ARD and AI Catalog, and `robots.txt`.

use std::time::{Duration, SystemTime};

use a2a_registry_core::context::Context;
use a2a_registry_core::memory::published::PublishedCatalog;
use actix_web::http::header::{self, HeaderValue, HttpDate};
use actix_web::{HttpRequest, HttpResponse, get, web};

use crate::answers::answer::Answer;
use crate::answers::conditional::conditional;
use crate::ard::published::catalog;
use crate::middleware::envelope::leave_untouched;

/// The document is the same for every caller.
const CACHING: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// The media type of AI Catalog. ARD defines none.
const AI_CATALOG: HeaderValue = HeaderValue::from_static("application/ai-catalog+json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The registry's catalog (ARD)
///
/// Lists the registry's API and the agents that everybody finds, at most 1 000 of them. It is the same for every caller.
#[utoipa::path(
    tag = "ard",
    security(()),
    responses(
        (status = 200, description = "The catalog", body = Object),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`"),
        (status = 404, description = "There is none: `[ard] enabled` is false"),
    )
)]
#[get("/.well-known/ard.json")]
pub async fn ard_catalog(request: HttpRequest, context: web::Data<Context>) -> Answer {
    Ok(served(&request, &catalog(&context).await?, JSON))
}

/// The registry's catalog (AI Catalog)
///
/// The same document as `/.well-known/ard.json`.
#[utoipa::path(
    tag = "ard",
    security(()),
    responses(
        (status = 200, description = "The catalog", content((Object = "application/ai-catalog+json"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`"),
        (status = 404, description = "There is none: `[ard] enabled` is false"),
    )
)]
#[get("/.well-known/ai-catalog.json")]
pub async fn ai_catalog(request: HttpRequest, context: web::Data<Context>) -> Answer {
    Ok(served(&request, &catalog(&context).await?, AI_CATALOG))
}

fn served(request: &HttpRequest, catalog: &PublishedCatalog, kind: HeaderValue) -> HttpResponse {
    let body = catalog.body.clone();
    let mut response = conditional(request, &catalog.tag, CACHING, || {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, kind))
            .body(body)
    });
    let headers = response.headers_mut();
    let since = u64::try_from(catalog.changed_at.0).unwrap_or(0);
    let changed_at = SystemTime::UNIX_EPOCH + Duration::from_micros(since);
    if let Ok(date) = HeaderValue::from_str(&HttpDate::from(changed_at).to_string()) {
        headers.insert(header::LAST_MODIFIED, date);
    }
    // The tag is of these bytes.
    leave_untouched(headers);
    response
}

/// `robots.txt`: everything may be read, and the location of the catalog (ARD section 5.2).
pub(crate) async fn robots(context: web::Data<Context>) -> HttpResponse {
    let url = context.config.public_url();
    let catalog = match context.config.ard.enabled {
        true => format!("\nAgentmap: {url}/.well-known/ard.json\n"),
        false => String::new(),
    };
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"))
        .insert_header((header::CACHE_CONTROL, "public, max-age=300"))
        .body(format!("User-agent: *\nAllow: /\n{catalog}"))
}
