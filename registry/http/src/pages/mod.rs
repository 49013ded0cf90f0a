//! Pages for people: rendered by the server, usable without script, from the templates in `web/templates`.
//!
//! A page has the API's response and the values that its template cannot derive. The template passes every untrusted
//! text to [`text`](a2a_registry_core::text), which limits its length and makes hidden characters visible, and every time
//! to [`moment`]; the results are escaped. Only the manual, which is part of the program, is ready markup.

pub mod about;
pub mod accounts;
pub mod admin;
pub mod agent;
pub mod assets;
pub mod auth;
pub mod changes;
pub mod collections;
pub mod confirm;
pub mod domains;
pub mod events;
pub mod frame;
pub mod manual;
pub mod moment;
pub mod policies;
pub mod problems;
pub mod reviews;
pub mod search;
pub mod trust;

#[cfg(test)]
pub(crate) mod tests;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ContentType, LOCATION};
use askama::Template;

use crate::problems::problem::Problem;

/// Renders a page. Pages depend on the caller and the time, so caches must not store them.
pub(crate) fn render_page(status: StatusCode, template: &impl Template) -> HttpResponse {
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

/// Redirects the browser after a successful form.
pub(crate) fn see_other(address: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, address))
        .finish()
}

/// Response to a form without an action, such as by Enter in a field: the browser stays on the page and keeps the
/// input.
pub(crate) fn stay_on_page() -> HttpResponse {
    HttpResponse::NoContent().finish()
}

/// Logs a refusal, and the internal text of an error, which otherwise happens when a problem document is created.
pub(crate) fn log_problem(problem: &Problem) {
    problem.log_refusal();
    let Some(internal) = problem.internal_text() else {
        return;
    };
    if problem.kind().status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(internal, "{problem}");
    } else {
        tracing::warn!(internal, "{problem}");
    }
}

pub(crate) fn single_filter_link(name: &str, value: &str) -> String {
    match serde_html_form::to_string([(name, value)]) {
        Ok(pairs) => format!("/?{pairs}"),
        Err(_) => "/".to_owned(),
    }
}
