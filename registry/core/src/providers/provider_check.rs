//! Checks of the identity providers before anyone signs in with them.

use a2a_crawler::Clock;
use a2a_crawler::fetch::{Fetcher, GetOptions, parse_http_date};
use futures::future::join_all;
use url::Url;

use crate::config::IdentityConfig;
use crate::providers::metadata::{discovery_url, fetch_provider_metadata};

/// What was found about a provider that responds correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderFacts {
    /// The number of usable keys.
    pub keys: usize,
    /// By how many seconds its clock is ahead of this one, if its responses have a date.
    pub clock_lead: Option<i64>,
}

/// Fetches the metadata and keys of every provider through the guard. The error of a provider says what is wrong: its
/// document is not reachable or names another issuer, or it has no keys.
pub async fn check_identity_providers<'a>(
    config: &'a IdentityConfig,
    fetcher: &Fetcher,
    clock: &dyn Clock,
) -> Vec<(&'a str, Result<ProviderFacts, String>)> {
    let checks = config.providers.iter().map(|(name, own)| async move {
        let outcome = check_identity_provider(&own.issuer, fetcher, clock).await;
        (name.as_str(), outcome)
    });
    join_all(checks).await
}

async fn check_identity_provider(
    issuer: &str,
    fetcher: &Fetcher,
    clock: &dyn Clock,
) -> Result<ProviderFacts, String> {
    let known = fetch_provider_metadata(fetcher, issuer).await?;
    Ok(ProviderFacts {
        keys: known.keys.len(),
        clock_lead: fetch_clock_lead(&discovery_url(issuer)?, fetcher, clock).await,
    })
}

/// Compares the date of a response with the clock of this machine. It has whole seconds, and the response took some time.
async fn fetch_clock_lead(address: &Url, fetcher: &Fetcher, clock: &dyn Clock) -> Option<i64> {
    let options = GetOptions {
        max_redirects: 0,
        ..GetOptions::default()
    };
    let response = fetcher.get(address, &options).await.result.ok()?;
    let date = parse_http_date(response.headers.get("date")?.to_str().ok()?)?;
    Some((date - clock.now()).whole_seconds())
}
