//! Fetching documents from anywhere, such as the cards that `lint` and `send --direct` read.

use std::time::Duration;

use a2a_card::MAX_CARD_BYTES;
use bytes::Bytes;
use reqwest::header::ACCEPT;
use reqwest::redirect;
use url::Url;

use super::client::{http_client_builder, read_body, root_cause};
use super::client_error::ClientError;

const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of redirects followed.
const MAX_REDIRECTS: usize = 5;

/// Why a document could not be fetched.
enum FetchError {
    /// The server responded with another status than 2xx.
    Status(ClientError),
    /// There was no complete response.
    Other(ClientError),
}

impl From<FetchError> for ClientError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Status(error) | FetchError::Other(error) => error,
        }
    }
}

/// Fetches a document from anywhere, without the registry's token: at most `limit` bytes, within 30 seconds.
///
/// # Errors
/// One line: no connection, a status other than 2xx, too many bytes.
pub async fn fetch_document(url: &Url, limit: usize) -> Result<Bytes, ClientError> {
    Ok(fetch_bytes(url, limit).await?)
}

/// Fetches a card from its URL, or from the other URL if the first one responds without a card, as the crawler does.
/// Returns the card with its URL. If neither has a card, the response or error of the first URL is more informative.
pub async fn fetch_card(
    url: &Url,
    fallback_url: Option<&Url>,
) -> Result<(Url, Bytes), ClientError> {
    let first = fetch_bytes(url, MAX_CARD_BYTES).await;
    let may_be_elsewhere = match &first {
        Ok(bytes) => !is_card(bytes),
        Err(failure) => matches!(failure, FetchError::Status(_)),
    };
    if let Some(other) = fallback_url.filter(|_| may_be_elsewhere)
        && let Ok(bytes) = fetch_bytes(other, MAX_CARD_BYTES).await
        && is_card(&bytes)
    {
        return Ok((other.clone(), bytes));
    }
    Ok((url.clone(), first?))
}

fn is_card(bytes: &[u8]) -> bool {
    a2a_card::parse_card(bytes).is_ok()
}

async fn fetch_bytes(url: &Url, limit: usize) -> Result<Bytes, FetchError> {
    let fetch_error =
        |reason: String| ClientError::Failed(format!("{url} cannot be fetched: {reason}"));
    let other_error = |reason: String| FetchError::Other(fetch_error(reason));
    if !matches!(url.scheme(), "http" | "https") {
        return Err(other_error(format!(
            "the scheme {} is not http or https",
            url.scheme()
        )));
    }
    let http = http_client_builder(url, redirect::Policy::limited(MAX_REDIRECTS))
        .timeout(FETCH_TIMEOUT)
        .build()
        .map_err(|error| other_error(root_cause(&error)))?;
    let response = http
        .get(url.clone())
        .header(ACCEPT, "application/json, */*;q=0.1")
        .send()
        .await
        .map_err(|error| other_error(root_cause(&error)))?;
    if !response.status().is_success() {
        let status = response.status().as_u16();
        return Err(FetchError::Status(fetch_error(format!(
            "it answered HTTP {status}"
        ))));
    }
    read_body(response, limit, FETCH_TIMEOUT)
        .await
        .map_err(|error| other_error(error.to_string()))
}
