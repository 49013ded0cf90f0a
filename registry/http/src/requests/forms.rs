//! Forms of pages. A handler gets form fields only through [`PermittedForm`], [`SessionForm`] or [`AnonymousForm`],
//! which check that a page of this registry has sent the form: by the origin that the browser sends, and by a form
//! token that belongs to the browser's cookie.

use std::marker::PhantomData;
use std::sync::Arc;

use a2a_registry_core::context::AppContext;
use a2a_registry_domain::role::Permission;
use actix_web::dev::Payload;
use actix_web::http::header::{HOST, HeaderMap, ORIGIN};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::problems::problem::Problem;
use crate::problems::problem_kinds::{self, ProblemKind};
use crate::requests::auth::RequiredPermission;
use crate::requests::body::PendingBody;
use crate::requests::cookies;
use crate::requests::request_span::record_caller;
use crate::requests::server_state::server_state;
use crate::requests::visitor::{Visitor, is_valid_form_token, session_visitor};

pub trait FormFields: DeserializeOwned + 'static {
    /// Maximum number of bytes of the form.
    const MAX_BYTES: usize = 16 * 1024;
}

/// Form of an account with a permission, sent from a page of this registry.
#[derive(Debug)]
pub struct PermittedForm<P, T> {
    pub visitor: Visitor,
    pub fields: T,
    pub(crate) context: Arc<AppContext>,
    permission: PhantomData<P>,
}

/// Form of a signed-in visitor, regardless of the account's permissions.
#[derive(Debug)]
pub struct SessionForm<T> {
    pub visitor: Visitor,
    pub fields: T,
}

/// Form of a visitor who is not signed in, bound to the browser by a separate cookie.
#[derive(Debug)]
pub struct AnonymousForm<T>(pub T);

#[derive(Deserialize, Default)]
#[serde(default)]
struct FormToken {
    form_token: String,
}

const WRONG_SESSION_MESSAGE: &str =
    "This form belongs to another session. Go back, reload the page and submit the form again.";

impl<T: FormFields> FromRequest for SessionForm<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, body) = (request.clone(), PendingBody::from_payload(request, payload));
        read_session_form(request, body, None).boxed_local()
    }
}

impl<P: RequiredPermission, T: FormFields> FromRequest for PermittedForm<P, T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, body) = (request.clone(), PendingBody::from_payload(request, payload));
        async move {
            let context = Arc::clone(&server_state(&request)?.context);
            let SessionForm { visitor, fields } =
                read_session_form(request, body, Some(P::PERMISSION)).await?;
            Ok(Self {
                visitor,
                fields,
                context,
                permission: PhantomData,
            })
        }
        .boxed_local()
    }
}

impl<T: FormFields> FromRequest for AnonymousForm<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, body) = (request.clone(), PendingBody::from_payload(request, payload));
        async move {
            let bytes = read_form_bytes(&request, body, T::MAX_BYTES).await?;
            let secret = cookies::secret_cookie(&request, cookies::FORM_COOKIE);
            let token: FormToken = parse_form_fields(&bytes)?;
            match secret {
                Some(secret) if is_valid_form_token(&secret, &token.form_token) => {
                    parse_form_fields(&bytes).map(Self)
                }
                _ => reject_form(
                    &problem_kinds::FORM_REFUSED,
                    "The form has expired, or the browser does not accept cookies. Reload the page and submit the \
                     form again.",
                ),
            }
        }
        .boxed_local()
    }
}

/// Reads a form of the request's session. The body is not read if the visitor is signed out or lacks the permission.
async fn read_session_form<T: FormFields>(
    request: HttpRequest,
    body: PendingBody,
    permission: Option<Permission>,
) -> Result<SessionForm<T>, Problem> {
    require_same_site(&request)?;
    authenticate_form_sender(&request, permission).await?;
    let bytes = read_form_bytes(&request, body, T::MAX_BYTES).await?;
    // Authenticate again, because a client can delay the body: a form of a visitor who is signed out by then is
    // rejected.
    let visitor = authenticate_form_sender(&request, permission).await?;
    reject_nul(&bytes)?;
    let token: FormToken = parse_form_fields(&bytes)?;
    let secret = cookies::secret_cookie(&request, cookies::SESSION_COOKIE).unwrap_or_default();
    if !is_valid_form_token(&secret, &token.form_token) {
        return reject_form(&problem_kinds::FORM_REFUSED, WRONG_SESSION_MESSAGE);
    }
    Ok(SessionForm {
        visitor,
        fields: parse_form_fields(&bytes)?,
    })
}

