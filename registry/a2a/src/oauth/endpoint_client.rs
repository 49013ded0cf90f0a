//! Requests to authorization servers: to one address each, bounded, without redirects.

use std::time::Duration;

use reqwest::header::{HeaderValue, LOCATION};
use reqwest::{Client, Request, redirect};
use url::Url;

use super::OauthError;
use crate::foreign_text::shorten_to_line;
use crate::http_session::{display_url, install_tls_provider, is_loopback, root_cause};

/// Maximum size of a response body, in bytes.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Longest time for one request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The address of an endpoint: https, or http on this machine; without a user and a fragment (RFC 6749 section 3.2).
pub fn parse_oauth_url(text: &str) -> Result<Url, OauthError> {
    let invalid_endpoint = || OauthError::NotAnEndpoint {
        url: shorten_to_line(text),
    };
    let url = Url::parse(text.trim()).map_err(|_| invalid_endpoint())?;
    let secure = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    match secure && bare && url.has_host() {
        true => Ok(url),
        false => Err(invalid_endpoint()),
    }
}

pub(super) struct OauthHttpResponse {
    /// The HTTP status, never that of a redirect.
    pub status: u16,
    pub content_type: Option<HeaderValue>,
    pub body: Vec<u8>,
}

pub(super) struct OauthHttpClient(Client);

impl OauthHttpClient {
    /// A client for the server at `url`; no proxy reaches one on this machine.
    pub fn for_url(url: &Url) -> Result<Self, OauthError> {
        install_tls_provider();
        let mut builder = Client::builder()
            .user_agent(concat!("a2a-registry/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT);
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| OauthError::Unreachable {
            url: display_url(url),
            reason: root_cause(&error),
        })?;
        Ok(Self(client))
    }

    /// Sends a GET request, without any credentials.
    pub async fn get(&self, url: &Url) -> Result<OauthHttpResponse, OauthError> {
        let request = self.0.get(url.clone()).header("accept", "application/json");
        let request = request
            .build()
            .map_err(|error| oauth_request_error(&error, url))?;
        self.send(request).await
    }

    /// Sends a request, and reads the whole response.
    pub async fn send(&self, request: Request) -> Result<OauthHttpResponse, OauthError> {
        let url = request.url().clone();
        let mut response = self
            .0
            .execute(request)
            .await
            .map_err(|error| oauth_request_error(&error, &url))?;
        if response.status().is_redirection() {
            let to = response.headers().get(LOCATION);
            let to = to.map_or_else(String::new, |to| {
                String::from_utf8_lossy(to.as_bytes()).into_owned()
            });
            return Err(OauthError::Redirected {
                url: display_url(&url),
                to: shorten_to_line(&to),
            });
        }
        let content_type = response.headers().get("content-type").cloned();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| oauth_request_error(&error, &url))?
        {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(OauthError::TooLarge {
                    url: display_url(&url),
                    limit: MAX_RESPONSE_BYTES,
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(OauthHttpResponse {
            status: response.status().as_u16(),
            content_type,
            body,
        })
    }
}

fn oauth_request_error(error: &reqwest::Error, url: &Url) -> OauthError {
    let url = display_url(url);
    match error.is_timeout() {
        true => OauthError::TimedOut {
            url,
            limit: REQUEST_TIMEOUT,
        },
        false => OauthError::Unreachable {
            url,
            reason: root_cause(error),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn endpoints_are_https_or_on_this_machine() {
        for good in [
            "https://login.example/token",
            "https://login.example:8443/token?tenant=a",
            "http://127.0.0.1:9/token",
            "http://localhost/token",
            "http://[::1]:9/token",
        ] {
            assert_eq!(parse_oauth_url(good).unwrap().as_str(), good);
        }
        for bad in [
            "http://login.example/token",
            "http://127.0.0.1.evil.example/token",
            "https://user:secret@login.example/token",
            "https://login.example/token#f",
            "ftp://127.0.0.1/token",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "/token",
            "",
        ] {
            let error = parse_oauth_url(bad).unwrap_err();
            assert!(matches!(error, OauthError::NotAnEndpoint { .. }), "{bad}");
        }
    }
}
