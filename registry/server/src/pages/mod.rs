//! Pages for people: rendered by the server, usable without script, from the templates in `web/templates`.
//!
//! A page holds what the API answers, and what its template cannot say of that. The template hands every text of others
//! on to [`text`], which bounds it and shows what is hidden in it, and every time to [`moment`]; then it is escaped. Nothing is
//! handed to a template as ready markup.

pub mod assets;
pub mod auth;
pub(crate) mod changes;
pub(crate) mod confirm;
pub mod frame;
pub mod moment;
pub mod problems;
pub mod quote;
pub mod text;
pub mod trust;

#[cfg(test)]
pub(crate) mod tests;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ContentType, LOCATION};
use askama::Template;

use crate::http::problem::Problem;

/// Renders a page. Pages depend on the caller and the moment, so no cache may store them.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> HttpResponse {
    match template.render() {
        Ok(body) => HttpResponse::build(status)
            .insert_header(ContentType::html())
            .insert_header((CACHE_CONTROL, "private, no-cache"))
            .body(body),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// The answer to a form that was followed: the browser goes on to this address.
pub(crate) fn see_other(address: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, address))
        .finish()
}

/// The answer to a form that asks for nothing, as Enter in a field sends it: the browser stays on the page, with what was
/// typed.
pub(crate) fn stay_on_page() -> HttpResponse {
    HttpResponse::NoContent().finish()
}

/// Logs the internal text of a failure, because no problem document is made that would log it.
pub(crate) fn log(problem: &Problem) {
    let Some(internal) = problem.internal() else {
        return;
    };
    if problem.kind().status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(internal, "{problem}");
    } else {
        tracing::warn!(internal, "{problem}");
    }
}

/// The address of a search for one value alone.
pub(crate) fn only(name: &str, value: &str) -> String {
    match serde_html_form::to_string([(name, value)]) {
        Ok(pairs) => format!("/?{pairs}"),
        Err(_) => "/".to_owned(),
    }
}
