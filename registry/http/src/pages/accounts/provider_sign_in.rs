//! Sign-in to the pages with an identity provider.

use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::error::{AppError, CredentialRefusal};
use a2a_registry_core::providers::AuthorizationResponse;
use a2a_registry_core::text::{self, LINE};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SET_COOKIE};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use crate::limits::client_address::client_address;
use crate::pages::accounts::sign_in::{
    SignInPageState, render_sign_in_page, require_secure_connection, safe_local_path,
};
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::requests::cookies::{self, NewCookie, Uncacheable};
use crate::requests::forms::{AnonymousForm, FormFields};
use crate::requests::path_parameters::ProviderRef;
use crate::requests::refusal_recording::record_credential_refusal;
use crate::requests::server_state::ServerState;
use crate::requests::visitor::{Visitor, session_visitor};
use crate::sessions::sign_in_attempts::{
    ProviderRedirect, clear_sign_in_cookie_header, create_sign_in_attempt, find_sign_in_attempt,
    finish_sign_in_attempt,
};
use crate::sessions::{SessionClient, begin_session_with_provider, end_session};

/// Page that links to the provider, because the content security policy blocks a form that redirects there.
#[derive(Template)]
#[template(path = "departure.html")]
struct ProviderRedirectPage {
    frame: Frame,
    title: String,
    address: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ProviderSignInForm {
    next: String,
}

impl FormFields for ProviderSignInForm {}

pub(crate) async fn start_provider_sign_in(
    state: web::Data<ServerState>,
    request: HttpRequest,
    provider: ProviderRef,
    fields: AnonymousForm<ProviderSignInForm>,
) -> HttpResponse {
    let next = safe_local_path(&fields.0.next);
    match begin_sign_in_attempt(&state, &request, &provider.0, &next).await {
        Ok((page, cookies)) => {
            request.extensions_mut().insert(Uncacheable);
            let mut response = crate::pages::render_page(StatusCode::OK, &page);
            for cookie in cookies {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => sign_in_failed_page(&state, &request, &next, &problem),
    }
}

async fn begin_sign_in_attempt(
    state: &ServerState,
    request: &HttpRequest,
    provider: &str,
    next: &str,
) -> Result<(ProviderRedirectPage, Vec<HeaderValue>), Problem> {
    let context = &state.context;
    require_secure_connection(request, &context.config())?;
    let provider = context
        .providers
        .sign_in_provider_named(provider)
        .ok_or_else(unknown_provider_error)?;
    if let Some(address) = client_address(request, &context.config().server.trusted_proxies) {
        state.sign_in_limit.admit_address(address)?;
    }
    let ProviderRedirect { url, cookies } =
        create_sign_in_attempt(context, provider, request, next).await?;
    let page = ProviderRedirectPage {
        frame: Frame::new(&context.config(), "sign-in"),
        title: text::single_line(provider.title(), LINE),
        address: url.into(),
    };
    Ok((page, cookies))
}

fn unknown_provider_error() -> AppError {
    AppError::not_found("This registry has no identity provider with this name.")
}

pub(crate) async fn finish_provider_sign_in(
    state: web::Data<ServerState>,
    request: HttpRequest,
    provider: ProviderRef,
) -> HttpResponse {
    request.extensions_mut().insert(Uncacheable);
    let authorization_response: AuthorizationResponse =
        serde_html_form::from_str(request.query_string()).unwrap_or_default();
    let result =
        begin_provider_session(&state, &request, &provider.0, &authorization_response).await;
    // The previous session has ended: its new secret, if there is one, must not be sent to the browser.
    request.extensions_mut().remove::<NewCookie>();
    match result {
        Ok((secret, next)) => {
            let mut response = crate::pages::see_other(&safe_local_path(&next));
            // Keep the form's cookie: another tab may show the form.
            let set = cookies::set_cookie_header(cookies::SESSION_COOKIE, &secret);
            for cookie in set
                .into_iter()
                .chain(clear_sign_in_cookie_header(&authorization_response.state))
            {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => sign_in_failed_page(&state, &request, "", &problem),
    }
}

/// Creates a session and ends the browser's earlier one. Returns the secret and the path to redirect to.
async fn begin_provider_session(
    state: &ServerState,
    request: &HttpRequest,
    provider: &str,
    response: &AuthorizationResponse,
) -> Result<(String, String), Problem> {
    let context = &state.context;
    require_secure_connection(request, &context.config())?;
    let provider = context
        .providers
        .sign_in_provider_named(provider)
        .ok_or_else(unknown_provider_error)?;
    let attempt = find_sign_in_attempt(context, provider, request, response).await?;
    let client = SessionClient::from_request(request, context);
    // A response to an attempt may be repeated until it has created a session, and each causes a request to the
    // provider.
    if let Some(address) = client.address {
        state.sign_in_limit.admit_provider_response(address)?;
    }
    let sign_in = finish_sign_in_attempt(context, provider, attempt, response).await?;
    let account = resolve_subject_account(context, &sign_in.token_subject).await?;
    if account.disabled_at.is_some() {
        let text = "Your account in this registry is disabled. Ask an admin.";
        let error = AppError::forbidden(text);
        return Err(error
            .with_refusal(CredentialRefusal::DisabledAccount)
            .into());
    }
    state.sign_in_limit.admit_account(account.id)?;
    let previous_session = session_visitor(request).await?;
    let secret =
        begin_session_with_provider(context, account.id, &sign_in.attempt, &client).await?;
    if let Some(previous_session) = previous_session {
        end_session(context, &previous_session.caller).await?;
    }
    Ok((secret, sign_in.next))
}

fn sign_in_failed_page(
    state: &ServerState,
    request: &HttpRequest,
    next: &str,
    problem: &Problem,
) -> HttpResponse {
    crate::pages::log_problem(problem);
    record_credential_refusal(request, problem);
    let page_state = SignInPageState {
        next,
        problem: Some(problem),
    };
    render_sign_in_page(
        &state.context,
        request,
        &Visitor::default(),
        &page_state,
        problem.kind().status,
    )
}