/// Authenticates the sender of a form and checks the permission.
async fn authenticate_form_sender(
    request: &HttpRequest,
    permission: Option<Permission>,
) -> Result<Visitor, Problem> {
    let Some(visitor) = session_visitor(request).await? else {
        return reject_form(
            &problem_kinds::UNAUTHENTICATED,
            "You are signed out. Sign in, and submit the form again.",
        );
    };
    record_caller(request, &visitor.caller);
    request.extensions_mut().insert(visitor.clone());
    if let Some(permission) = permission {
        visitor.caller.require_permission(permission)?;
    }
    Ok(visitor)
}

fn reject_form<T>(kind: &'static ProblemKind, text: &str) -> Result<T, Problem> {
    Err(Problem::new(kind, text))
}

fn parse_form_fields<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_html_form::from_bytes(bytes).or_else(|_| {
        reject_form(
            &problem_kinds::INVALID_REQUEST,
            "The form cannot be parsed.",
        )
    })
}

/// Reads the fields of a form that has its own credentials or needs none, of at most `limit` bytes, sent from a page
/// of this registry.
pub(crate) async fn read_form<T: DeserializeOwned>(
    request: &HttpRequest,
    body: PendingBody,
    limit: usize,
) -> Result<T, Problem> {
    parse_form_fields(&read_form_bytes(request, body, limit).await?)
}

/// Rejects U+0000, which not every database can store.
fn reject_nul(bytes: &[u8]) -> Result<(), Problem> {
    if bytes.contains(&0) || bytes.windows(3).any(|part| part == b"%00") {
        return reject_form(
            &problem_kinds::INVALID_REQUEST,
            "The form must not contain U+0000.",
        );
    }
    Ok(())
}

/// Rejects a form that was not sent from a page of this registry.
fn require_same_site(request: &HttpRequest) -> Result<(), Problem> {
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let public_url = server_state(request)?.context.config().public_url();
    if !is_same_site(request.headers(), authority, &public_url) {
        return reject_form(
            &problem_kinds::FORM_REFUSED,
            "This form was sent from another site. Submit it again from this registry.",
        );
    }
    Ok(())
}

async fn read_form_bytes(
    request: &HttpRequest,
    body: PendingBody,
    limit: usize,
) -> Result<bytes::BytesMut, Problem> {
    require_same_site(request)?;
    let bytes = body.read_and_reauthenticate(limit).await?;
    if request.content_type() != "application/x-www-form-urlencoded" {
        return reject_form(
            &problem_kinds::WRONG_MEDIA_TYPE,
            "This path accepts only a form.",
        );
    }
    Ok(bytes)
}

/// Whether a page of this registry sent the request, based on the browser's headers. A client without these headers is
/// not a browser, and acts only for itself.
///
/// This registry is the host that the request was sent to (`authority` with HTTP/2, otherwise `Host`), and the host of
/// `public_url`, for a registry behind a proxy.
fn is_same_site(headers: &HeaderMap, authority: Option<&str>, public_url: &str) -> bool {
    let header_text = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    if let Some(site) = header_text("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = header_text(ORIGIN.as_str()) else {
        return true;
    };
    let Ok(origin) = Url::parse(origin) else {
        return false;
    };
    let matches_public_url =
        Url::parse(public_url).is_ok_and(|ours| ours.origin() == origin.origin());
    let matches_request_host = authority
        .or_else(|| header_text(HOST.as_str()))
        .is_some_and(|host| {
            Url::parse(&format!("{}://{host}", origin.scheme()))
                .is_ok_and(|ours| ours.has_host() && ours.origin() == origin.origin())
        });
    matches_public_url || matches_request_host
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
                is_same_site(&headers(good), None, "https://public.example"),
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
                !is_same_site(&headers(bad), None, "https://public.example"),
                "{bad:?}"
            );
        }
    }
}
