//! Sign-in to the pages with a token, and sign-out.

use std::net::{IpAddr, Ipv4Addr};

use a2a_registry_core::accounts::authentication::{authenticate_token, random_secret};
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, CredentialRefusal};
use a2a_registry_core::text;
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, ORIGIN, SET_COOKIE};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;
use url::{Host, Url};

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::render_page;
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::cookies::{self, Uncacheable};
use crate::requests::forms::{AnonymousForm, FormFields, SessionForm};
use crate::requests::refusal_recording::record_credential_refusal;
use crate::requests::request_span::record_caller;
use crate::requests::server_state::ServerState;
use crate::requests::visitor::{Visitor, form_token, session_visitor};
use crate::sessions::{SessionClient, begin_session_with_token, end_session};

/// Redirect path after signing in without a path to return to.
const DEFAULT_PATH: &str = "/account";
/// Maximum number of characters of the path to return to.
const MAX_NEXT_CHARS: usize = 2_000;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    form_token: String,
    next: String,
    problem: Option<String>,
    /// Name and title of each identity provider.
    providers: Vec<(String, String)>,
    refused: Option<String>,
    contact: Option<ContactLink>,
}

/// Whom to ask for an account.
struct ContactLink {
    url: String,
    label: String,
}

impl ContactLink {
    fn from_config(config: &Config) -> Option<Self> {
        let url = config.server.contact.as_str();
        let label = url.trim_start_matches("mailto:");
        (!url.is_empty()).then(|| Self {
            url: url.to_owned(),
            label: text::single_line(label.split('?').next().unwrap_or(label), text::LINE),
        })
    }
}

/// Form fields. They are never logged, because they include a token.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SignInForm {
    token: String,
    next: String,
}

impl FormFields for SignInForm {}

/// Sign-out form, which has no fields.
#[derive(Deserialize)]
pub(crate) struct SignOutForm {}

impl FormFields for SignOutForm {}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NextParam {
    next: String,
}

pub(crate) async fn sign_in_page(
    context: web::Data<AppContext>,
    visitor: Visitor,
    request: HttpRequest,
) -> HttpResponse {
    let query: NextParam = serde_html_form::from_str(request.query_string()).unwrap_or_default();
    let page_state = SignInPageState {
        next: &query.next,
        problem: None,
    };
    render_sign_in_page(&context, &request, &visitor, &page_state, StatusCode::OK)
}

/// State of the sign-in page: the requested path, and an error.
pub(super) struct SignInPageState<'a> {
    pub next: &'a str,
    pub problem: Option<&'a Problem>,
}

