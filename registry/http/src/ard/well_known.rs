//! Well-known paths of ARD and AI Catalog, and `robots.txt`, which point to the registry's catalog.

use std::time::{Duration, SystemTime};

use a2a_registry_core::context::AppContext;
use a2a_registry_core::process_state::cached_catalog::CachedCatalog;
use actix_web::http::header::{self, HeaderValue, HttpDate};
use actix_web::{HttpRequest, HttpResponse, get, web};

use crate::answers::conditional_response::conditional_response;
use crate::answers::response::HandlerResult;
use crate::ard::catalog_document::published_catalog;
use crate::middleware::envelope::prevent_body_changes;

/// `Cache-Control` of the catalog, which is the same for every caller.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// Media type of AI Catalog. ARD defines none.
const AI_CATALOG: HeaderValue = HeaderValue::from_static("application/ai-catalog+json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Get the registry's catalog (ARD)
///
/// Lists the registry's API and at most 1 000 public agents. The catalog is the same for every caller.
#[utoipa::path(
    tag = "ard",
    security(()),
    responses(
        (status = 200, description = "The catalog", body = Object),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`"),
        (status = 404, description = "The catalog is disabled: `[ard] enabled` is false"),
    )
)]
#[get("/.well-known/ard.json")]
pub async fn ard_catalog(request: HttpRequest, context: web::Data<AppContext>) -> HandlerResult {
    Ok(catalog_response(
        &request,
        &published_catalog(&context).await?,
        JSON,
    ))
}

/// Get the registry's catalog (AI Catalog)
///
/// The same document as `/.well-known/ard.json`.
#[utoipa::path(
    tag = "ard",
    security(()),
    responses(
        (status = 200, description = "The catalog", content((Object = "application/ai-catalog+json"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`"),
        (status = 404, description = "The catalog is disabled: `[ard] enabled` is false"),
    )
)]
#[get("/.well-known/ai-catalog.json")]
pub async fn ai_catalog(request: HttpRequest, context: web::Data<AppContext>) -> HandlerResult {
    Ok(catalog_response(
        &request,
        &published_catalog(&context).await?,
        AI_CATALOG,
    ))
}

fn catalog_response(
    request: &HttpRequest,
    catalog: &CachedCatalog,
    content_type: HeaderValue,
) -> HttpResponse {
    let body = catalog.body.clone();
    let mut response = conditional_response(request, &catalog.tag, CACHE_POLICY, || {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, content_type))
            .body(body)
    });
    let headers = response.headers_mut();
    let since = u64::try_from(catalog.changed_at.0).unwrap_or(0);
    let changed_at = SystemTime::UNIX_EPOCH + Duration::from_micros(since);
    if let Ok(date) = HeaderValue::from_str(&HttpDate::from(changed_at).to_string()) {
        headers.insert(header::LAST_MODIFIED, date);
    }
    // The entity tag is computed from these bytes.
    prevent_body_changes(headers);
    response
}

/// `robots.txt`: allows everything and names the location of the catalog (ARD section 5.2).
pub(crate) async fn robots_txt(context: web::Data<AppContext>) -> HttpResponse {
    let url = context.config().public_url();
    let catalog = match context.config().ard.enabled {
        true => format!("\nAgentmap: {url}/.well-known/ard.json\n"),
        false => String::new(),
    };
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"))
        .insert_header((header::CACHE_CONTROL, "public, max-age=300"))
        .body(format!("User-agent: *\nAllow: /\n{catalog}"))
}
