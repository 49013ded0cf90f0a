//! One request to the endpoint, with its result as an embedder reports it.

use std::sync::{Arc, Mutex, PoisonError};

use a2a_crawler::fetch::{
    Bearer, FetchError, Fetcher, HttpResponse, PostOptions, retry_after, visible,
};
use a2a_crawler::{AttemptOutcome, Clock};
use time::{Duration, OffsetDateTime};
use url::Url;

use super::wire;
use crate::EmbedError;

/// Most characters of the endpoint's own text that are passed on.
const SAID: usize = 200;
/// Most bytes read of a response that explains a failure.
const REASON_BYTES: usize = 16 * 1024;
/// Longest pause for a `Retry-After`: one wrong value must not disable the endpoint for days.
const MAX_REST: Duration = Duration::hours(1);

pub struct Service {
    /// The guard has admitted it.
    pub url: Url,
    pub model: String,
    pub shorten_to: Option<usize>,
    pub key: Option<Bearer>,
    pub clock: Arc<dyn Clock>,
    /// End of the pause that the endpoint has requested.
    pub rest: Mutex<Option<OffsetDateTime>>,
}

impl Service {
    /// The endpoint's host, by which errors name it: the rest of the URL may be secret.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The vectors of these texts, of unit length and in order: one request, or none during a requested pause.
    pub async fn ask(
        &self,
        fetcher: &Fetcher,
        texts: &[String],
        dimensions: Option<usize>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if let Some(left) = self.rest_left() {
            return Err(EmbedError::Away(format!(
                "{} accepts no requests for another {} s (Retry-After)",
                self.host(),
                left.as_seconds_f64().ceil()
            )));
        }
        let json =
            wire::question(&self.model, texts, self.shorten_to).map_err(EmbedError::Failed)?;
        let options = PostOptions {
            bearer: self.key.as_ref(),
            body: (texts.len() + 1) * wire::VECTOR_BYTES,
            reason: REASON_BYTES,
        };
        match fetcher.post_json(&self.url, json, &options).await.answer {
            Ok(answer) if answer.status == 200 => {
                wire::vectors(&answer.body, texts.len(), dimensions)
                    .map_err(|odd| EmbedError::Failed(self.named(&odd)))
            }
            Ok(answer) => Err(self.refusal(&answer)),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Rest of the pause that the endpoint requested. Setting back the clock does not make it longer.
    fn rest_left(&self) -> Option<Duration> {
        let until = *self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until? - self.clock.now();
        (left > Duration::ZERO && left <= MAX_REST).then_some(left)
    }

    fn refusal(&self, answer: &HttpResponse) -> EmbedError {
        let status = answer.status;
        let busy = matches!(status, 429 | 500..=599);
        let now = self.clock.now();
        let wait = retry_after(&answer.headers, now).filter(|_| busy);
        if let Some(seconds) = wait {
            let wait = Duration::seconds(seconds.into()).min(MAX_REST);
            *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(now + wait);
        }
        let said = match wire::complaint(&answer.body) {
            said if said.is_empty() => format!("it answered {status}"),
            said => format!("it answered {status}: {said}"),
        };
        match busy {
            true => EmbedError::Away(self.named(&said)),
            false => EmbedError::Failed(self.named(&said)),
        }
    }

    fn failure(&self, error: &FetchError) -> EmbedError {
        match error.outcome {
            AttemptOutcome::BadBody | AttemptOutcome::BadRedirect => {
                EmbedError::Failed(self.named(&error.detail))
            }
            AttemptOutcome::Refused => EmbedError::Away(self.named(&format!(
                "the guard settings in [embedding] do not allow it: {}",
                error.detail
            ))),
            _ => EmbedError::Away(self.named(&error.detail)),
        }
    }

    /// A message on one bounded line, with the endpoint's host and without the key, which the endpoint may quote.
    fn named(&self, told: &str) -> String {
        let told = match &self.key {
            Some(key) => key.hidden_in(told),
            None => told.to_owned(),
        };
        format!("{}: {}", self.host(), visible(&told, SAID))
    }
}
