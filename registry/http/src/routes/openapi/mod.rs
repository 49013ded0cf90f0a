//! `OpenAPI` document, generated from the handlers, and a page to browse it without external resources.

pub mod error_responses;
pub mod examples;
pub mod operations;
pub mod other_addresses;

use std::sync::{Arc, LazyLock};

use a2a_registry_api::{PolicyNotice, ard};
use a2a_registry_core::config::LimitsConfig;
use a2a_registry_core::error::AppError;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, RefOr};
use utoipa::{PartialSchema, ToSchema};
use utoipa_actix_web::AppExt;

use crate::answers::response::{self, HandlerResult};
use crate::problems::problem::{MemberError, ProblemDocument};
use crate::requests::path_parameters::openapi_path_parameter;
use crate::requests::server_state::ServerState;
use crate::routes::api as routes;

/// Content security policy for Swagger UI, which sets styles from scripts and has inline images as `data:` URLs.
const DOCS_CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

static DEFAULT_DOCUMENT: LazyLock<OpenApi> =
    LazyLock::new(|| build_openapi(&LimitsConfig::default()));
static DEFAULT_DOCUMENT_TEXT: LazyLock<String> = LazyLock::new(|| openapi_text(&DEFAULT_DOCUMENT));

pub fn default_openapi() -> &'static OpenApi {
    &DEFAULT_DOCUMENT
}

/// Document as pretty-printed text, deterministic for a build.
pub fn default_openapi_text() -> String {
    DEFAULT_DOCUMENT_TEXT.clone()
}

/// Document as served by a registry with these limits.
pub fn openapi_with_limits(limits: &LimitsConfig) -> Bytes {
    if limits.query_chars == LimitsConfig::default().query_chars {
        Bytes::from_static(DEFAULT_DOCUMENT_TEXT.as_bytes())
    } else {
        openapi_text(&build_openapi(limits)).into()
    }
}

fn openapi_text(document: &OpenApi) -> String {
    let text = document.to_pretty_json().unwrap_or_default();
    format!("{text}\n")
}

fn build_openapi(limits: &LimitsConfig) -> OpenApi {
    let (_, mut document) = actix_web::App::new()
        .into_utoipa_app()
        .configure(routes::mount_api)
        .split_for_parts();
    document.info = InfoBuilder::new()
        .title("a2a-registry")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "A curated registry of A2A agent cards. Lists take `page_size` and `page_token` and return \
             `next_page_token`. Every error response is a problem document (RFC 9457). `HEAD` is \
             supported wherever `GET` is, and `OPTIONS` responds with `Allow`.",
        ))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .build();
    let components = document.components.get_or_insert_default();
    components.schemas.insert(
        ProblemDocument::name().into_owned(),
        ProblemDocument::schema(),
    );
    components
        .schemas
        .insert(MemberError::name().into_owned(), MemberError::schema());
    components
        .schemas
        .insert(PolicyNotice::name().into_owned(), PolicyNotice::schema());
    // Error descriptions reference this schema, but that does not include it automatically.
    components
        .schemas
        .insert(ard::Error::name().into_owned(), ard::Error::schema());
    components.security_schemes.insert(
        "token".into(),
        SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build()).into(),
    );
    other_addresses::add_alternate_paths(&mut document);
    tag_by_resource(&mut document);
    add_path_parameters(&mut document);
    add_security_requirements(&mut document);
    error_responses::add_error_responses(&mut document);
    examples::add_openapi_examples(&mut document);
    add_configured_limits(&mut document, limits);
    document
}

/// Tags each operation with the resource in its path, unless its handler sets another tag.
fn tag_by_resource(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let below = path.strip_prefix("/v1").unwrap_or(path);
        let resource = below.split(['/', ':']).nth(1).unwrap_or_default();
        for operation in operations::operations_mut(item) {
            let tags = operation.tags.take();
            operation.tags = tags.or_else(|| Some(vec![resource.to_owned()]));
        }
    }
}

/// Adds the path parameters to their operations.
fn add_path_parameters(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let names = path.split('{').skip(1);
        let names = names.filter_map(|rest| rest.split('}').next());
        let parts: Vec<_> = names
            .filter_map(openapi_path_parameter)
            .map(RefOr::T)
            .collect();
        for operation in operations::operations_mut(item) {
            let others = operation.parameters.take().unwrap_or_default();
            let all: Vec<_> = parts.iter().cloned().chain(others).collect();
            operation.parameters = (!all.is_empty()).then_some(all);
        }
    }
}

