//! `a2a-registry login` in the browser: asks whether the command gets a token, and sends the browser back to the port
//! of the command with a one-time code.

use std::num::NonZeroU16;

use a2a_registry_api::limits::MAX_TOKEN_DAYS;
use a2a_registry_core::accounts::login_codes::{AllowedLogin, issue_login_code};
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Scope;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::render_page;
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::visitor::PermittedVisitor;

/// Characters of 32 bytes in base64url, as the command makes `state` and `challenge`.
const RANDOM_CHARS: usize = 43;

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: Frame,
    login: LoginForm,
    scopes: Vec<&'static str>,
}

/// Page that leads back to the command, because the content security policy blocks a form that redirects there.
#[derive(Template)]
#[template(path = "login_return.html")]
struct LoginReturnPage {
    frame: Frame,
    address: String,
}

/// What the command asks for, in the query and in the form.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LoginForm {
    /// Port of the command on this machine.
    port: NonZeroU16,
    state: String,
    challenge: String,
    days: u32,
    #[serde(default)]
    scope: Vec<Scope>,
}

impl FormFields for LoginForm {}

impl LoginForm {
    /// Rejects what no command of this registry sends: the texts become part of an address.
    fn check(&self) -> Result<(), Problem> {
        let is_random = |text: &str| {
            let mut bytes = text.bytes();
            text.len() == RANDOM_CHARS
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_valid = is_random(&self.state)
            && is_random(&self.challenge)
            && (1..=MAX_TOKEN_DAYS).contains(&self.days);
        is_valid.then_some(()).ok_or_else(invalid_login_problem)
    }

    /// The requested scopes that the caller has.
    fn granted_scopes(&self, caller: &Caller) -> Result<Vec<Scope>, Problem> {
        let actor = caller.require_account()?;
        let requested = self.scope.iter().copied();
        let mut granted: Vec<Scope> = requested
            .filter(|scope| actor.scopes.contains(*scope))
            .collect();
        granted.sort_unstable();
        granted.dedup();
        if granted.is_empty() {
            return Err(AppError::forbidden(
                "Your account has none of the scopes that the command asks for. Give `--scope` one that it has.",
            )
            .into());
        }
        Ok(granted)
    }
}

fn invalid_login_problem() -> Problem {
    AppError::invalid(
        "",
        "This address does not come from `a2a-registry login`. Run the command again.",
    )
    .into()
}

pub(crate) async fn show_login(
    visitor: PermittedVisitor<Read>,
    request: HttpRequest,
) -> HandlerResult {
    let login: LoginForm =
        serde_html_form::from_str(request.query_string()).map_err(|_| invalid_login_problem())?;
    login.check()?;
    let scopes = login.granted_scopes(&visitor.caller)?;
    let page = LoginPage {
        frame: Frame::for_visitor(&visitor.context.config(), "account", &visitor),
        scopes: scopes.into_iter().map(Scope::as_str).collect(),
        login,
    };
    Ok(render_page(StatusCode::OK, &page))
}

pub(crate) async fn submit_login(form: PermittedForm<Read, LoginForm>) -> HandlerResult {
    form.fields.check()?;
    let login = AllowedLogin {
        scopes: form.fields.granted_scopes(&form.visitor.caller)?,
        challenge: form.fields.challenge.clone(),
        days: form.fields.days,
    };
    let code = issue_login_code(&form.context, &form.visitor.caller, login)?;
    let LoginForm { port, state, .. } = &form.fields;
    let page = LoginReturnPage {
        frame: Frame::for_visitor(&form.context.config(), "account", &form.visitor),
        address: format!("http://127.0.0.1:{port}/callback?code={code}&state={state}"),
    };
    Ok(render_page(StatusCode::OK, &page))
}
