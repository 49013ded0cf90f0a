//! Cookies: the one of a session, and the one that binds the form of signing in to a browser.

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HeaderValue};

/// The cookie with the secret of a session.
pub const SESSION: &str = "__Host-a2a_session";
/// The cookie that the form of signing in belongs to, before there is a session.
pub const BEFORE: &str = "__Host-a2a_form";

/// The characters of a secret.
const SECRET: usize = 43;

/// A cookie to set with the response. The envelope adds it, whoever makes the response.
#[derive(Debug, Clone)]
pub struct NewCookie(pub HeaderValue);

/// Marks a response that depends on a session: nothing may store it.
#[derive(Debug, Clone, Copy)]
pub struct Personal;

/// The value of a cookie of the request, if it can be one of ours. Of several with the name the first one counts; no other
/// host can set one with this prefix.
pub fn cookie(request: &HttpRequest, name: &str) -> Option<String> {
    let lines = request.headers().get_all(COOKIE);
    let mut pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let is_secret = value.len() == SECRET
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_secret.then(|| value.to_owned())
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
}
