//! An outage of ours, kept in the database: it outlives a restart, and processes that do not crawl know of it.

use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::settings::setting_get;
use a2a_registry_store::{Store, StoreError, Write};

/// Setting with the time at which the circuit breaker opened, and the last time at which it was open.
const SETTING: &str = "crawl_braked";
/// For this long what was last noted is believed: longer than between two looks at a source that fails.
pub(crate) const BELIEVED: i64 = 2 * DAY;

/// What the database says of an outage once a write is kept.
#[derive(Debug)]
pub(crate) struct Noted(pub(crate) Option<Outage>);

/// An outage as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outage {
    /// Since when the circuit breaker is open.
    pub(crate) since: Timestamp,
    /// When they last were.
    pub(crate) noted: Timestamp,
}

impl Outage {
    /// The outage that is kept, where it is not too old to be believed.
    pub(crate) async fn kept(store: &Store, now: Timestamp) -> Result<Option<Self>, StoreError> {
        let text = setting_get(store, SETTING).await?.unwrap_or_default();
        let read = || {
            let (since, noted) = text.split_once(' ')?;
            Some(Self {
                since: Timestamp(since.parse().ok()?),
                noted: Timestamp(noted.parse().ok()?),
            })
        };
        // What a clock that was ahead has noted would be believed until it is caught up with.
        let noted = |outage: &Self| (0..BELIEVED).contains(&now.0.saturating_sub(outage.noted.0));
        Ok(read().filter(noted))
    }

    pub(crate) async fn keep(outage: Option<Self>, write: &Write) -> Result<(), StoreError> {
        let text = outage.map_or_else(String::new, |outage| {
            format!("{} {}", outage.since.0, outage.noted.0)
        });
        write.setting_put(SETTING, &text).await
    }
}
