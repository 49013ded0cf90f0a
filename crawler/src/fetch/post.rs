//! Sends JSON to a service that the operator has configured, and reads the response.

use std::fmt;

use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use url::Url;

use super::single_request::{BodyLimits, FetchProgress};
use super::{FetchError, FetchRecord, Fetcher, HttpResponse};
use crate::AttemptOutcome;

const JSON_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const PROTOBUF_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const BEARER_PREFIX: &str = "Bearer ";
/// Maximum length of a token in bytes, so that the request header fits the limits of usual servers.
const MAX_TOKEN_BYTES: usize = 4096;
const REDACTED: &str = "[key]";

/// A bearer token for a service (RFC 6750 section 2.1), hidden from `Debug` and the logs of the HTTP libraries.
#[derive(Clone)]
pub struct BearerToken(HeaderValue);

/// Error for a text that cannot be a token. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key is 1 to {} visible ASCII characters without spaces",
    MAX_TOKEN_BYTES
)]
pub struct InvalidToken;

impl BearerToken {
    /// Makes a token from the text issued by the service.
    pub fn new(token: &str) -> Result<Self, InvalidToken> {
        let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES || !visible {
            return Err(InvalidToken);
        }
        let mut value =
            HeaderValue::from_str(&format!("{BEARER_PREFIX}{token}")).map_err(|_| InvalidToken)?;
        // Prevents libraries from logging the token, and HTTP/2 from storing it in its compression table.
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(super) const fn header_value(&self) -> &HeaderValue {
        &self.0
    }

    pub(super) fn add_to(&self, request: RequestBuilder) -> RequestBuilder {
        request.header(AUTHORIZATION, &self.0)
    }

    /// Replaces the token in `text`: a service may quote its input, and its messages reach logs and people.
    pub fn redact_from_text(&self, text: &str) -> String {
        let token = self.0.to_str().ok();
        match token.and_then(|value| value.strip_prefix(BEARER_PREFIX)) {
            Some(token) => text.replace(token, REDACTED),
            None => text.to_owned(),
        }
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer([key])")
    }
}

/// Options of a request, apart from its body.
#[derive(Debug, Clone, Copy)]
pub struct PostOptions<'a> {
    /// Token sent as `Authorization: Bearer …`, to this URL only.
    pub bearer: Option<&'a BearerToken>,
    /// Maximum size of the body of a 200 in bytes, if lower than the fetcher's limit.
    pub max_body_bytes: usize,
    /// Maximum size in bytes of the body for other statuses, which explains the error; a longer one is dropped.
    pub max_error_bytes: usize,
}

impl Default for PostOptions<'_> {
    /// No token, the fetcher's limits, and no body for statuses other than 200.
    fn default() -> Self {
        Self {
            bearer: None,
            max_body_bytes: usize::MAX,
            max_error_bytes: 0,
        }
    }
}

impl Fetcher {
    /// Sends JSON to one URL and reads the response, within [`total`](super::FetchLimits::total) and
    /// [`request_body_bytes`](super::FetchLimits::request_body_bytes). A redirect is a failure, because the body and
    /// the token are for this URL only. A request is never repeated, so the service handles it at most once.
    pub async fn post_json(
        &self,
        url: &Url,
        json: Vec<u8>,
        options: &PostOptions<'_>,
    ) -> FetchRecord {
        let authorization = options.bearer.map(|BearerToken(value)| value);
        let body_limits = BodyLimits {
            success_bytes: options.max_body_bytes,
            error_bytes: options.max_error_bytes,
        };
        self.post_body(url, (JSON_MEDIA_TYPE, json), authorization, body_limits)
            .await
    }

    /// Sends a message of Protocol Buffers to one URL like [`Fetcher::post_json`], and asks for such a response.
    pub async fn post_protobuf(
        &self,
        url: &Url,
        message: Vec<u8>,
        max_body_bytes: usize,
    ) -> FetchRecord {
        let body_limits = BodyLimits {
            success_bytes: max_body_bytes,
            error_bytes: 0,
        };
        self.post_body(url, (PROTOBUF_MEDIA_TYPE, message), None, body_limits)
            .await
    }

    /// Sends a body with its media type to one URL, and reads the response: one in the same format for a message of
    /// Protocol Buffers, otherwise JSON.
    pub(super) async fn post_body(
        &self,
        url: &Url,
        body: (HeaderValue, Vec<u8>),
        authorization: Option<&HeaderValue>,
        body_limits: BodyLimits,
    ) -> FetchRecord {
        let start = self.new_fetch_start();
        let mut progress = FetchProgress::default();
        let fetch = self.send_post(url, body, authorization, body_limits, &mut progress);
        let result = self.run_with_total_timeout(&start, fetch).await;
        start.into_record(url, result, &progress)
    }

    async fn send_post(
        &self,
        url: &Url,
        (media_type, body): (HeaderValue, Vec<u8>),
        authorization: Option<&HeaderValue>,
        body_limits: BodyLimits,
        progress: &mut FetchProgress,
    ) -> Result<HttpResponse, FetchError> {
        let url = self.guard.check_parsed_url(url.clone())?;
        if body.len() > self.limits.request_body_bytes {
            return Err(FetchError::new(
                AttemptOutcome::Refused,
                &format!(
                    "the request body has {} bytes; at most {} are allowed",
                    body.len(),
                    self.limits.request_body_bytes
                ),
            ));
        }
        let over_tls = url.scheme() == "https";
        let accepted = match media_type == PROTOBUF_MEDIA_TYPE {
            true => PROTOBUF_MEDIA_TYPE,
            false => JSON_MEDIA_TYPE,
        };
        let mut request = self
            .client_for(&url)
            .post(url)
            .header(ACCEPT, accepted)
            .header(CONTENT_TYPE, media_type)
            .body(body);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let response = self.send_request(request, progress).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(FetchError::new(
                AttemptOutcome::BadRedirect,
                &format!(
                    "the server responded with status {}, a redirect, which is not followed here; configure the URL that it leads to",
                    status.as_u16()
                ),
            ));
        }
        self.read_response(response, body_limits, over_tls, progress)
            .await
    }
}

#[cfg(test)]
mod tests {
    //! Tests of a token's syntax, and that a token is never displayed.

    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_token_is_visible_ascii_within_bounds() {
        for token in ["x", "sk-proj_1.2~3+/==", &"x".repeat(MAX_TOKEN_BYTES)] {
            assert!(BearerToken::new(token).is_ok(), "{token}");
        }
        for token in [
            "",
            " ",
            "a b",
            "a\r\nx: y",
            "a\n",
            "\u{e4}",
            "a\0",
            &"x".repeat(MAX_TOKEN_BYTES + 1),
        ] {
            assert_eq!(
                BearerToken::new(token).unwrap_err(),
                InvalidToken,
                "{token:?}"
            );
        }
    }

    #[test]
    fn a_token_is_shown_by_nothing() {
        let bearer = BearerToken::new("hush-hush").unwrap();
        assert_eq!(bearer.0.to_str().unwrap(), "Bearer hush-hush");
        let options = PostOptions {
            bearer: Some(&bearer),
            ..PostOptions::default()
        };
        for shown in [
            format!("{bearer:?}"),
            format!("{options:?}"),
            format!("{:?}", bearer.0),
            bearer.redact_from_text("no hush-hush and hush-hush"),
        ] {
            assert!(!shown.contains("hush-hush"), "{shown}");
        }
        assert_eq!(
            bearer.redact_from_text("no hush-hush and hush"),
            "no [key] and hush"
        );
    }
}
