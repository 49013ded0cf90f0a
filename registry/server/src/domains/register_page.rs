//! The registration form of the web pages, with the form that lints a pasted card beside it.
//!
//! The form itself carries the token and no cookie is set, so no other site can act with
//! a visitor's authority. Where registration is open to anyone, the visitor's address counts for limits;
//! so a form that another site sends is refused there as well.

use std::time::Duration;

use a2a_registry_api::{DomainView, Registration, SourceView};
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, HeaderMap, ORIGIN};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, get, post, web};
use askama::Template;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use url::Url;

use crate::authentication::authenticate;
use crate::caller::Caller;
use crate::config::{Config, Registration as Admission};
use crate::context::Context;
use crate::domains::acts::domain_show;
use crate::domains::lint_form::LintedView;
use crate::domains::page::NEW;
use crate::domains::register;
use crate::error::AppError;
use crate::http::auth::admit_registration;
use crate::http::body::UnreadBody;
use crate::http::problem::Problem;
use crate::http::problem_kinds;
use crate::http::problem_kinds::ProblemKind;
use crate::pages::frame::Frame;
use crate::pages::text;

/// How long the response waits for the result of the first visit.
const FIRST_VISIT: Duration = Duration::from_secs(3);
/// How often the result is polled meanwhile: not every visit appends an event.
const POLL: Duration = Duration::from_millis(250);
/// The most bytes of a form.
const FORM: usize = 8 * 1024;
/// Characters of a target that the page repeats.
const TARGET: usize = 2_000;

/// The fields of the form. They are never logged: they include a token.
#[derive(Deserialize, Default)]
#[serde(default)]
struct RegisterForm {
    target: String,
    token: String,
    approve: Option<String>,
}

/// The page.
#[derive(Template)]
#[template(path = "register.html")]
pub(crate) struct RegisterPage {
    frame: Frame,
    open: bool,
    target: String,
    approve: bool,
    problem: Option<String>,
    lint: LintedView,
}

/// Shows the form.
#[get("/register")]
pub(crate) async fn blank(context: web::Data<Context>) -> HttpResponse {
    let page = RegisterPage::new(context.config(), "", false, None);
    crate::pages::page(StatusCode::OK, &page)
}

/// Registers the target of the form, and responds with the domain's page: its challenges and the result of the first
/// visit.
///
/// The response is the page itself and no redirect: the domain may be hidden from everybody else yet, and only the form
/// holds the token that shows it. Sending the form again registers nothing twice.
#[post("/register")]
pub(crate) async fn submit(
    context: web::Data<Context>,
    request: HttpRequest,
    body: UnreadBody,
) -> HttpResponse {
    let mut form = RegisterForm::default();
    let ours = context.config().public_url();
    let outcome = match read_form::<RegisterForm>(&request, body, &ours, FORM).await {
        Ok(sent) => {
            form = sent;
            register(&context, &request, &form).await
        }
        Err(problem) => Err(problem),
    };
    match outcome {
        Ok((caller, view)) => {
            let (view, under_way) = first_result(&context, &caller, view).await;
            crate::domains::page::registered(&context, &caller, &view, under_way).await
        }
        Err(problem) => {
            crate::pages::log(&problem);
            let status = problem.kind().status;
            let text = problem.to_string();
            let approve = form.approve.is_some();
            let page = RegisterPage::new(context.config(), &form.target, approve, Some(&text));
            crate::pages::page(status, &page)
        }
    }
}

/// The fields of a form that a page of this registry sent, in at most `limit` bytes.
///
/// # Errors
/// `forbidden` from another site, `too-large`, `wrong-media-type`, `invalid-request`.
pub(crate) async fn read_form<T: DeserializeOwned>(
    request: &HttpRequest,
    body: UnreadBody,
    ours: &str,
    limit: usize,
) -> Result<T, Problem> {
    let refused = |kind: &'static ProblemKind, text: &str| Err(Problem::new(kind, text));
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    if !same_site(request.headers(), authority, ours) {
        return refused(
            &problem_kinds::FORBIDDEN,
            "This form was sent from another site. Send it again from here.",
        );
    }
    let bytes = body.read(limit).await?;
    if request.content_type() != "application/x-www-form-urlencoded" {
        return refused(
            &problem_kinds::WRONG_MEDIA_TYPE,
            "This address takes a form.",
        );
    }
    serde_html_form::from_bytes(&bytes)
        .or_else(|_| refused(&problem_kinds::INVALID_REQUEST, "The form cannot be read."))
}

