//! Sending JSON to a service that the operator has chosen, and reading what it answers.

use std::fmt;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use url::Url;

use super::exchange::{BodyLimits, Trail};
use super::{FetchError, Fetched, Fetcher, HttpResponse};
use crate::AttemptOutcome;

/// What both sides speak.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What comes before the token in its header field.
const SCHEME: &str = "Bearer ";
/// The longest token, in bytes: with it the head of a request fits into what servers read.
const MAX_TOKEN: usize = 4096;
/// What stands where a token stood.
const HIDDEN: &str = "[key]";

/// A token that a service knows the registry by (RFC 6750 section 2.1). It cannot be shown: neither by `Debug`, nor by
/// what the HTTP libraries log of a request.
#[derive(Clone)]
pub struct Bearer(HeaderValue);

/// A token that cannot stand in a header. What it is, is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is 1 to {} visible ASCII characters without spaces", MAX_TOKEN)]
pub struct NotAToken;

impl Bearer {
    /// Takes a token as the service has given it out.
    ///
    /// # Errors
    /// Where it is empty, longer than 4 096 bytes, or holds anything but visible ASCII.
    pub fn new(token: &str) -> Result<Self, NotAToken> {
        let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.is_empty() || token.len() > MAX_TOKEN || !visible {
            return Err(NotAToken);
        }
        let mut value =
            HeaderValue::from_str(&format!("{SCHEME}{token}")).map_err(|_| NotAToken)?;
        // So that no library writes it into a log, and HTTP/2 keeps it in no table.
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// `text` without the token: a service may quote what it was sent, and its words are for logs and people.
    pub fn hidden_in(&self, text: &str) -> String {
        let token = self.0.to_str().ok();
        match token.and_then(|value| value.strip_prefix(SCHEME)) {
            Some(token) => text.replace(token, HIDDEN),
            None => text.to_owned(),
        }
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer([key])")
    }
}

/// What to send beside the body, and how much to take.
#[derive(Debug, Clone, Copy)]
pub struct PostOptions<'a> {
    /// Sent as `Authorization: Bearer …` to the URL asked, and nowhere else.
    pub bearer: Option<&'a Bearer>,
    /// Fewer bytes of a 200's body than the limits allow.
    pub body: usize,
    /// Most bytes of body that are read of an answer other than 200, which says why; a longer one counts as none.
    pub reason: usize,
}

impl Default for PostOptions<'_> {
    /// No token, within the fetcher's limits, and of other answers than 200 the head alone.
    fn default() -> Self {
        Self {
            bearer: None,
            body: usize::MAX,
            reason: 0,
        }
    }
}

impl Fetcher {
    /// Sends JSON to one URL, and takes what it answers. Never takes longer than [`total`](super::FetchLimits::total)
    /// and sends no more than [`sent`](super::FetchLimits::sent). A redirect is a failure: what is sent, and the token
    /// above all, is for the URL that was named.
    ///
    /// Nothing is sent a second time, so what the service does for a request it does at most once.
    pub async fn post_json(&self, url: &Url, json: Vec<u8>, options: &PostOptions<'_>) -> Fetched {
        let begun = self.begin();
        let mut trail = Trail::default();
        let posted = self.post(url, json, options, &mut trail);
        let answer = self.in_time(&begun, posted).await;
        begun.end(url, answer, &trail)
    }

    async fn post(
        &self,
        url: &Url,
        json: Vec<u8>,
        options: &PostOptions<'_>,
        trail: &mut Trail,
    ) -> Result<HttpResponse, FetchError> {
        let url = self.guard.check_parsed(url.clone())?;
        if json.len() > self.limits.sent {
            return Err(FetchError::new(
                AttemptOutcome::Refused,
                &format!(
                    "what is to be sent has {} bytes, more than {}",
                    json.len(),
                    self.limits.sent
                ),
            ));
        }
        let tls = url.scheme() == "https";
        let mut request = self
            .client
            .post(url)
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, JSON)
            .body(json);
        if let Some(Bearer(value)) = options.bearer {
            request = request.header(AUTHORIZATION, value);
        }
        let response = self.send(request, trail).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(FetchError::new(
                AttemptOutcome::BadRedirect,
                &format!(
                    "the server answered {}, a redirect, which is not followed here; name the URL that it leads to",
                    status.as_u16()
                ),
            ));
        }
        let most = BodyLimits {
            body: options.body,
            reason: options.reason,
        };
        self.answer(response, most, tls, trail).await
    }
}

#[cfg(test)]
mod tests {
    //! What a token may be, and that it is shown by nothing.

    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_token_is_visible_ascii_within_bounds() {
        for token in ["x", "sk-proj_1.2~3+/==", &"x".repeat(MAX_TOKEN)] {
            assert!(Bearer::new(token).is_ok(), "{token}");
        }
        for token in [
            "",
            " ",
            "a b",
            "a\r\nx: y",
            "a\n",
            "\u{e4}",
            "a\0",
            &"x".repeat(MAX_TOKEN + 1),
        ] {
            assert_eq!(Bearer::new(token).unwrap_err(), NotAToken, "{token:?}");
        }
    }

    #[test]
    fn a_token_is_shown_by_nothing() {
        let bearer = Bearer::new("hush-hush").unwrap();
        assert_eq!(bearer.0.to_str().unwrap(), "Bearer hush-hush");
        let options = PostOptions {
            bearer: Some(&bearer),
            ..PostOptions::default()
        };
        for shown in [
            format!("{bearer:?}"),
            format!("{options:?}"),
            format!("{:?}", bearer.0),
            bearer.hidden_in("no hush-hush and hush-hush"),
        ] {
            assert!(!shown.contains("hush-hush"), "{shown}");
        }
        assert_eq!(
            bearer.hidden_in("no hush-hush and hush"),
            "no [key] and hush"
        );
    }
}
