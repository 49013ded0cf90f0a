//! Static files of pages: style sheets, scripts and icons, embedded in the program.

use std::fmt::Write as _;

use a2a_registry_core::error::AppError;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use rust_embed::{Embed, EmbeddedFile};

use crate::answers::conditional_response::conditional_response;
use crate::answers::response::HandlerResult;

#[derive(Embed)]
#[folder = "$CARGO_MANIFEST_DIR/../../web/static"]
struct StaticAssets;

/// URL of a file, with the first digits of its hash. Changed content has a different URL, so browsers may cache it
/// forever.
pub(crate) fn asset_url(name: &str) -> String {
    match StaticAssets::get(name) {
        Some(file) => format!("/static/{name}?v={}", asset_hash_prefix(&file)),
        None => format!("/static/{name}"),
    }
}

/// Text of the style sheet, for a page that cannot link to it.
pub(crate) fn style_sheet() -> String {
    let file = StaticAssets::get("style.css");
    file.map_or_else(String::new, |file| {
        String::from_utf8_lossy(&file.data).into_owned()
    })
}

/// Serves a static file: cacheable forever at its hashed URL, otherwise revalidated.
pub(crate) async fn serve_asset(request: HttpRequest, name: web::Path<String>) -> HandlerResult {
    let file = StaticAssets::get(&name).ok_or_else(AppError::no_resource)?;
    Ok(embedded_file_response(&request, &name, file))
}

/// Response with an embedded file of this name.
pub(crate) fn embedded_file_response(
    request: &HttpRequest,
    name: &str,
    file: EmbeddedFile,
) -> HttpResponse {
    let tag = asset_hash_prefix(&file);
    let is_versioned = request.query_string() == format!("v={tag}");
    let caching = HeaderValue::from_static(if is_versioned {
        "public, max-age=31536000, immutable"
    } else {
        "public, no-cache"
    });
    conditional_response(request, &format!("\"{tag}\""), caching, || {
        HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, asset_content_type(name)))
            .body(file.data.into_owned())
    })
}

fn asset_content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("cedar" | "md" | "toml") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// First 16 hex digits of the content's SHA-256.
fn asset_hash_prefix(file: &EmbeddedFile) -> String {
    file.metadata
        .sha256_hash()
        .iter()
        .take(8)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
