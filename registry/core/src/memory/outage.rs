//! An outage of our own network, stored in the database: it survives a restart, and processes that do not crawl know
//! of it.

use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::settings::setting_get;
use a2a_registry_store::{Store, StoreError, Write};

/// The setting that holds when the circuit breaker opened, and when it was last open.
const SETTING: &str = "crawl_braked";
/// How long a stored outage is valid: longer than the interval of a failing source.
pub const BELIEVED: i64 = 2 * DAY;

/// The outage that the database holds after a commit.
#[derive(Debug)]
pub struct StoredOutage(pub Option<Outage>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the circuit breaker opened.
    pub since: Timestamp,
    /// When it was last stored as open.
    pub noted: Timestamp,
}

impl Outage {
    /// The stored outage, if it is still valid.
    pub async fn kept(store: &Store, now: Timestamp) -> Result<Option<Self>, StoreError> {
        let text = setting_get(store, SETTING).await?.unwrap_or_default();
        let read = || {
            let (since, noted) = text.split_once(' ')?;
            Some(Self {
                since: Timestamp(since.parse().ok()?),
                noted: Timestamp(noted.parse().ok()?),
            })
        };
        // An outage dated in the future, by a clock that was ahead, would be valid for too long.
        let noted = |outage: &Self| (0..BELIEVED).contains(&now.0.saturating_sub(outage.noted.0));
        Ok(read().filter(noted))
    }

    pub async fn keep(outage: Option<Self>, write: &Write) -> Result<(), StoreError> {
        let text = outage.map_or_else(String::new, |outage| {
            format!("{} {}", outage.since.0, outage.noted.0)
        });
        write.setting_put(SETTING, &text).await
    }
}
