//! `OpenAPI` document, generated from the handlers, and a page to browse it without external resources.

pub mod error_responses;
pub mod examples;
pub mod operations;
pub mod other_addresses;

use std::sync::{Arc, LazyLock};

use a2a_registry_api::{PolicyNotice, ard};
use a2a_registry_core::config::LimitsConfig;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use bytes::Bytes;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, RefOr};
use utoipa::{PartialSchema, ToSchema};
use utoipa_actix_web::AppExt;

use crate::answers::response::{self, HandlerResult};
use crate::pages::assets;
use crate::pages::frame::Frame;
use crate::problems::problem::{MemberError, ProblemDocument};
use crate::requests::path_parameters::openapi_path_parameter;
use crate::requests::server_state::ServerState;
use crate::requests::visitor::Visitor;
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

/// Header of every page, with the navigation.
#[derive(Template)]
#[template(path = "header.html")]
struct PageHeader {
    frame: Frame,
}

#[derive(Template)]
#[template(path = "footer.html")]
struct PageFooter;

/// Layout fixes for Swagger UI: without the viewport, phones use the desktop layout, which is too small to read. On
/// small screens operation ids leave no room for the paths, and code boxes overlap the lines above and below.
const LAYOUT_FIXES: &str = "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n    \
    <style>@media (max-width: 40rem) \
    { .swagger-ui .opblock .opblock-summary-operation-id { display: none } } \
    .swagger-ui .info code { padding: 0 .3em }</style>";

/// Adapts the browsable page: it gets the layout fixes, and the header and footer of every page. Their style sheet is
/// limited to them, because Swagger UI has its own.
fn adapt_docs_page(page: &str, frame: Frame) -> Result<String, askama::Error> {
    let (header, footer) = (PageHeader { frame }.render()?, PageFooter.render()?);
    let style = assets::style_sheet();
    let style = format!("<style>@scope (.registry-frame) {{\n{style}}}</style>");
    let page = page
        .replacen("<body>", &format!("<body>\n{}", in_frame(&header)), 1)
        .replacen("</body>", &format!("{}</body>", in_frame(&footer)), 1);
    Ok(page.replacen("</head>", &format!("{LAYOUT_FIXES}\n{style}\n</head>"), 1))
}

/// Styles of a scope do not select its root, so header and footer need one around them.
fn in_frame(part: &str) -> String {
    format!("<div class=\"registry-frame\">{part}</div>")
}

/// The text of a file, if it is the browsable page.
fn docs_page_text(file: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(file).ok()?;
    let (head, _) = text.split_once("<body>")?;
    head.contains("swagger-ui.css").then_some(text)
}

pub(crate) async fn serve_api_docs(
    context: web::Data<AppContext>,
    visitor: Visitor,
    request: HttpRequest,
) -> HandlerResult {
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
    let (bytes, caching) = match docs_page_text(&file.bytes) {
        Some(page) => {
            let frame = Frame::for_visitor(&context.config(), "api", &visitor);
            let page = adapt_docs_page(page, frame);
            let page = page.map_err(|error| AppError::internal(error.to_string()))?;
            (page.into_bytes(), "private, no-cache")
        }
        None => (file.bytes.into_owned(), "max-age=3600"),
    };
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, file.content_type))
        .insert_header((header::CONTENT_SECURITY_POLICY, DOCS_CSP))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static(caching)))
        .body(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_core::config::Config;

    use super::*;

    #[test]
    fn the_browsable_page_fits_a_phone_and_leads_back() {
        let page = "<head><link href=\"swagger-ui.css\"></head><body><p></p></body>";
        let frame = Frame::new(&Config::default(), "api");
        let adapted = adapt_docs_page(docs_page_text(page.as_bytes()).unwrap(), frame).unwrap();
        assert!(adapted.contains("width=device-width, initial-scale=1\">"));
        for part in [
            "<nav aria-label=\"Main\">",
            "<footer",
            "@scope (.registry-frame)",
            ".top nav a",
        ] {
            assert!(adapted.contains(part), "{part}: {adapted}");
        }
        assert_eq!(docs_page_text(b"<head></head><body></body>"), None);
    }
}
