//! Outages of our own network: whether the circuit breaker is open in this process or, by the database, in another.

use std::sync::atomic::Ordering;

use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::Write;

use crate::context::Context;
use crate::error::Result;
use crate::memory::outage::{Outage, StoredOutage};

/// Continues the outage of the previous process: for a process that crawls, because only its fetches can show that the
/// outage is over.
pub fn resume_outage(context: &Context) {
    if let Some(outage) = *context.stream.outage() {
        context.stream.hold_brake(outage.since.into());
    }
}

/// Opens the circuit breaker because this process has no file descriptors left. Until enough fetches succeed again, no
/// failure counts against an agent: a process in that state fails in other ways too. This is logged once an hour, also
/// while the breaker is open for another reason or since before a restart.
pub fn open_breaker_for_shortage(context: &Context) {
    let now = context.now();
    let logged = &context.stream.shortage_logged;
    if now.0.saturating_sub(logged.load(Ordering::Acquire)) >= HOUR {
        logged.store(now.0, Ordering::Release);
        tracing::error!(
            "no file descriptors are left: visits are made later, and agents keep their state; raise the limit of this \
             process (ulimit -n, LimitNOFILE), or lower crawler.concurrency"
        );
    }
    let known = context.stream.breaker_open_since();
    context
        .stream
        .hold_brake(known.unwrap_or_else(|| now.into()));
}

/// Whether the circuit breaker is open in this process, or another one has recently stored that it is.
pub async fn is_breaker_open(context: &Context) -> Result<bool> {
    if breaker_open_since(context).is_some() {
        return Ok(true);
    }
    let now = context.now();
    let kept = Outage::kept(&context.store, now).await?;
    Ok(kept.is_some_and(|outage| now.0.saturating_sub(outage.noted.0) < CURRENT))
}

/// Stores the beginning, continuation or end of an outage; returns the new state for [`remember_outage`] after the
/// commit, if it has changed.
pub async fn store_outage(context: &Context, write: &Write) -> Result<Option<StoredOutage>> {
    let now = context.now();
    let known = *context.stream.outage();
    let next = match (breaker_open_since(context), known) {
        (Some(_), Some(known)) if now.0.saturating_sub(known.noted.0) < NOTED => {
            return Ok(None);
        }
        (Some(since), _) => Some(Outage { since, noted: now }),
        (None, Some(_)) => None,
        (None, None) => return Ok(None),
    };
    Outage::keep(next, write).await?;
    Ok(Some(StoredOutage(next)))
}

pub fn remember_outage(context: &Context, noted: Option<StoredOutage>) {
    if let Some(StoredOutage(outage)) = noted {
        *context.stream.outage() = outage;
    }
}

/// How often a lasting outage is stored again.
pub const NOTED: i64 = HOUR;

/// How long other processes rely on a stored outage: the process that stored it may be gone.
pub const CURRENT: i64 = 3 * HOUR;

/// When the circuit breaker of this process opened; `None` if it is closed.
pub fn breaker_open_since(context: &Context) -> Option<Timestamp> {
    context.stream.breaker_open_since().map(Timestamp::from)
}
