//! Documents from anywhere: the cards that `lint` and `send --direct` read.

use std::time::Duration;

use a2a_card::MAX_CARD_BYTES;
use bytes::Bytes;
use reqwest::header::ACCEPT;
use reqwest::redirect;
use url::Url;

use super::client::{body, client, innermost};
use super::refusal::ClientError;

const FETCH_LIMIT: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Why a document could not be fetched.
enum FetchFailure {
    /// The server responded with another status than 2xx.
    Status(ClientError),
    /// There was no response, or not a whole one.
    Other(ClientError),
}

impl From<FetchFailure> for ClientError {
    fn from(failure: FetchFailure) -> Self {
        match failure {
            FetchFailure::Status(error) | FetchFailure::Other(error) => error,
        }
    }
}

/// Fetches a document from anywhere, as whoever runs this program could: without the registry's
/// token, at most `limit` bytes, within 30 seconds.
///
/// # Errors
/// In one line: no connection, a status other than 2xx, too many bytes.
pub async fn fetch(url: &Url, limit: usize) -> Result<Bytes, ClientError> {
    Ok(get(url, limit).await?)
}

/// Fetches a card from its URL, or from the other URL where the first one responds without a card, as the crawler does.
/// Returns it with its URL. Where neither has a card, the first one's response or failure says more.
pub async fn fetch_card(url: &Url, other: Option<&Url>) -> Result<(Url, Bytes), ClientError> {
    let first = get(url, MAX_CARD_BYTES).await;
    let may_be_elsewhere = match &first {
        Ok(bytes) => !is_card(bytes),
        Err(failure) => matches!(failure, FetchFailure::Status(_)),
    };
    if let Some(other) = other.filter(|_| may_be_elsewhere)
        && let Ok(bytes) = get(other, MAX_CARD_BYTES).await
        && is_card(&bytes)
    {
        return Ok((other.clone(), bytes));
    }
    Ok((url.clone(), first?))
}

fn is_card(bytes: &[u8]) -> bool {
    a2a_card::parse(bytes).is_ok()
}

async fn get(url: &Url, limit: usize) -> Result<Bytes, FetchFailure> {
    let sentence =
        |reason: String| ClientError::Failed(format!("{url} cannot be fetched: {reason}"));
    let failed = |reason: String| FetchFailure::Other(sentence(reason));
    if !matches!(url.scheme(), "http" | "https") {
        return Err(failed(format!(
            "the scheme {} is not http or https",
            url.scheme()
        )));
    }
    let http = client(url, redirect::Policy::limited(REDIRECTS))
        .timeout(FETCH_LIMIT)
        .build()
        .map_err(|error| failed(innermost(&error)))?;
    let response = http
        .get(url.clone())
        .header(ACCEPT, "application/json, */*;q=0.1")
        .send()
        .await
        .map_err(|error| failed(innermost(&error)))?;
    if !response.status().is_success() {
        let status = response.status().as_u16();
        return Err(FetchFailure::Status(sentence(format!(
            "it answered HTTP {status}"
        ))));
    }
    body(response, limit, FETCH_LIMIT)
        .await
        .map_err(|error| failed(error.to_string()))
}
