//! The time of the last fetch of a card, stored in the database so that processes that do not crawl can show it
//! without reading the rows of all agents.

use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use a2a_registry_store::settings::setting_value;
use a2a_registry_store::{Store, StoreError, WriteTransaction};

const LAST_CRAWL_SETTING: &str = "last_crawl";
/// How often the time is stored: storing it with each fetch would cost a write each time.
pub const STORE_INTERVAL: i64 = MINUTE;

/// When the card of a public agent was last fetched, to within a minute. Fetches of hidden agents do not count.
pub async fn load_last_crawl(
    store: &Store,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let text = setting_value(store, LAST_CRAWL_SETTING).await?;
    let at: Option<i64> = text.and_then(|text| text.parse().ok());
    // A clock that was ahead may have stored a time in the future.
    Ok(at.map(|at| Timestamp(at.min(now.0))))
}

pub async fn store_last_crawl(write: &WriteTransaction, at: Timestamp) -> Result<(), StoreError> {
    write
        .set_setting(LAST_CRAWL_SETTING, &at.0.to_string())
        .await
}
