//! Requests to the endpoint, with their results as an embedder reports them.

use std::sync::{Arc, Mutex, PoisonError};

use a2a_crawler::fetch::{
    BearerToken, FetchError, Fetcher, HttpResponse, PostOptions, parse_retry_after,
};
use a2a_crawler::foreign_text::escape_invisible;
use a2a_crawler::{AttemptOutcome, Clock};
use time::{Duration, OffsetDateTime};
use url::Url;

use super::wire;
use crate::EmbedError;

/// Maximum number of characters of the endpoint's own text that are passed on.
const MAX_MESSAGE_CHARS: usize = 200;
/// Maximum number of bytes read from an error response.
const MAX_ERROR_BODY_BYTES: usize = 16 * 1024;
/// The longest pause for a `Retry-After`: one wrong value must not disable the endpoint for days.
const MAX_PAUSE: Duration = Duration::hours(1);

pub struct EndpointService {
    /// URL that the guard has allowed.
    pub url: Url,
    pub model: String,
    pub requested_dimensions: Option<usize>,
    pub api_key: Option<BearerToken>,
    pub clock: Arc<dyn Clock>,
    /// End of the pause requested by the endpoint.
    pub paused_until: Mutex<Option<OffsetDateTime>>,
}

impl EndpointService {
    /// The endpoint's host, which errors show: the rest of the URL may be secret.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Encodes these texts in order, as vectors of unit length: with one request, or none during a requested pause.
    pub async fn embed(
        &self,
        fetcher: &Fetcher,
        texts: &[String],
        dimensions: Option<usize>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if let Some(remaining_pause) = self.remaining_pause() {
            return Err(EmbedError::Unavailable(format!(
                "{} accepts no requests for {} more s (Retry-After)",
                self.host(),
                remaining_pause.as_seconds_f64().ceil()
            )));
        }
        let json = wire::embedding_request_body(&self.model, texts, self.requested_dimensions)
            .map_err(EmbedError::Failed)?;
        let options = PostOptions {
            bearer: self.api_key.as_ref(),
            max_body_bytes: (texts.len() + 1) * wire::MAX_VECTOR_BYTES,
            max_error_bytes: MAX_ERROR_BODY_BYTES,
        };
        match fetcher.post_json(&self.url, json, &options).await.result {
            Ok(response) if response.status == 200 => {
                wire::parse_vectors(&response.body, texts.len(), dimensions)
                    .map_err(|problem| EmbedError::Failed(self.format_error_message(&problem)))
            }
            Ok(response) => Err(self.handle_failure_status(&response)),
            Err(error) => Err(self.convert_fetch_error(&error)),
        }
    }

    /// The rest of the pause requested by the endpoint. Setting back the clock does not make it longer.
    fn remaining_pause(&self) -> Option<Duration> {
        let until = *self
            .paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let remaining = until? - self.clock.now();
        (remaining > Duration::ZERO && remaining <= MAX_PAUSE).then_some(remaining)
    }

    fn handle_failure_status(&self, response: &HttpResponse) -> EmbedError {
        let status = response.status;
        let is_overloaded = matches!(status, 429 | 500..=599);
        let now = self.clock.now();
        let wait = parse_retry_after(&response.headers, now).filter(|_| is_overloaded);
        if let Some(seconds) = wait {
            let wait = Duration::seconds(seconds.into()).min(MAX_PAUSE);
            *self
                .paused_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(now + wait);
        }
        let message = match wire::parse_error_message(&response.body) {
            message if message.is_empty() => format!("it answered {status}"),
            message => format!("it answered {status}: {message}"),
        };
        match is_overloaded {
            true => EmbedError::Unavailable(self.format_error_message(&message)),
            false => EmbedError::Failed(self.format_error_message(&message)),
        }
    }

    fn convert_fetch_error(&self, error: &FetchError) -> EmbedError {
        match error.outcome {
            AttemptOutcome::BadBody | AttemptOutcome::BadRedirect => {
                EmbedError::Failed(self.format_error_message(&error.detail))
            }
            AttemptOutcome::Refused => {
                EmbedError::Unavailable(self.format_error_message(&format!(
                    "the guard settings in [embedding] do not allow it: {}",
                    error.detail
                )))
            }
            _ => EmbedError::Unavailable(self.format_error_message(&error.detail)),
        }
    }

    /// A message on one line of bounded length, with the endpoint's host and without the key, which the endpoint may
    /// quote.
    fn format_error_message(&self, message: &str) -> String {
        let message = match &self.api_key {
            Some(key) => key.redact_from_text(message),
            None => message.to_owned(),
        };
        format!(
            "{}: {}",
            self.host(),
            escape_invisible(&message, MAX_MESSAGE_CHARS)
        )
    }
}
