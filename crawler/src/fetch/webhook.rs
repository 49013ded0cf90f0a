//! Sends a message to a webhook, whose URL an account has chosen.

use reqwest::header::CONTENT_TYPE;
use url::Url;

use super::single_request::{BodyLimits, FetchProgress};
use super::{FetchError, FetchRecord, Fetcher, HttpResponse};
use crate::AttemptOutcome;

/// A message to a webhook.
#[derive(Debug, Clone)]
pub struct WebhookMessage {
    /// The media type of the body.
    pub media_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Further header fields, such as signatures.
    pub headers: Vec<(&'static str, String)>,
    /// Maximum size of the answer's body in bytes; with 0 no body is read, whatever its size.
    pub max_answer_bytes: usize,
}

impl Fetcher {
    /// Sends a message to one URL, within [`total`](super::FetchLimits::total). A redirect is a failure, because the
    /// message is for this URL only. The message is never repeated here.
    pub async fn post_webhook(&self, url: &Url, message: WebhookMessage) -> FetchRecord {
        let start = self.new_fetch_start();
        let mut progress = FetchProgress::default();
        let fetch = self.send_webhook(url, message, &mut progress);
        let result = self.run_with_total_timeout(&start, fetch).await;
        start.into_record(url, result, &progress)
    }

    async fn send_webhook(
        &self,
        url: &Url,
        message: WebhookMessage,
        progress: &mut FetchProgress,
    ) -> Result<HttpResponse, FetchError> {
        let url = self.guard.check_parsed_url(url.clone())?;
        let over_tls = url.scheme() == "https";
        let mut request = self
            .client_for(&url)
            .post(url)
            .header(CONTENT_TYPE, message.media_type)
            .body(message.body);
        for (name, value) in message.headers {
            request = request.header(name, value);
        }
        let mut response = self.send_request(request, progress).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(FetchError::new(
                AttemptOutcome::BadRedirect,
                &format!(
                    "the receiver answered with status {}, a redirect, which is not followed; use the URL that it \
                     leads to",
                    status.as_u16()
                ),
            ));
        }
        if message.max_answer_bytes > 0 {
            let limits = BodyLimits {
                success_bytes: message.max_answer_bytes,
                error_bytes: 0,
            };
            return self
                .read_response(response, limits, over_tls, progress)
                .await;
        }
        Ok(HttpResponse {
            url: response.url().clone(),
            status: status.as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: Vec::new(),
            address: progress.address(),
            over_tls,
        })
    }
}
