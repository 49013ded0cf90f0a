//! Error pages, and `GET /problems/{slug}`, which leads to the explanation of a kind of problem.

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::text;
use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, LOCATION, RETRY_AFTER};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::{log_problem, render_page};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::path_parameters::Slug;
use crate::requests::visitor::Visitor;

#[derive(Template)]
#[template(path = "problem.html")]
pub(crate) struct ProblemPage {
    frame: Frame,
    status: u16,
    title: &'static str,
    detail: String,
    /// Slug of the problem kind, which has a page of its own.
    slug: &'static str,
    /// Whether the page does not exist, so that a search may help.
    is_missing: bool,
    /// Whether a retry may help.
    is_passing: bool,
}

impl ProblemPage {
    pub(crate) fn new(frame: Frame, problem: &Problem) -> Self {
        let kind = problem.kind();
        Self {
            frame,
            status: kind.status.as_u16(),
            title: kind.title,
            detail: text::single_line(&problem.to_string(), text::BLOCK),
            slug: kind.slug,
            is_missing: kind.status == StatusCode::NOT_FOUND,
            is_passing: kind.status.is_server_error(),
        }
    }
}

/// Error page for a handler that has a frame.
pub(crate) fn framed_error_page(frame: Frame, error: AppError) -> HttpResponse {
    let retry_after = error.retry_after;
    let problem = Problem::from(error);
    log_problem(&problem);
    let mut response = render_page(problem.kind().status, &ProblemPage::new(frame, &problem));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Error page for any path outside of the API. The middleware has logged the error.
pub fn error_page(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    let Some(context) = request.app_data::<web::Data<AppContext>>() else {
        return problem.to_response(request.uri().path());
    };
    let visitor = request.extensions().get::<Visitor>().cloned();
    let frame = Frame::for_visitor(&context.config(), "problem", &visitor.unwrap_or_default());
    match ProblemPage::new(frame, problem).render() {
        Ok(body) => problem
            .response_builder()
            .insert_header(ContentType::html())
            .body(body),
        Err(error) => {
            tracing::error!(%error, "the error page could not be rendered");
            problem.to_response(request.uri().path())
        }
    }
}

/// Redirects from the `type` of a problem document to the page of the manual that explains it.
pub(crate) async fn redirect_to_problem_kind(slug: Slug) -> HandlerResult {
    let kind = problem_kinds::problem_kind_by_slug(&slug.0).ok_or_else(AppError::no_resource)?;
    let location = format!("../manual/reference/problems#{}", kind.slug);
    Ok(HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, location))
        .finish())
}
