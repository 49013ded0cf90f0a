//! Signing in to the pages with a token, and signing out.

use std::net::{IpAddr, Ipv4Addr};

use a2a_registry_core::accounts::authentication::{authenticate, session_secret};
use a2a_registry_core::config::Config;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, RefusalReason};
use a2a_registry_core::text;
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, ORIGIN, SET_COOKIE};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;
use url::{Host, Url};

use crate::answers::answer::Answer;
use crate::pages::frame::Frame;
use crate::pages::page;
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::cookies::{self, Personal};
use crate::requests::forms::{FormFields, OpenForm, SessionForm};
use crate::requests::refusals::record_refusal;
use crate::requests::state::State;
use crate::requests::visitor::{Visitor, by_session, form_token};
use crate::sessions::{SessionClient, session_begin, session_end};

/// Where a visitor goes after signing in without a path to return to.
const HOME: &str = "/account";
/// Characters of the path to return to.
const NEXT: usize = 2_000;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    form_token: String,
    next: String,
    problem: Option<String>,
    /// The name and the title of each identity provider.
    providers: Vec<(String, String)>,
    refused: Option<String>,
}

/// The fields of the form. They are never logged, because they include a token.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SignInForm {
    token: String,
    next: String,
}

impl FormFields for SignInForm {}

/// The form of signing out, which says nothing.
#[derive(Deserialize)]
pub(crate) struct SignOutForm {}

impl FormFields for SignOutForm {}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Next {
    next: String,
}

pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: Visitor,
    request: HttpRequest,
) -> HttpResponse {
    let asked: Next = serde_html_form::from_str(request.query_string()).unwrap_or_default();
    let said = SignInProblem {
        next: &asked.next,
        problem: None,
    };
    form(&context, &request, &visitor, &said, StatusCode::OK)
}

/// The path that the visitor wants, and the error on the way.
pub(super) struct SignInProblem<'a> {
    pub next: &'a str,
    pub problem: Option<&'a Problem>,
}

