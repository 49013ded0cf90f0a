//! Signing in with a sign-in link: a page that asks for a confirmation, and the form that signs in.

use a2a_registry_core::accounts::authentication::random_secret;
use a2a_registry_core::text;
use actix_web::http::StatusCode;
use actix_web::http::header::SET_COOKIE;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use crate::pages::accounts::sign_in::{
    SignInPageState, render_sign_in_page, require_secure_connection,
};
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::requests::cookies::{self, Uncacheable};
use crate::requests::forms::{AnonymousForm, FormFields};
use crate::requests::refusal_recording::record_credential_refusal;
use crate::requests::server_state::ServerState;
use crate::requests::visitor::{Visitor, form_token, session_visitor};
use crate::sessions::sign_in_links::SignInLink;
use crate::sessions::{SessionClient, begin_session_with_link, end_session};

#[derive(Template)]
#[template(path = "sign_in_link.html")]
struct SignInLinkPage {
    frame: Frame,
    form_token: String,
    code: String,
    account: String,
}

/// The code of a link, in the query and in the form. Neither is logged.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SignInLinkForm {
    code: String,
}

impl FormFields for SignInLinkForm {}

pub(crate) async fn show_sign_in_link(
    state: web::Data<ServerState>,
    request: HttpRequest,
) -> HttpResponse {
    request.extensions_mut().insert(Uncacheable);
    let query: SignInLinkForm =
        serde_html_form::from_str(request.query_string()).unwrap_or_default();
    match load_account_name(&state, &request, &query.code).await {
        Ok(account) => {
            let existing_secret = cookies::secret_cookie(&request, cookies::FORM_COOKIE);
            let secret = existing_secret.unwrap_or_else(|| random_secret(&state.context));
            let page = SignInLinkPage {
                frame: Frame::new(&state.context.config(), "sign-in"),
                form_token: form_token(&secret),
                code: query.code,
                account: text::single_line(&account, text::LINE),
            };
            let mut response = crate::pages::render_page(StatusCode::OK, &page);
            if let Some(cookie) = cookies::set_cookie_header(cookies::FORM_COOKIE, &secret) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => failed_link_page(&state, &request, &problem),
    }
}

async fn load_account_name(
    state: &ServerState,
    request: &HttpRequest,
    code: &str,
) -> Result<String, Problem> {
    let context = &state.context;
    require_secure_connection(request, &context.config())?;
    let link = SignInLink::open(context, code)?;
    let (account, _) = link.load_account(context, &context.store).await?;
    Ok(account.name)
}

pub(crate) async fn submit_sign_in_link(
    state: web::Data<ServerState>,
    request: HttpRequest,
    form: AnonymousForm<SignInLinkForm>,
) -> HttpResponse {
    match sign_in_with_link(&state, &request, &form.0.code).await {
        Ok(secret) => {
            let mut response = crate::pages::see_other("/");
            let set = cookies::set_cookie_header(cookies::SESSION_COOKIE, &secret);
            for cookie in set
                .into_iter()
                .chain(cookies::clear_cookie_header(cookies::FORM_COOKIE))
            {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => failed_link_page(&state, &request, &problem),
    }
}

async fn sign_in_with_link(
    state: &ServerState,
    request: &HttpRequest,
    code: &str,
) -> Result<String, Problem> {
    let context = &state.context;
    require_secure_connection(request, &context.config())?;
    let client = SessionClient::from_request(request, context);
    if let Some(address) = client.address {
        state.sign_in_limit.admit_address(address)?;
    }
    let link = SignInLink::open(context, code)?;
    let (account, _) = link.load_account(context, &context.store).await?;
    state.sign_in_limit.admit_account(account.id)?;
    let previous_session = session_visitor(request).await?;
    let secret = begin_session_with_link(context, account.id, &link, &client).await?;
    if let Some(previous_session) = previous_session {
        end_session(context, &previous_session.caller).await?;
    }
    Ok(secret)
}

fn failed_link_page(state: &ServerState, request: &HttpRequest, problem: &Problem) -> HttpResponse {
    crate::pages::log_problem(problem);
    record_credential_refusal(request, problem);
    let page_state = SignInPageState {
        next: "",
        problem: Some(problem),
    };
    let nobody = Visitor::default();
    let status = problem.kind().status;
    render_sign_in_page(&state.context, request, &nobody, &page_state, status)
}
