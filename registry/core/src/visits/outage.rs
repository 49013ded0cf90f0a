//! Outages of our own network: whether the circuit breaker is open in this process or, by the database, in another.

use std::sync::atomic::Ordering;

use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::WriteTransaction;

use crate::context::AppContext;
use crate::error::Result;
use crate::process_state::outage::{CrawlOutage, StoredCrawlOutage};

/// Continues the outage of the previous process. Only for a process that crawls, because only fetches can show that
/// the outage is over.
pub fn resume_outage(context: &AppContext) {
    if let Some(outage) = *context.crawl_state.lock_outage() {
        context.crawl_state.open_breaker(outage.since.into());
    }
}

/// Opens the circuit breaker because this process has no file descriptors left. Until enough fetches succeed again, no
/// failure counts against an agent: a process in this state fails in other ways too. The shortage is logged once an
/// hour, even if the breaker is already open for another reason or since before a restart.
pub fn open_breaker_for_shortage(context: &AppContext) {
    let now = context.now();
    let logged = &context.crawl_state.shortage_logged_at;
    if now.0.saturating_sub(logged.load(Ordering::Acquire)) >= HOUR {
        logged.store(now.0, Ordering::Release);
        tracing::error!(
            "no file descriptors are left: visits are made later, and agents keep their state; raise the limit of this \
             process (ulimit -n, LimitNOFILE), or lower crawler.concurrency"
        );
    }
    let open_since = context.crawl_state.breaker_open_since();
    context
        .crawl_state
        .open_breaker(open_since.unwrap_or_else(|| now.into()));
}

/// Whether the circuit breaker is open in this process, or another one has recently stored that it is.
pub async fn is_breaker_open_anywhere(context: &AppContext) -> Result<bool> {
    if breaker_open_since(context).is_some() {
        return Ok(true);
    }
    let now = context.now();
    let stored = CrawlOutage::load(&context.store, now).await?;
    Ok(stored.is_some_and(|outage| now.0.saturating_sub(outage.stored_at.0) < OUTAGE_VALIDITY))
}

/// Stores the beginning, continuation or end of an outage; returns the new state for [`cache_outage`] after the
/// commit, if it has changed.
pub async fn store_outage(
    context: &AppContext,
    write: &WriteTransaction,
) -> Result<Option<StoredCrawlOutage>> {
    let now = context.now();
    let cached = *context.crawl_state.lock_outage();
    let next = match (breaker_open_since(context), cached) {
        (Some(_), Some(known))
            if now.0.saturating_sub(known.stored_at.0) < OUTAGE_STORE_INTERVAL =>
        {
            return Ok(None);
        }
        (Some(since), _) => Some(CrawlOutage {
            since,
            stored_at: now,
        }),
        (None, Some(_)) => None,
        (None, None) => return Ok(None),
    };
    CrawlOutage::save(next, write).await?;
    Ok(Some(StoredCrawlOutage(next)))
}

pub fn cache_outage(context: &AppContext, stored: Option<StoredCrawlOutage>) {
    if let Some(StoredCrawlOutage(outage)) = stored {
        *context.crawl_state.lock_outage() = outage;
    }
}

/// How often a lasting outage is stored again.
pub const OUTAGE_STORE_INTERVAL: i64 = HOUR;

/// How long other processes rely on a stored outage, because the process that stored it may have ended.
pub const OUTAGE_VALIDITY: i64 = 3 * HOUR;

/// When the circuit breaker of this process opened; `None` if it is closed.
pub fn breaker_open_since(context: &AppContext) -> Option<Timestamp> {
    context
        .crawl_state
        .breaker_open_since()
        .map(Timestamp::from)
}
