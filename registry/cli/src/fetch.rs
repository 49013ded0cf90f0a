//! Documents from anywhere: the cards that `lint` and `send --direct` read.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::ACCEPT;
use reqwest::redirect;
use url::Url;

use super::client::{body, client, innermost};
use super::refusal::ClientError;

/// Time limit for a document.
const FETCH_LIMIT: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Fetches a document from anywhere, as whoever runs this program could: without the registry's
/// token, at most `limit` bytes, within 30 seconds.
///
/// # Errors
/// In one line: no connection, a status other than 2xx, too many bytes.
pub async fn fetch(url: &Url, limit: usize) -> Result<Bytes, ClientError> {
    let failed = |reason: String| ClientError::Failed(format!("{url} cannot be fetched: {reason}"));
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
        return Err(failed(format!(
            "it answered HTTP {}",
            response.status().as_u16()
        )));
    }
    body(response, limit, FETCH_LIMIT)
        .await
        .map_err(|error| failed(error.to_string()))
}
