//! `GET /problems/{slug}`: what a kind of problem means, in words.

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
        .body(problem_kinds::page(kind)))
}
