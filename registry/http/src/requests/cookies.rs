//! Cookies: the session cookie, the cookie that binds the sign-in form to a browser, and one for each attempt to sign
//! in with an identity provider.

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HeaderValue};

/// Cookie with the secret of a session.
pub const SESSION_COOKIE: &str = "__Host-a2a_session";
/// Cookie of the sign-in form, before there is a session.
pub const FORM_COOKIE: &str = "__Host-a2a_form";

/// Prefix of the cookies for attempts to sign in with an identity provider.
pub const ATTEMPT_COOKIE_PREFIX: &str = "__Host-a2a_attempt_";

const SECRET_CHARS: usize = 43;
/// Maximum number of attempt cookies read from one request. A browser has at most five from this registry, and other
/// hosts cannot add any.
const MAX_ATTEMPT_COOKIES: usize = 20;
/// Maximum number of characters of a cookie in browsers.
const MAX_COOKIE_CHARS: usize = 4096;

/// Cookie to set with the response. The middleware adds it to any response.
#[derive(Debug, Clone)]
pub struct NewCookie(pub HeaderValue);

/// Marks a response that depends on a session, which caches must not store.
#[derive(Debug, Clone, Copy)]
pub struct Uncacheable;

/// Value of a cookie of the request, if this registry can have set it. Of several cookies with the name the first one
/// counts; other hosts cannot set a cookie with this prefix.
pub fn secret_cookie(request: &HttpRequest, name: &str) -> Option<String> {
    let (_, value) = cookie_pairs(request).find(|(key, _)| *key == name)?;
    (value.len() == SECRET_CHARS && has_cookie_characters(value)).then(|| value.to_owned())
}

/// Names and values of the request's cookies that may be sign-in attempts.
pub fn sign_in_attempt_cookies(request: &HttpRequest) -> Vec<(String, String)> {
    let matching = cookie_pairs(request).filter(|(name, value)| {
        let id = name.strip_prefix(ATTEMPT_COOKIE_PREFIX);
        id.is_some_and(has_cookie_characters)
            && name.len() + value.len() <= MAX_COOKIE_CHARS
            && has_cookie_characters(value)
    });
    let matching = matching.map(|(name, value)| (name.to_owned(), value.to_owned()));
    matching.take(MAX_ATTEMPT_COOKIES).collect()
}

fn cookie_pairs(request: &HttpRequest) -> impl Iterator<Item = (&str, &str)> {
    let lines = request.headers().get_all(COOKIE);
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Whether a text has only the characters of this registry's cookie names and values.
fn has_cookie_characters(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// `Set-Cookie` header for a value that expires after `seconds`.
pub fn cookie_header_with_expiry(name: &str, value: &str, seconds: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!(
        "{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax"
    ))
    .ok()
}

/// `Set-Cookie` header for a secret that expires when the browser is closed.
pub fn set_cookie_header(name: &str, secret: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!(
        "{name}={secret}; Path=/; Secure; HttpOnly; SameSite=Lax"
    ))
    .ok()
}

/// `Set-Cookie` header that removes a cookie.
pub fn clear_cookie_header(name: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!(
        "{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
    ))
    .ok()
}

/// Whether a `Set-Cookie` header sets the session cookie.
pub fn is_session_cookie(line: &HeaderValue) -> bool {
    let value = line.as_bytes().strip_prefix(SESSION_COOKIE.as_bytes());
    value.is_some_and(|value| value.starts_with(b"="))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_what_can_be_a_secret_is_read() {
        let secret = "a".repeat(SECRET_CHARS);
        let of = |line: String| {
            let request = TestRequest::default().insert_header((COOKIE, line));
            secret_cookie(&request.to_http_request(), SESSION_COOKIE)
        };
        assert_eq!(
            of(format!("x=1; {SESSION_COOKIE}={secret}")),
            Some(secret.clone())
        );
        assert_eq!(of(format!("x{SESSION_COOKIE}={secret}")), None);
        assert_eq!(of(format!("{SESSION_COOKIE}={secret}b")), None);
        assert_eq!(of(format!("{SESSION_COOKIE}={}", "é".repeat(21))), None);
        assert_eq!(of(format!("{SESSION_COOKIE}=\"{secret}\"")), None);
        assert_eq!(of(String::new()), None);
    }

    #[test]
    fn a_bounded_number_of_attempts_is_read() {
        let of = |line: String| {
            let request = TestRequest::default().insert_header((COOKIE, line));
            sign_in_attempt_cookies(&request.to_http_request())
        };
        let known = of(format!(
            "{ATTEMPT_COOKIE_PREFIX}a=b-_; {ATTEMPT_COOKIE_PREFIX}c=d e; {ATTEMPT_COOKIE_PREFIX}f g=h; x=1; {ATTEMPT_COOKIE_PREFIX}i=j"
        ));
        let pair =
            |name: &str, value: &str| (format!("{ATTEMPT_COOKIE_PREFIX}{name}"), value.to_owned());
        assert_eq!(known, [pair("a", "b-_"), pair("i", "j")]);
        assert_eq!(
            of(format!(
                "{ATTEMPT_COOKIE_PREFIX}a={}",
                "b".repeat(MAX_COOKIE_CHARS)
            )),
            []
        );
        let many: Vec<String> = (0..=MAX_ATTEMPT_COOKIES)
            .map(|id| format!("{ATTEMPT_COOKIE_PREFIX}{id}=b"))
            .collect();
        assert_eq!(of(many.join("; ")).len(), MAX_ATTEMPT_COOKIES);
    }
}