/// The domain once one of its new sources was fetched, or after [`FIRST_VISIT`] without a fetch; as it was registered
/// if the caller may not see it yet.
async fn first_result(
    context: &Context,
    caller: &Caller,
    registered: DomainView,
) -> (DomainView, bool) {
    let is_new = |source: &SourceView| source.state == NEW;
    let new: Vec<String> = registered
        .sources
        .iter()
        .filter(|source| is_new(source))
        .map(|source| source.url.clone())
        .collect();
    let waits = |view: &DomainView| {
        let mut sources = view.sources.iter();
        !new.is_empty() && !sources.any(|one| new.contains(&one.url) && !is_new(one))
    };
    let mut signal = context.event_signal();
    let mut view = registered;
    let found = async {
        while waits(&view) {
            if let Ok(Err(_)) = timeout(POLL, signal.changed()).await {
                break;
            }
            if let Ok(newer) = domain_show(context, caller, &view.domain).await {
                view = newer;
            }
        }
    };
    // Whether there was a result in time shows in the domain itself.
    let _ = timeout(FIRST_VISIT, found).await;
    let under_way = waits(&view);
    (view, under_way)
}

async fn register(
    context: &Context,
    request: &HttpRequest,
    form: &RegisterForm,
) -> Result<(Caller, DomainView), Problem> {
    let target = form.target.trim();
    if target.is_empty() {
        return Err(AppError::invalid("/target", "Name a domain or the URL of a card.").into());
    }
    let token = form.token.trim();
    let caller = if token.is_empty() {
        Caller::default()
    } else {
        authenticate(context, token).await?
    };
    if token.is_empty() && context.config().governance.registration == Admission::Token {
        // The API's sentence names a header, which a form does not have.
        return Err(Problem::new(
            &problem_kinds::UNAUTHENTICATED,
            "Registering needs a token: fill in the field Token.",
        ));
    }
    let caller = admit_registration(request, caller)?;
    let what = registration(target, form.approve.is_some());
    let view = register::register(context, &caller, &what).await?;
    Ok((caller, view))
}

/// The registration of a target: a card URL if it has a scheme, else a domain.
fn registration(target: &str, approve: bool) -> Registration {
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

/// Whether a page of this registry sent the request, by the browser's headers. A client without these headers is no
/// browser, and acts only for itself.
///
/// This registry is the host that the request was sent to (`authority` with HTTP/2, else `Host`), and the host of
/// `public_url`, for a registry behind a proxy.
fn same_site(headers: &HeaderMap, authority: Option<&str>, public_url: &str) -> bool {
    let read = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    if let Some(site) = read("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = read(ORIGIN.as_str()) else {
        return true;
    };
    let Ok(origin) = Url::parse(origin) else {
        return false;
    };
    let called = Url::parse(public_url).is_ok_and(|ours| ours.origin() == origin.origin());
    let asked = authority
        .or_else(|| read(HOST.as_str()))
        .is_some_and(|host| {
            Url::parse(&format!("{}://{host}", origin.scheme()))
                .is_ok_and(|ours| ours.has_host() && ours.origin() == origin.origin())
        });
    called || asked
}

impl RegisterPage {
    /// The form, with its error and the values entered, without the token.
    pub(crate) fn new(config: &Config, target: &str, approve: bool, problem: Option<&str>) -> Self {
        Self {
            frame: Frame::new(config, "register"),
            open: config.governance.registration == Admission::Open,
            target: target.chars().take(TARGET).collect(),
            approve,
            problem: problem.map(sentence),
            lint: LintedView::default(),
        }
    }

    /// The page with what came of a pasted card.
    pub(crate) fn with_lint(config: &Config, lint: LintedView) -> Self {
        Self {
            lint,
            ..Self::new(config, "", false, None)
        }
    }
}

/// A phrase as a sentence: with a capital and a full stop.
pub(crate) fn sentence(words: &str) -> String {
    let words = text::line(words, 1_000);
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

    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::try_from(*name).unwrap(),
                    HeaderValue::try_from(*value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn a_form_of_another_site_is_refused() {
        let host = ("host", "registry.example:8080");
        for good in [
            &[host][..],
            &[host, ("sec-fetch-site", "same-origin"), ("origin", "null")],
            &[host, ("sec-fetch-site", "none")],
            &[host, ("origin", "http://registry.example:8080")],
            &[host, ("origin", "https://Registry.Example:8080")],
            &[host, ("origin", "https://public.example")],
            &[("origin", "https://public.example:443")],
        ] {
            assert!(
                same_site(&headers(good), None, "https://public.example"),
                "{good:?}"
            );
        }
        for bad in [
            &[host, ("sec-fetch-site", "cross-site")][..],
            &[
                host,
                ("sec-fetch-site", "same-site"),
                ("origin", "http://registry.example:8080"),
            ],
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "http://registry.example")],
            &[host, ("origin", "null")],
            &[("origin", "http://registry.example:8080")],
        ] {
            assert!(
                !same_site(&headers(bad), None, "https://public.example"),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn an_address_is_a_card_and_a_name_is_a_domain() {
        let named = registration("agents.example.com:8443", true);
        assert_eq!(named.domain.as_deref(), Some("agents.example.com:8443"));
        assert!(named.approve && named.card_url.is_none());
        let address = registration("https://agents.example.com/card.json", false);
        assert_eq!(
            address.card_url.as_deref(),
            Some("https://agents.example.com/card.json")
        );
        assert!(address.domain.is_none());
    }
}
