//! `GET /problems/{slug}`: a page that explains a kind of problem.

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, get};

use crate::error::AppError;
use crate::http::path::Slug;
use crate::http::problem::Problem;
use crate::http::problem_kinds;

/// Explains a kind of problem.
///
/// # Errors
/// `not-found`.
#[get("/problems/{slug}")]
pub async fn problem_page(slug: Slug) -> Result<HttpResponse, Problem> {
    let kind = problem_kinds::by_slug(&slug.0).ok_or_else(AppError::no_address)?;
    Ok(HttpResponse::Ok()
        .insert_header((
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ))
        .insert_header((
            header::CACHE_CONTROL,
            HeaderValue::from_static("max-age=3600"),
        ))
        .body(page(kind)))
}

/// The page at `GET /problems/{slug}`. Every text on it is a constant of [`problem_kinds`].
fn page(kind: &problem_kinds::ProblemKind) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n\
         <p>Status {status}, type <code>/problems/{slug}</code></p>\n<p>{text}</p>\n</body>\n</html>\n",
        title = escape(kind.title),
        status = kind.status.as_u16(),
        slug = kind.slug,
        text = escape(kind.explanation),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_every_kind_names_its_slug() {
        for kind in problem_kinds::ALL {
            assert!(page(kind).contains(kind.slug), "{kind:?}");
        }
    }
}
