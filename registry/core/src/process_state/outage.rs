//! An outage of our own network, stored in the database: it survives a restart, and processes that do not crawl know
//! of it.

use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::settings::setting_value;
use a2a_registry_store::{Store, StoreError, WriteTransaction};

/// The setting with the times at which the circuit breaker opened and was last open.
const OUTAGE_SETTING: &str = "crawl_braked";
/// How long a stored outage is valid: longer than the interval of a failing source.
pub const MAX_OUTAGE_AGE: i64 = 2 * DAY;

/// The outage that the database holds after a commit.
#[derive(Debug)]
pub struct StoredCrawlOutage(pub Option<CrawlOutage>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlOutage {
    /// When the circuit breaker opened.
    pub since: Timestamp,
    /// When the circuit breaker was last stored as open.
    pub stored_at: Timestamp,
}

impl CrawlOutage {
    /// Loads the stored outage, if it is still valid.
    pub async fn load(store: &Store, now: Timestamp) -> Result<Option<Self>, StoreError> {
        let text = setting_value(store, OUTAGE_SETTING)
            .await?
            .unwrap_or_default();
        let parse = || {
            let (since, noted) = text.split_once(' ')?;
            Some(Self {
                since: Timestamp(since.parse().ok()?),
                stored_at: Timestamp(noted.parse().ok()?),
            })
        };
        // An outage dated in the future by a clock that was ahead would be valid for too long.
        let is_valid =
            |outage: &Self| (0..MAX_OUTAGE_AGE).contains(&now.0.saturating_sub(outage.stored_at.0));
        Ok(parse().filter(is_valid))
    }

    pub async fn save(outage: Option<Self>, write: &WriteTransaction) -> Result<(), StoreError> {
        let text = outage.map_or_else(String::new, |outage| {
            format!("{} {}", outage.since.0, outage.stored_at.0)
        });
        write.set_setting(OUTAGE_SETTING, &text).await
    }
}
