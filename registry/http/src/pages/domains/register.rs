//! Registration page, with a second form that lints a pasted card.
//!
//! For a visitor who is not signed in, the form itself carries the token, so that no other site can act with the
//! visitor's authority; for a signed-in visitor the form belongs to the session. If registration is open, the
//! visitor's address counts for limits, so a form from another site is rejected there too.

use std::time::Duration;

use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_core::config::{Config, RegistrationAccess as Admission};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::register;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::text::{self, LINE};
use a2a_registry_core::visibility::caller::Caller;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;
use tokio::time::timeout;

use crate::pages::domains::NEW;
use crate::pages::domains::lint_form::{self, LintFormView};
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::auth::{Register, authenticate_request, authorize_registration};
use crate::requests::body::PendingBody;
use crate::requests::forms::{FormFields, PermittedForm, read_form};
use crate::requests::visitor::Visitor;

/// Maximum time that the response waits for the result of the first visit.
const FIRST_VISIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which the result is polled, because not every visit appends an event.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of bytes of a form.
const MAX_FORM_BYTES: usize = 8 * 1024;
/// Maximum number of characters of a target that the page shows again.
const MAX_TARGET_CHARS: usize = 2_000;

/// Form fields. They are never logged, because they include a token.
#[derive(Deserialize, Default)]
#[serde(default)]
struct RegisterForm {
    target: String,
    token: String,
    approve: Option<String>,
}

#[derive(Template)]
#[template(path = "register.html")]
pub(crate) struct RegisterPage {
    frame: Frame,
    open: bool,
    target: String,
    approve: bool,
    problem: Option<String>,
    lint: LintFormView,
}

pub(crate) async fn show_register_page(
    context: web::Data<AppContext>,
    visitor: Visitor,
) -> HttpResponse {
    let mut page = RegisterPage::new(&context.config(), "", false, None);
    page.frame = Frame::for_visitor(&context.config(), "register", &visitor);
    crate::pages::render_page(StatusCode::OK, &page)
}

/// Registers the target of the form, and shows the domain's page with its challenges and the result of the first
/// visit.
///
/// The response is the page itself, not a redirect: the domain may still be hidden from everyone else, and only the
/// form has the token that gives access. Submitting the form again does not register anything twice.
pub(crate) async fn submit_registration(
    context: web::Data<AppContext>,
    request: HttpRequest,
    body: PendingBody,
) -> HttpResponse {
    let mut form = RegisterForm::default();
    let outcome = match read_form::<RegisterForm>(&request, body, MAX_FORM_BYTES).await {
        Ok(sent) => {
            form = sent;
            register_from_form(&context, &request, &form).await
        }
        Err(problem) => Err(problem),
    };
    match outcome {
        Ok((caller, view)) => {
            let (view, under_way) = await_first_visit(&context, &caller, view).await;
            crate::pages::domains::registered_domain_page(&context, &caller, view, under_way).await
        }
        Err(problem) => {
            crate::pages::log_problem(&problem);
            let status = problem.kind().status;
            let text = problem.to_string();
            let approve = form.approve.is_some();
            let page = RegisterPage::new(&context.config(), &form.target, approve, Some(&text));
            crate::pages::render_page(status, &page)
        }
    }
}

/// Form fields for a signed-in visitor.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SignedInRegisterForm {
    target: String,
    approve: Option<String>,
}

impl FormFields for SignedInRegisterForm {}

/// Registers the target of the form for the signed-in account, and redirects to the domain's page.
pub(crate) async fn submit_registration_signed_in(
    form: PermittedForm<Register, SignedInRegisterForm>,
) -> HttpResponse {
    let SignedInRegisterForm { target, approve } = &form.fields;
    let registered = async {
        let target = parse_registration_target(target)?;
        let what = to_registration(target, approve.is_some());
        register::register_domain(&form.context, &form.visitor.caller, &what).await
    };
    match registered.await {
        Ok(view) => {
            let link = format!("/domains/{}?wait=1", text::path_segment(&view.domain));
            crate::pages::see_other(&link)
        }
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log_problem(&problem);
            let message = problem.to_string();
            let approve = approve.is_some();
            let mut page =
                RegisterPage::new(&form.context.config(), target, approve, Some(&message));
            page.frame = Frame::for_visitor(&form.context.config(), "register", &form.visitor);
            crate::pages::render_page(problem.kind().status, &page)
        }
    }
}

