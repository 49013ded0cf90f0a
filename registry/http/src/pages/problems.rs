//! Pages of errors, and `GET /problems/{slug}`, which explains a kind of problem.

use a2a_registry_core::context::Context;
use a2a_registry_core::error::AppError;
use a2a_registry_core::text;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ContentType, HeaderValue, RETRY_AFTER};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;

use crate::answers::answer::Answer;
use crate::pages::frame::Frame;
use crate::pages::{log, page};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds::{self, ProblemKind};
use crate::requests::path::Slug;
use crate::requests::visitor::Visitor;

#[derive(Template)]
#[template(path = "problem.html")]
pub(crate) struct ProblemPage {
    frame: Frame,
    status: u16,
    title: &'static str,
    detail: String,
    /// The kind of problem, which has a page of its own.
    slug: &'static str,
    /// Whether the address leads nowhere, so that a search may help.
    is_missing: bool,
    /// Whether a retry may help.
    is_passing: bool,
}

#[derive(Template)]
#[template(path = "problem_kind.html")]
struct KindPage {
    frame: Frame,
    kind: &'static ProblemKind,
    /// The explanation, in parts: text and code alternate.
    explanation: Vec<&'static str>,
    status: u16,
    all: &'static [&'static ProblemKind],
}

impl ProblemPage {
    pub(crate) fn new(frame: Frame, problem: &Problem) -> Self {
        let kind = problem.kind();
        Self {
            frame,
            status: kind.status.as_u16(),
            title: kind.title,
            detail: text::line(&problem.to_string(), text::BLOCK),
            slug: kind.slug,
            is_missing: kind.status == StatusCode::NOT_FOUND,
            is_passing: kind.status.is_server_error(),
        }
    }
}

/// The page for an error of a handler that knows its frame.
pub(crate) fn problem(frame: Frame, error: AppError) -> HttpResponse {
    let retry_after = error.retry_after;
    let problem = Problem::from(error);
    log(&problem);
    let mut response = page(problem.kind().status, &ProblemPage::new(frame, &problem));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The page for an error at any address outside of the API, which the envelope has logged.
pub fn failed(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    let Some(context) = request.app_data::<web::Data<Context>>() else {
        return problem.answer(request.uri().path());
    };
    let visitor = request.extensions().get::<Visitor>().cloned();
    let frame = Frame::of(context.config(), "problem", &visitor.unwrap_or_default());
    match ProblemPage::new(frame, problem).render() {
        Ok(body) => problem
            .headed()
            .insert_header(ContentType::html())
            .body(body),
        Err(error) => {
            tracing::error!(%error, "the page of a problem could not be rendered");
            problem.answer(request.uri().path())
        }
    }
}

/// Explains a kind of problem. Every text on the page is a constant.
pub(crate) async fn explained(context: web::Data<Context>, slug: Slug) -> Answer {
    let kind = problem_kinds::by_slug(&slug.0).ok_or_else(AppError::no_address)?;
    let template = KindPage {
        frame: Frame::new(context.config(), "problem"),
        kind,
        explanation: kind.explanation.split('`').collect(),
        status: kind.status.as_u16(),
        all: problem_kinds::ALL,
    };
    let mut response = page(StatusCode::OK, &template);
    let caching = HeaderValue::from_static("max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, caching);
    Ok(response)
}
