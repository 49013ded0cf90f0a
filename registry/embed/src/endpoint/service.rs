//! One question to the endpoint and what came of it, in the words of an embedder.

use std::sync::{Arc, Mutex, PoisonError};

use a2a_crawler::fetch::{
    Bearer, FetchError, Fetcher, HttpResponse, PostOptions, retry_after, visible,
};
use a2a_crawler::{AttemptOutcome, Clock};
use time::{Duration, OffsetDateTime};
use url::Url;

use super::wire;
use crate::EmbedError;

/// Most characters of the endpoint's own words that are passed on.
const SAID: usize = 200;
/// The most bytes that are read of an answer that says why there are no vectors.
const REASON_BYTES: usize = 16 * 1024;
/// The longest that the endpoint is left alone for one answer, whatever it asks for: one that is wrong about it once
/// is not lost for days.
const MAX_REST: Duration = Duration::hours(1);

/// Who is asked, and how.
pub struct Service {
    /// Where texts are posted to; the guard has passed it.
    pub url: Url,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// How many numbers it is asked to make vectors of.
    pub shorten_to: Option<usize>,
    /// What it knows the registry by.
    pub key: Option<Bearer>,
    /// What tells how long it is left alone.
    pub clock: Arc<dyn Clock>,
    /// Until when it has asked to be left alone.
    pub rest: Mutex<Option<OffsetDateTime>>,
}

impl Service {
    /// The endpoint's host, which is what it is called in errors: what else is in a URL may be somebody's secret.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The vectors of these texts, of unit length and in order. One request; none while the endpoint has asked to be
    /// left alone.
    ///
    /// # Errors
    /// [`EmbedError::Away`] where it cannot be reached, is overloaded or broken; [`EmbedError::Failed`] where it says
    /// no or answers something else than was asked for.
    pub async fn ask(
        &self,
        fetcher: &Fetcher,
        texts: &[String],
        dimensions: Option<usize>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if let Some(left) = self.rest_left() {
            return Err(EmbedError::Away(format!(
                "{} has asked to be left alone for {} s more",
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

    /// How much longer the endpoint is to be left alone. A clock that was set back does not make it longer.
    fn rest_left(&self) -> Option<Duration> {
        let until = *self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until? - self.clock.now();
        (left > Duration::ZERO && left <= MAX_REST).then_some(left)
    }

    /// What an answer without vectors means.
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

    /// What it means that there is no whole answer.
    fn failure(&self, error: &FetchError) -> EmbedError {
        match error.outcome {
            AttemptOutcome::BadBody | AttemptOutcome::BadRedirect => {
                EmbedError::Failed(self.named(&error.detail))
            }
            AttemptOutcome::Refused => EmbedError::Away(self.named(&format!(
                "by the lists of [embedding] it is not asked: {}",
                error.detail
            ))),
            _ => EmbedError::Away(self.named(&error.detail)),
        }
    }

    /// What is told of the endpoint: with its host, without the key where it quotes what it was sent, on one line
    /// within a bound.
    fn named(&self, told: &str) -> String {
        let told = match &self.key {
            Some(key) => key.hidden_in(told),
            None => told.to_owned(),
        };
        format!("{}: {}", self.host(), visible(&told, SAID))
    }
}