fn parse_registration_target(target: &str) -> Result<&str> {
    match target.trim() {
        "" => Err(AppError::invalid(
            "/target",
            "Enter a domain or the URL of a card.",
        )),
        target => Ok(target),
    }
}

/// Waits until one of the new sources was fetched, at most [`FIRST_VISIT_TIMEOUT`], and returns the domain; returns it
/// as registered if the caller may not see it yet.
async fn await_first_visit(
    context: &AppContext,
    caller: &Caller,
    registered: DomainView,
) -> (DomainView, bool) {
    let is_new = |source: &SourceView| source.state == NEW;
    let new_urls: Vec<String> = registered
        .sources
        .iter()
        .filter(|source| is_new(source))
        .map(|source| source.url.clone())
        .collect();
    let is_waiting = |view: &DomainView| {
        let mut sources = view.sources.iter();
        !new_urls.is_empty() && !sources.any(|one| new_urls.contains(&one.url) && !is_new(one))
    };
    let mut signal = context.event_signal();
    let mut view = registered;
    let poll = async {
        while is_waiting(&view) {
            if let Ok(Err(_)) = timeout(POLL_INTERVAL, signal.changed()).await {
                break;
            }
            if let Ok(newer) = domain_show(context, caller, &view.domain).await {
                view = newer;
            }
        }
    };
    // The domain itself shows whether there was a result in time.
    let _ = timeout(FIRST_VISIT_TIMEOUT, poll).await;
    let under_way = is_waiting(&view);
    (view, under_way)
}

async fn register_from_form(
    context: &AppContext,
    request: &HttpRequest,
    form: &RegisterForm,
) -> Result<(Caller, DomainView), Problem> {
    let target = parse_registration_target(&form.target)?;
    let token = form.token.trim();
    let caller = if token.is_empty() {
        Caller::default()
    } else {
        authenticate_request(request, token).await?
    };
    if token.is_empty() && context.config().governance.registration == Admission::Token {
        // The API's message names a header, which a form does not have.
        return Err(Problem::new(
            &problem_kinds::UNAUTHENTICATED,
            "Registration requires a token. Fill in the field Token.",
        ));
    }
    let caller = authorize_registration(request, caller)?;
    let what = to_registration(target, form.approve.is_some());
    let view = register::register_domain(context, &caller, &what).await?;
    Ok((caller, view))
}

/// Converts a target to a registration: a card URL if it has a scheme, otherwise a domain.
fn to_registration(target: &str, approve: bool) -> Registration {
    if target.contains("://") {
        Registration {
            card_url: Some(target.to_owned()),
            approve,
            ..Registration::default()
        }
    } else {
        Registration {
            domain: Some(target.to_owned()),
            approve,
            ..Registration::default()
        }
    }
}

impl RegisterPage {
    pub(crate) fn new(config: &Config, target: &str, approve: bool, problem: Option<&str>) -> Self {
        Self {
            frame: Frame::new(config, "register"),
            open: config.governance.registration == Admission::Open,
            target: target.chars().take(MAX_TARGET_CHARS).collect(),
            approve,
            problem: problem.map(to_sentence),
            lint: LintFormView::default(),
        }
    }

    pub(crate) fn with_lint(config: &Config, visitor: &Visitor, lint: LintFormView) -> Self {
        Self {
            frame: Frame::for_visitor(config, "register", visitor),
            lint,
            ..Self::new(config, "", false, None)
        }
    }
}

/// Converts a phrase to a sentence with a capital letter and a period.
pub(crate) fn to_sentence(words: &str) -> String {
    let words = text::single_line(words, 1_000);
    let mut characters = words.chars();
    let begun: String = match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => words,
    };
    if begun.ends_with(['.', '!', '?', '…']) {
        begun
    } else {
        begun + "."
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_address_is_a_card_and_a_name_is_a_domain() {
        let named = to_registration("agents.example.com:8443", true);
        assert_eq!(named.domain.as_deref(), Some("agents.example.com:8443"));
        assert!(named.approve && named.card_url.is_none());
        let address = to_registration("https://agents.example.com/card.json", false);
        assert_eq!(
            address.card_url.as_deref(),
            Some("https://agents.example.com/card.json")
        );
        assert!(address.domain.is_none());
    }
}
