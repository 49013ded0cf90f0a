//! An outage of ours, kept in the database: it outlives a restart, and processes that do not crawl know of it.

use time::OffsetDateTime;

use super::{App, AppError};
use crate::domain::timestamp::{DAY, HOUR, Timestamp};
use crate::store::settings::setting_get;
use crate::store::{Store, StoreError, Write};

/// The setting that says since when verdicts are frozen, and when that was last so.
const SETTING: &str = "crawl_braked";
/// While an outage lasts it is noted this often that it does.
const NOTED: i64 = HOUR;
/// For this long what was last noted is believed: longer than between two looks at a source that fails.
const BELIEVED: i64 = 2 * DAY;

/// An outage as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outage {
    /// Since when verdicts are frozen.
    since: Timestamp,
    /// When they last were.
    noted: Timestamp,
}

impl Outage {
    /// The outage that is kept, where it is not too old to be believed.
    ///
    /// # Errors
    /// Where the database fails.
    pub(super) async fn kept(store: &Store, now: Timestamp) -> Result<Option<Self>, StoreError> {
        let text = setting_get(store, SETTING).await?.unwrap_or_default();
        let read = || {
            let (since, noted) = text.split_once(' ')?;
            Some(Self {
                since: Timestamp(since.parse().ok()?),
                noted: Timestamp(noted.parse().ok()?),
            })
        };
        Ok(read().filter(|outage| now.0.saturating_sub(outage.noted.0) < BELIEVED))
    }

    /// Since when verdicts are frozen.
    pub(super) fn since(self) -> OffsetDateTime {
        self.since.into()
    }

    async fn keep(outage: Option<Self>, write: &Write) -> Result<(), StoreError> {
        let text = outage.map_or_else(String::new, |outage| {
            format!("{} {}", outage.since.0, outage.noted.0)
        });
        write.setting_put(SETTING, &text).await
    }
}

impl App {
    /// Whether verdicts are frozen, by what this process has seen or another one has noted.
    ///
    /// # Errors
    /// Where the database fails.
    pub(super) async fn is_braked(&self) -> Result<bool, AppError> {
        if self.crawl_braked_since().is_some() {
            return Ok(true);
        }
        Ok(Outage::kept(&self.store, self.now()).await?.is_some())
    }

    /// Notes an outage that has begun, goes on or is over.
    ///
    /// # Errors
    /// Where the database fails.
    pub(super) async fn note_outage(&self, write: &Write) -> Result<(), AppError> {
        let now = self.now();
        let known = *self.stream.outage();
        let next = match (self.crawl_braked_since(), known) {
            (Some(_), Some(known)) if now.0.saturating_sub(known.noted.0) < NOTED => return Ok(()),
            (Some(since), _) => Some(Outage { since, noted: now }),
            (None, Some(_)) => None,
            (None, None) => return Ok(()),
        };
        Outage::keep(next, write).await?;
        *self.stream.outage() = next;
        Ok(())
    }
}