/// The page with the forms, bound to the browser by a cookie.
pub(super) fn form(
    context: &Context,
    request: &HttpRequest,
    visitor: &Visitor,
    said: &SignInProblem<'_>,
    status: StatusCode,
) -> HttpResponse {
    request.extensions_mut().insert(Personal);
    let known = cookies::cookie(request, cookies::BEFORE);
    let secret = known.unwrap_or_else(|| session_secret(context));
    let template = SignInPage {
        frame: Frame::of(context.config(), "sign-in", visitor),
        form_token: form_token(&secret),
        next: local(said.next),
        problem: said
            .problem
            .map(|problem| text::line(&problem.to_string(), text::BLOCK)),
        providers: context
            .providers
            .for_people()
            .map(|one| (one.name().to_owned(), text::line(one.title(), text::LINE)))
            .collect(),
        refused: refusal(request, context.config()),
    };
    let mut response = page(status, &template);
    if let Some(cookie) = cookies::set(cookies::BEFORE, &secret) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

pub(crate) async fn submit(
    state: web::Data<State>,
    request: HttpRequest,
    form: OpenForm<SignInForm>,
) -> HttpResponse {
    match sign_in(&state, &request, &form.0).await {
        Ok(secret) => {
            let next = local(&form.0.next);
            let mut response = crate::pages::see_other(&next);
            let set = cookies::set(cookies::SESSION, &secret);
            for cookie in set.into_iter().chain(cookies::clear(cookies::BEFORE)) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) => {
            crate::pages::log(&problem);
            record_refusal(&request, &problem);
            let status = problem.kind().status;
            let said = SignInProblem {
                next: &form.0.next,
                problem: Some(&problem),
            };
            let nobody = Visitor::default();
            self::form(&state.context, &request, &nobody, &said, status)
        }
    }
}

async fn sign_in(
    state: &State,
    request: &HttpRequest,
    form: &SignInForm,
) -> Result<String, Problem> {
    let context = &state.context;
    refuse_connection(request, context.config())?;
    let client = SessionClient::of(request, context);
    if let Some(address) = client.address {
        state.sign_ins.admit_address(address)?;
    }
    let caller = authenticate(context, form.token.trim()).await?;
    state.sign_ins.admit_account(caller.account()?.id)?;
    let before = by_session(request).await?;
    let secret = session_begin(context, &caller, &client).await?;
    if let Some(before) = before {
        session_end(context, &before.caller).await?;
    }
    Ok(secret)
}

pub(crate) async fn sign_out(
    context: web::Data<Context>,
    form: SessionForm<SignOutForm>,
) -> Answer {
    session_end(&context, &form.visitor.caller).await?;
    let mut response = crate::pages::see_other("/");
    if let Some(cookie) = cookies::clear(cookies::SESSION) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The path of this registry in a text, else the account page: never another site, and never this form again.
pub(crate) fn local(next: &str) -> String {
    let base = Url::parse("http://registry.invalid/").ok();
    let joined = base.as_ref().and_then(|base| base.join(next).ok());
    let is_local = next.starts_with('/')
        && next.len() <= NEXT
        && next.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    match (base, joined) {
        (Some(base), Some(url)) if is_local && url.origin() == base.origin() => {
            let path = &url[url::Position::BeforePath..];
            let is_form = path.starts_with("/sign-");
            // A path that begins with two slashes is the address of another host.
            if is_form || path.starts_with("//") {
                HOME.to_owned()
            } else {
                path.to_owned()
            }
        }
        _ => HOME.to_owned(),
    }
}

/// Why nobody may sign in over the connection of this request: a token and a cookie would travel in the clear.
///
/// With HTTPS nobody is refused, whether it is served here or by a proxy in front at the address of `public_url`;
/// without it only clients on this machine that use a loopback address are accepted.
fn refusal(request: &HttpRequest, config: &Config) -> Option<String> {
    if config.server.tls_cert.is_some() {
        return None;
    }
    let read = |name| {
        let value = request.headers().get(name);
        value.and_then(|value| value.to_str().ok())
    };
    let called = read(HOST).and_then(|host| Url::parse(&format!("http://{host}")).ok());
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
    let is_near =
        peer.is_some_and(|peer| peer.is_loopback()) && called.as_ref().is_some_and(is_loopback);
    let public = Url::parse(&config.public_url()).ok();
    let public = public.filter(|url| url.scheme() == "https");
    let by_proxy = public.as_ref().is_some_and(|public| {
        let same_host = called.as_ref().is_some_and(|called| {
            called.host_str() == public.host_str() && called.port() == public.port()
        });
        same_host && read(ORIGIN).is_none_or(|origin| origin.starts_with("https://"))
    });
    if is_near || by_proxy {
        return None;
    }
    Some(match public {
        Some(public) => format!(
            "Nobody can sign in over plain HTTP: the token could be read on the way. Go to {public}sign-in, the address in \
             server.public_url. A proxy there has to pass its host on in `Host`."
        ),
        None => "Nobody can sign in over plain HTTP: the token could be read on the way. The operator has to serve this \
                 registry over HTTPS (server.tls_cert), or behind a proxy that does, whose https address is \
                 server.public_url."
            .to_owned(),
    })
}

pub(super) fn refuse_connection(request: &HttpRequest, config: &Config) -> Result<(), Problem> {
    match refusal(request, config) {
        Some(reason) => Err(Problem::new(&problem_kinds::SIGN_IN_REFUSED, reason)
            .refused(RefusalReason::Connection)),
        None => Ok(()),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => {
            address.is_loopback() || address.to_ipv4_mapped() == Some(Ipv4Addr::LOCALHOST)
        }
        None => false,
    }
}

pub(crate) fn signed_out() -> Problem {
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
            assert_eq!(local(good), good);
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
            &format!("/{}", "a".repeat(NEXT)),
        ] {
            assert_eq!(local(bad), HOME, "{bad:?}");
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
            refusal(&request.to_http_request(), &config).is_none()
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
