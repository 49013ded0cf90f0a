//! Cookies: that of a session, that which binds the sign-in form to a browser, and one for each attempt to sign in with
//! an identity provider.

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HeaderValue};

/// The cookie with the secret of a session.
pub const SESSION: &str = "__Host-a2a_session";
/// The cookie of the sign-in form, before there is a session.
pub const BEFORE: &str = "__Host-a2a_form";

/// The prefix of the cookies that hold attempts to sign in with an identity provider.
pub const ATTEMPT: &str = "__Host-a2a_attempt_";

const SECRET: usize = 43;
/// Cookies with attempts that are read of one request. A browser has five of ours; no other host can add to them.
const MAX_ATTEMPTS: usize = 20;
/// Maximum number of characters of a cookie in browsers.
const MAX_VALUE: usize = 4096;

/// A cookie to set with the response. The envelope adds it to any response.
#[derive(Debug, Clone)]
pub struct NewCookie(pub HeaderValue);

/// Marks a response that depends on a session, which nothing may store.
#[derive(Debug, Clone, Copy)]
pub struct Personal;

/// The value of a cookie of the request, if it can be one of ours. Of several with the name the first one counts; no
/// other host can set one with this prefix.
pub fn cookie(request: &HttpRequest, name: &str) -> Option<String> {
    let (_, value) = pairs(request).find(|(key, _)| *key == name)?;
    (value.len() == SECRET && is_plain(value)).then(|| value.to_owned())
}

/// The names and values of the cookies of the request that can hold attempts to sign in.
pub fn attempts(request: &HttpRequest) -> Vec<(String, String)> {
    let named = pairs(request).filter(|(name, value)| {
        let id = name.strip_prefix(ATTEMPT);
        id.is_some_and(is_plain) && name.len() + value.len() <= MAX_VALUE && is_plain(value)
    });
    let named = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
    named.take(MAX_ATTEMPTS).collect()
}

fn pairs(request: &HttpRequest) -> impl Iterator<Item = (&str, &str)> {
    let lines = request.headers().get_all(COOKIE);
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Whether a text has only the characters that our names and values consist of.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// `Set-Cookie` of a value that ends after `seconds`.
pub fn set_for(name: &str, value: &str, seconds: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!(
        "{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax"
    ))
    .ok()
}

/// `Set-Cookie` of a secret, which ends with the browser.
pub fn set(name: &str, secret: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!(
        "{name}={secret}; Path=/; Secure; HttpOnly; SameSite=Lax"
    ))
    .ok()
}

/// `Set-Cookie` that removes one.
pub fn clear(name: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!(
        "{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
    ))
    .ok()
}

/// Whether a `Set-Cookie` is of the session.
pub fn is_session(line: &HeaderValue) -> bool {
    let value = line.as_bytes().strip_prefix(SESSION.as_bytes());
    value.is_some_and(|value| value.starts_with(b"="))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_what_can_be_a_secret_is_read() {
        let secret = "a".repeat(SECRET);
        let of = |line: String| {
            let request = TestRequest::default().insert_header((COOKIE, line));
            cookie(&request.to_http_request(), SESSION)
        };
        assert_eq!(of(format!("x=1; {SESSION}={secret}")), Some(secret.clone()));
        assert_eq!(of(format!("x{SESSION}={secret}")), None);
        assert_eq!(of(format!("{SESSION}={secret}b")), None);
        assert_eq!(of(format!("{SESSION}={}", "é".repeat(21))), None);
        assert_eq!(of(format!("{SESSION}=\"{secret}\"")), None);
        assert_eq!(of(String::new()), None);
    }

    #[test]
    fn a_bounded_number_of_attempts_is_read() {
        let of = |line: String| {
            let request = TestRequest::default().insert_header((COOKIE, line));
            attempts(&request.to_http_request())
        };
        let known = of(format!(
            "{ATTEMPT}a=b-_; {ATTEMPT}c=d e; {ATTEMPT}f g=h; x=1; {ATTEMPT}i=j"
        ));
        let pair = |name: &str, value: &str| (format!("{ATTEMPT}{name}"), value.to_owned());
        assert_eq!(known, [pair("a", "b-_"), pair("i", "j")]);
        assert_eq!(of(format!("{ATTEMPT}a={}", "b".repeat(MAX_VALUE))), []);
        let many: Vec<String> = (0..=MAX_ATTEMPTS)
            .map(|id| format!("{ATTEMPT}{id}=b"))
            .collect();
        assert_eq!(of(many.join("; ")).len(), MAX_ATTEMPTS);
    }
}
