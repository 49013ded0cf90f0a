//! Signing in to the pages with an identity provider.

use a2a_registry_core::accounts::identity::account_of;
use a2a_registry_core::error::{AppError, RefusalReason};
use a2a_registry_core::providers::CodeAnswer;
use a2a_registry_core::text::{self, LINE};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SET_COOKIE};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use crate::limits::client_address::client_address;
use crate::pages::accounts::sign_in::{SignInProblem, form, local, refuse_connection};
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::requests::cookies::{self, NewCookie, Personal};
use crate::requests::forms::{FormFields, OpenForm};
use crate::requests::path::ProviderRef;
use crate::requests::refusals::record_refusal;
use crate::requests::state::State;
use crate::requests::visitor::{Visitor, by_session};
use crate::sessions::attempts::{
    NewAttempt, attempt_begin, attempt_finish, attempt_of, clear_attempt,
};
use crate::sessions::{SessionClient, session_begin_with_provider, session_end};

/// The page that leads to a provider. The content security policy for forms would block a form that redirects there.
#[derive(Template)]
#[template(path = "departure.html")]
struct DeparturePage {
    frame: Frame,
    title: String,
    address: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ProviderForm {
    next: String,
}

impl FormFields for ProviderForm {}

pub(crate) async fn begin(
    state: web::Data<State>,
    request: HttpRequest,
    provider: ProviderRef,
    fields: OpenForm<ProviderForm>,
) -> HttpResponse {
    let next = local(&fields.0.next);
    match begun(&state, &request, &provider.0, &next).await {
        Ok((page, cookies)) => {
            request.extensions_mut().insert(Personal);
            let mut response = crate::pages::page(StatusCode::OK, &page);
            for cookie in cookies {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => refused(&state, &request, &next, &problem),
    }
}

async fn begun(
    state: &State,
    request: &HttpRequest,
    provider: &str,
    next: &str,
) -> Result<(DeparturePage, Vec<HeaderValue>), Problem> {
    let context = &state.context;
    refuse_connection(request, context.config())?;
    let provider = context.providers.by_name(provider).ok_or_else(unknown)?;
    if let Some(address) = client_address(request, &context.config().server.trusted_proxies) {
        state.sign_ins.admit_address(address)?;
    }
    let NewAttempt { url, cookies } = attempt_begin(context, provider, request, next).await?;
    let page = DeparturePage {
        frame: Frame::new(context.config(), "sign-in"),
        title: text::line(provider.title(), LINE),
        address: url.into(),
    };
    Ok((page, cookies))
}

fn unknown() -> AppError {
    AppError::not_found("This registry has no identity provider of that name.")
}

pub(crate) async fn finish(
    state: web::Data<State>,
    request: HttpRequest,
    provider: ProviderRef,
) -> HttpResponse {
    request.extensions_mut().insert(Personal);
    let answer: CodeAnswer = serde_html_form::from_str(request.query_string()).unwrap_or_default();
    let signed_in = signed_in(&state, &request, &provider.0, &answer).await;
    // A previous session has ended: its new secret, if it got one, is not sent to the browser.
    request.extensions_mut().remove::<NewCookie>();
    match signed_in {
        Ok((secret, next)) => {
            let mut response = crate::pages::see_other(&local(&next));
            // The form's cookie stays: another tab may show the form.
            let set = cookies::set(cookies::SESSION, &secret);
            for cookie in set.into_iter().chain(clear_attempt(&answer.state)) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => refused(&state, &request, "", &problem),
    }
}

/// Begins a session, and ends the browser's earlier one. Returns its secret, and the path to go to.
async fn signed_in(
    state: &State,
    request: &HttpRequest,
    provider: &str,
    answer: &CodeAnswer,
) -> Result<(String, String), Problem> {
    let context = &state.context;
    refuse_connection(request, context.config())?;
    let provider = context.providers.by_name(provider).ok_or_else(unknown)?;
    let attempt = attempt_of(context, provider, request, answer).await?;
    let client = SessionClient::of(request, context);
    // An attempt may be answered again until it has begun a session, and each answer causes a request to the provider.
    if let Some(address) = client.address {
        state.sign_ins.admit_answer(address)?;
    }
    let arrival = attempt_finish(context, provider, attempt, answer).await?;
    let account = account_of(context, &arrival.holder).await?;
    if account.disabled_at.is_some() {
        let text = "Your account in this registry is disabled; ask an admin.";
        let error = AppError::forbidden(text);
        return Err(error.refused(RefusalReason::DisabledAccount).into());
    }
    state.sign_ins.admit_account(account.id)?;
    let before = by_session(request).await?;
    let secret =
        session_begin_with_provider(context, account.id, &arrival.attempt, &client).await?;
    if let Some(before) = before {
        session_end(context, &before.caller).await?;
    }
    Ok((secret, arrival.next))
}

fn refused(state: &State, request: &HttpRequest, next: &str, problem: &Problem) -> HttpResponse {
    crate::pages::log(problem);
    record_refusal(request, problem);
    let said = SignInProblem {
        next,
        problem: Some(problem),
    };
    form(
        &state.context,
        request,
        &Visitor::default(),
        &said,
        problem.kind().status,
    )
}