/// Renders the page with the forms, which a cookie binds to the browser.
pub(super) fn render_sign_in_page(
    context: &AppContext,
    request: &HttpRequest,
    visitor: &Visitor,
    page_state: &SignInPageState<'_>,
    status: StatusCode,
) -> HttpResponse {
    request.extensions_mut().insert(Uncacheable);
    let existing_secret = cookies::secret_cookie(request, cookies::FORM_COOKIE);
    let secret = existing_secret.unwrap_or_else(|| random_secret(context));
    let template = SignInPage {
        frame: Frame::for_visitor(&context.config(), "sign-in", visitor),
        form_token: form_token(&secret),
        next: safe_local_path(page_state.next),
        problem: page_state
            .problem
            .map(|problem| text::single_line(&problem.to_string(), text::BLOCK)),
        providers: context
            .providers
            .sign_in_providers()
            .map(|one| {
                (
                    one.name().to_owned(),
                    text::single_line(one.title(), text::LINE),
                )
            })
            .collect(),
        refused: insecure_connection_reason(request, &context.config()),
        contact: ContactLink::from_config(&context.config()),
    };
    let mut response = render_page(status, &template);
    if let Some(cookie) = cookies::set_cookie_header(cookies::FORM_COOKIE, &secret) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

pub(crate) async fn submit_sign_in(
    state: web::Data<ServerState>,
    request: HttpRequest,
    form: AnonymousForm<SignInForm>,
) -> HttpResponse {
    match sign_in_with_token(&state, &request, &form.0).await {
        Ok(secret) => {
            let next = safe_local_path(&form.0.next);
            let mut response = crate::pages::see_other(&next);
            let set = cookies::set_cookie_header(cookies::SESSION_COOKIE, &secret);
            for cookie in set
                .into_iter()
                .chain(cookies::clear_cookie_header(cookies::FORM_COOKIE))
            {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => {
            crate::pages::log_problem(&problem);
            record_credential_refusal(&request, &problem);
            let status = problem.kind().status;
            let page_state = SignInPageState {
                next: &form.0.next,
                problem: Some(&problem),
            };
            let nobody = Visitor::default();
            self::render_sign_in_page(&state.context, &request, &nobody, &page_state, status)
        }
    }
}

async fn sign_in_with_token(
    state: &ServerState,
    request: &HttpRequest,
    form: &SignInForm,
) -> Result<String, Problem> {
    let context = &state.context;
    require_secure_connection(request, &context.config())?;
    let client = SessionClient::from_request(request, context);
    if let Some(address) = client.address {
        state.sign_in_limit.admit_address(address)?;
    }
    let caller = authenticate_token(context, form.token.trim()).await?;
    record_caller(request, &caller);
    state
        .sign_in_limit
        .admit_account(caller.require_account()?.id)?;
    let previous_session = session_visitor(request).await?;
    let secret = begin_session_with_token(context, &caller, &client).await?;
    if let Some(previous_session) = previous_session {
        end_session(context, &previous_session.caller).await?;
    }
    Ok(secret)
}

pub(crate) async fn sign_out(
    context: web::Data<AppContext>,
    form: SessionForm<SignOutForm>,
) -> HandlerResult {
    end_session(&context, &form.visitor.caller).await?;
    let mut response = crate::pages::see_other("/");
    if let Some(cookie) = cookies::clear_cookie_header(cookies::SESSION_COOKIE) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the text if it is a path of this registry, otherwise the account page: never another site or the sign-in
/// form.
pub(crate) fn safe_local_path(next: &str) -> String {
    let base = Url::parse("http://registry.invalid/").ok();
    let joined = base.as_ref().and_then(|base| base.join(next).ok());
    let is_local = next.starts_with('/')
        && next.len() <= MAX_NEXT_CHARS
        && next.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    match (base, joined) {
        (Some(base), Some(url)) if is_local && url.origin() == base.origin() => {
            let path = &url[url::Position::BeforePath..];
            let is_form = path.starts_with("/sign-");
            // A path that starts with two slashes is a URL of another host.
            if is_form || path.starts_with("//") {
                DEFAULT_PATH.to_owned()
            } else {
                path.to_owned()
            }
        }
        _ => DEFAULT_PATH.to_owned(),
    }
}

/// Reason why signing in over the connection of this request is not allowed: token and cookie would be sent in the
/// clear.
///
/// HTTPS connections are always allowed, whether the registry serves HTTPS itself or a proxy does at `public_url`.
/// Without HTTPS only clients on this machine that use a loopback address are allowed.
fn insecure_connection_reason(request: &HttpRequest, config: &Config) -> Option<String> {
    if config.server.tls_cert.is_some() {
        return None;
    }
    let header_text = |name| {
        let value = request.headers().get(name);
        value.and_then(|value| value.to_str().ok())
    };
    let requested_url =
        header_text(HOST).and_then(|host| Url::parse(&format!("http://{host}")).ok());
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
    let is_local_connection = peer.is_some_and(|peer| peer.is_loopback())
        && requested_url.as_ref().is_some_and(is_loopback_url);
    let public = Url::parse(&config.public_url()).ok();
    let public = public.filter(|url| url.scheme() == "https");
    let is_https_proxy = public.as_ref().is_some_and(|public| {
        let same_host = requested_url.as_ref().is_some_and(|called| {
            called.host_str() == public.host_str() && called.port() == public.port()
        });
        same_host && header_text(ORIGIN).is_none_or(|origin| origin.starts_with("https://"))
    });
    if is_local_connection || is_https_proxy {
        return None;
    }
    Some(match public {
        Some(public) => format!(
            "You cannot sign in over plain HTTP, because the token could be intercepted. Go to {public}sign-in, the \
             URL in server.public_url. A proxy there must pass its host on in `Host`."
        ),
        None => "You cannot sign in over plain HTTP, because the token could be intercepted. The operator must serve \
        this registry over HTTPS (server.tls_cert), or behind a proxy that does, and set server.public_url to the \
        https URL."
            .to_owned(),
    })
}

pub(super) fn require_secure_connection(
    request: &HttpRequest,
    config: &Config,
) -> Result<(), Problem> {
    match insecure_connection_reason(request, config) {
        Some(reason) => Err(Problem::new(&problem_kinds::SIGN_IN_REFUSED, reason)
            .with_refusal(CredentialRefusal::Connection)),
        None => Ok(()),
    }
}

fn is_loopback_url(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => {
            address.is_loopback() || address.to_ipv4_mapped() == Some(Ipv4Addr::LOCALHOST)
        }
        None => false,
    }
}

pub(crate) fn sign_in_required_problem() -> Problem {
    AppError::unauthenticated("Sign in first.").into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn signing_in_leads_to_this_registry_only() {
        for good in ["/", "/register", "/?q=a%20b&tag=x", "/agents/urn:air:a/"] {
            assert_eq!(safe_local_path(good), good);
        }
        for bad in [
            "",
            "https://evil.example/",
            "//evil.example/",
            "/\\evil.example/",
            "/.//evil.example/",
            "/a/..//evil.example/",
            "\\/evil.example",
            "/\t/evil.example",
            "/%\n",
            " /x",
            "javascript:alert(1)",
            "/sign-in?next=/",
            "/sign-out",
            "account",
            &format!("/{}", "a".repeat(MAX_NEXT_CHARS)),
        ] {
            assert_eq!(safe_local_path(bad), DEFAULT_PATH, "{bad:?}");
        }
    }

    #[test]
    fn nobody_signs_in_in_the_clear_but_on_this_machine() {
        let asked = |peer: &str, host: &str, origin: Option<&str>, public: &str| {
            let mut request = TestRequest::default()
                .peer_addr(format!("{peer}:1").parse().unwrap())
                .insert_header((HOST, host));
            if let Some(origin) = origin {
                request = request.insert_header((ORIGIN, origin));
            }
            let mut config = Config::default();
            config.server.public_url = public.to_owned();
            insecure_connection_reason(&request.to_http_request(), &config).is_none()
        };
        let safe = "https://registry.example";
        assert!(asked("127.0.0.1", "127.0.0.1:8080", None, ""));
        assert!(asked(
            "127.0.0.1",
            "localhost:8080",
            Some("http://localhost:8080"),
            ""
        ));
        assert!(asked("127.0.0.1", "registry.example", Some(safe), safe));
        assert!(asked("10.0.0.9", "registry.example", None, safe));
        assert!(asked("127.0.0.1", "[::1]:8080", None, safe));
        assert!(!asked("10.0.0.9", "127.0.0.1:8080", None, ""));
        assert!(!asked("127.0.0.1", "registry.example", None, ""));
        assert!(!asked(
            "127.0.0.1",
            "registry.example",
            None,
            "http://registry.example"
        ));
        assert!(!asked("10.0.0.9", "registry.example:8080", None, safe));
        assert!(!asked(
            "10.0.0.9",
            "registry.example",
            Some("http://registry.example"),
            safe
        ));
    }
}
