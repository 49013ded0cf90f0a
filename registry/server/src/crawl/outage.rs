//! An outage of ours, kept in the database: it outlives a restart, and processes that do not crawl know of it.

use crate::context::Context;
use crate::crawl::leasing::crawl_braked_since;
use crate::error::AppError;
use a2a_registry_domain::timestamp::{DAY, HOUR, Timestamp};
use a2a_registry_store::settings::setting_get;
use a2a_registry_store::{Store, StoreError, Write};

/// The setting that says since when verdicts are frozen, and when that was last so.
const SETTING: &str = "crawl_braked";
/// While an outage lasts it is noted this often that it does.
const NOTED: i64 = HOUR;
/// For this long what was last noted is believed: longer than between two looks at a source that fails.
const BELIEVED: i64 = 2 * DAY;

/// Other processes believe it for as long: the one that notes it may have gone with its network.
const CURRENT: i64 = 3 * HOUR;

/// What the database says of an outage once a write is kept.
#[derive(Debug)]
pub(crate) struct Noted(Option<Outage>);

/// An outage as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outage {
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

    async fn keep(outage: Option<Self>, write: &Write) -> Result<(), StoreError> {
        let text = outage.map_or_else(String::new, |outage| {
            format!("{} {}", outage.since.0, outage.noted.0)
        });
        write.setting_put(SETTING, &text).await
    }
}

/// Goes on in the outage that the process before this one was in: for a process that crawls, which alone can see
/// that it is over.
pub fn resume_outage(context: &Context) {
    if let Some(outage) = *context.stream.outage() {
        context.stream.hold_brake(outage.since.into());
    }
}

/// Whether verdicts are frozen, by what this process has seen or another one has noted of late.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn is_braked(context: &Context) -> Result<bool, AppError> {
    if crawl_braked_since(context).is_some() {
        return Ok(true);
    }
    let now = context.now();
    let kept = Outage::kept(&context.store, now).await?;
    Ok(kept.is_some_and(|outage| now.0.saturating_sub(outage.noted.0) < CURRENT))
}

/// Keeps an outage that has begun, goes on or is over; answers what is to be remembered of it once the write is
/// kept, where that has changed.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn keep_outage(
    context: &Context,
    write: &Write,
) -> Result<Option<Noted>, AppError> {
    let now = context.now();
    let known = *context.stream.outage();
    let next = match (crawl_braked_since(context), known) {
        (Some(_), Some(known)) if now.0.saturating_sub(known.noted.0) < NOTED => {
            return Ok(None);
        }
        (Some(since), _) => Some(Outage { since, noted: now }),
        (None, Some(_)) => None,
        (None, None) => return Ok(None),
    };
    Outage::keep(next, write).await?;
    Ok(Some(Noted(next)))
}

/// Remembers what was kept.
pub(crate) fn remember_outage(context: &Context, noted: Option<Noted>) {
    if let Some(Noted(outage)) = noted {
        *context.stream.outage() = outage;
    }
}
