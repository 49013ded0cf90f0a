//! Visitor of a page: signed in by a session cookie, or by a token as in the API, or anonymous.
//!
//! The API never reads the cookie, so that other sites cannot make a browser call it. A restricted page takes
//! [`PermittedVisitor`], and a form takes [`PermittedForm`](crate::requests::forms::PermittedForm).

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use a2a_registry_core::accounts::authentication::authenticate_session;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::dev::Payload;
use actix_web::http::header::{self, LOCATION};
use actix_web::http::{Method, StatusCode};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, ResponseError};
use data_encoding::BASE64URL_NOPAD;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use ring::hmac;

use crate::problems::problem::Problem;
use crate::requests::auth::{
    RequiredPermission, authenticate_request, bearer_token, with_client_network,
};
use crate::requests::cookies::{self, NewCookie, Uncacheable};
use crate::requests::refusal_recording::record_credential_refusal;
use crate::requests::request_span::record_caller;
use crate::requests::server_state::server_state;

/// Message whose HMAC with the secret of a session is the form token.
const FORM_TOKEN_MESSAGE: &[u8] = b"a2a-registry form";

/// Visitor of a page, signed in or not.
#[derive(Debug, Clone, Default)]
pub struct Visitor {
    pub caller: Caller,
    /// Token in the forms of the page; only a session has one.
    pub form_token: Option<String>,
}

/// Visitor of a page for accounts with a permission. Other visitors are redirected to the sign-in page.
#[derive(Debug, Clone)]
pub struct PermittedVisitor<P> {
    visitor: Visitor,
    pub(crate) context: Arc<AppContext>,
    permission: PhantomData<P>,
}

impl<P> Deref for PermittedVisitor<P> {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

#[derive(Debug)]
pub enum PageRejection {
    /// The visitor must sign in first; has the path to return to.
    SignIn(String),
    Problem(Problem),
}

/// Form token for the secret of a cookie. The secret cannot be computed from the token.
pub fn form_token(secret: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    BASE64URL_NOPAD.encode(hmac::sign(&key, FORM_TOKEN_MESSAGE).as_ref())
}

pub fn is_valid_form_token(secret: &str, token: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    BASE64URL_NOPAD
        .decode(token.as_bytes())
        .is_ok_and(|tag| hmac::verify(&key, FORM_TOKEN_MESSAGE, &tag).is_ok())
}

/// Visitor by the cookie of the request, if the session has not ended.
pub async fn session_visitor(request: &HttpRequest) -> Result<Option<Visitor>> {
    let Some(mut secret) = cookies::secret_cookie(request, cookies::SESSION_COOKIE) else {
        return Ok(None);
    };
    // Every result depends on the cookie.
    request.extensions_mut().insert(Uncacheable);
    let context = &server_state(request)?.context;
    // A submitted form has the token of the current secret, so only GET requests rotate it.
    let may_rotate = request.method() == Method::GET;
    let Some(session_caller) = authenticate_session(context, &secret, may_rotate).await? else {
        return Ok(None);
    };
    if let Some(new_secret) = session_caller.new_secret {
        if let Some(cookie) = cookies::set_cookie_header(cookies::SESSION_COOKIE, &new_secret) {
            request.extensions_mut().insert(NewCookie(cookie));
        }
        secret = new_secret;
    }
    Ok(Some(Visitor {
        caller: session_caller.caller,
        form_token: Some(form_token(&secret)),
    }))
}

/// Extracts the visitor of a request: by the token if there is one, otherwise by the cookie.
async fn extract_visitor(request: HttpRequest) -> Result<Visitor, Problem> {
    let visitor = if request.headers().contains_key(header::AUTHORIZATION) {
        let token = bearer_token(&request)
            .inspect_err(|problem| record_credential_refusal(&request, problem))?;
        let token = token.unwrap_or_default().to_owned();
        Visitor {
            caller: authenticate_request(&request, &token).await?,
            form_token: None,
        }
    } else {
        match session_visitor(&request).await? {
            Some(visitor) => visitor,
            None => Visitor {
                caller: with_client_network(&request, Caller::default())?,
                form_token: None,
            },
        }
    };
    record_caller(&request, &visitor.caller);
    // A later error page uses the visitor.
    request.extensions_mut().insert(visitor.clone());
    Ok(visitor)
}

impl FromRequest for Visitor {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        extract_visitor(request.clone()).boxed_local()
    }
}

impl<P: RequiredPermission> FromRequest for PermittedVisitor<P> {
    type Error = PageRejection;
    type Future = LocalBoxFuture<'static, Result<Self, PageRejection>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        async move {
            let current_path = request.uri().path_and_query().map(ToString::to_string);
            let context = server_state(&request).map(|state| Arc::clone(&state.context));
            let context = context.map_err(|error| PageRejection::Problem(error.into()))?;
            let visitor = extract_visitor(request)
                .await
                .map_err(PageRejection::Problem)?;
            if visitor.caller.account.is_none() {
                return Err(PageRejection::SignIn(current_path.unwrap_or_default()));
            }
            let permitted = visitor.caller.require_permission(P::PERMISSION);
            permitted.map_err(|error| PageRejection::Problem(error.into()))?;
            Ok(Self {
                visitor,
                context,
                permission: PhantomData,
            })
        }
        .boxed_local()
    }
}

impl PageRejection {
    /// Problem of the rejection; `None` if the visitor only needs to sign in.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::SignIn(_) => None,
            Self::Problem(problem) => Some(problem),
        }
    }
}

impl std::fmt::Display for PageRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SignIn(_) => f.write_str("sign in first"),
            Self::Problem(problem) => problem.fmt(f),
        }
    }
}

impl ResponseError for PageRejection {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignIn(_) => StatusCode::SEE_OTHER,
            Self::Problem(problem) => problem.status_code(),
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::SignIn(next) => {
                let query = serde_html_form::to_string([("next", next)]).unwrap_or_default();
                HttpResponse::SeeOther()
                    .insert_header((LOCATION, format!("/sign-in?{query}")))
                    .finish()
            }
            Self::Problem(problem) => problem.error_response(),
        }
    }
}