/// Marks operations as requiring a token, unless the handler declares its security: `security()` is for an operation
/// that ignores tokens.
fn add_security_requirements(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in operations::operations_mut(item) {
            operation.security = match operation.security.take() {
                None => Some(vec![SecurityRequirement::new("token", [""; 0])]),
                stated => stated.filter(|stated| !stated.is_empty()),
            };
        }
    }
}

/// Writes the configured limits into the document.
fn add_configured_limits(document: &mut OpenApi, limits: &LimitsConfig) {
    for item in document.paths.paths.values_mut() {
        for operation in operations::operations_mut(item) {
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && parameter.name == "q"
                    && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
                {
                    schema.max_length = Some(limits.query_chars);
                }
            }
        }
    }
}

pub(crate) async fn openapi_json(state: web::Data<ServerState>) -> HttpResponse {
    response::json_bytes_response(
        actix_web::http::StatusCode::OK,
        openapi_with_limits(&state.context.config().limits),
    )
}

/// Redirects to the URL of the browsable page with the required trailing slash.
pub(crate) async fn redirect_to_docs() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((header::LOCATION, "docs/"))
        .finish()
}

/// Navigation bar above the browsable page that links back to the registry, in the colors of the browser's theme.
const HOME_LINK: &str = "<nav aria-label=\"A2A registry\" style=\"padding:.8rem 1.25rem;\
    font:600 1rem system-ui,sans-serif;color-scheme:light dark;background:Canvas;\
    border-bottom:1px solid GrayText\"><a href=\"/\" style=\"color:LinkText\">A2A registry</a> \
    <a href=\"/?q=\" style=\"color:LinkText;font-weight:400;margin-left:1rem\">Search</a> \
    <a href=\"/register\" style=\"color:LinkText;font-weight:400;margin-left:1rem\">Register</a> \
    <a href=\"/about\" style=\"color:LinkText;font-weight:400;margin-left:1rem\">About</a> \
    <a href=\"/manual/\" style=\"color:LinkText;font-weight:400;margin-left:1rem\">Manual</a></nav>";

/// Layout fixes for Swagger UI: without the viewport, phones use the desktop layout, which is too small to read. On
/// small screens operation ids leave no room for the paths, and code boxes overlap the lines above and below.
const LAYOUT_FIXES: &str = "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n    \
    <style>@media (max-width: 40rem) \
    { .swagger-ui .opblock .opblock-summary-operation-id { display: none } } \
    .swagger-ui .info code { padding: 0 .3em }</style>";

/// Adapts a file of the browsable page: the HTML page gets the layout fixes and the link back.
fn adapt_docs_page(file: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&file)
        .ok()
        .and_then(|text| text.split_once("<body>"))
    {
        Some((head, rest)) if head.contains("swagger-ui.css") => {
            let head = head.replacen("</head>", &format!("{LAYOUT_FIXES}\n</head>"), 1);
            format!("{head}<body>\n{HOME_LINK}{rest}").into_bytes()
        }
        _ => file,
    }
}

pub(crate) async fn serve_api_docs(request: HttpRequest) -> HandlerResult {
    static SWAGGER_CONFIG: LazyLock<Arc<utoipa_swagger_ui::Config<'static>>> =
        LazyLock::new(|| {
            let config = utoipa_swagger_ui::Config::from("../openapi.json");
            Arc::new(
                config
                    .validator_url("none")
                    .deep_linking(true)
                    // Collapsed, because the list is as long as the operations.
                    .default_models_expand_depth(0)
                    .display_operation_id(true),
            )
        });
    let file = utoipa_swagger_ui::serve(
        request.match_info().query("file"),
        Arc::clone(&SWAGGER_CONFIG),
    );
    let file = file.map_err(|error| AppError::internal(error.to_string()))?;
    let file = file.ok_or_else(AppError::no_resource)?;
    let bytes = adapt_docs_page(file.bytes.into_owned());
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, file.content_type))
        .insert_header((header::CONTENT_SECURITY_POLICY, DOCS_CSP))
        .insert_header((
            header::CACHE_CONTROL,
            HeaderValue::from_static("max-age=3600"),
        ))
        .body(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browsable_page_fits_a_phone_and_leads_back() {
        let page = "<head><link href=\"swagger-ui.css\"></head><body><p></p></body>";
        let page = String::from_utf8(adapt_docs_page(page.into())).unwrap_or_default();
        assert!(page.contains("width=device-width, initial-scale=1\">"));
        assert!(page.contains("<a href=\"/\""), "{page}");
        let other = b"<head></head><body></body>".to_vec();
        assert_eq!(adapt_docs_page(other.clone()), other);
    }
}
