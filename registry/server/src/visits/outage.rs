//! State of the circuit breaker, which is open during an outage of the registry's own network: as this process sees it,
//! and as the database has it.

use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::Write;

use crate::context::Context;
use crate::error::AppError;
use crate::memory::outage::{Noted, Outage};

/// Goes on in the outage that the process before this one was in: for a process that crawls, which alone can see
/// that it is over.
pub fn resume_outage(context: &Context) {
    if let Some(outage) = *context.stream.outage() {
        context.stream.hold_brake(outage.since.into());
    }
}

/// Whether the circuit breaker is open, in this process or lately in another one.
pub(crate) async fn is_breaker_open(context: &Context) -> Result<bool, AppError> {
    if breaker_open_since(context).is_some() {
        return Ok(true);
    }
    let now = context.now();
    let kept = Outage::kept(&context.store, now).await?;
    Ok(kept.is_some_and(|outage| now.0.saturating_sub(outage.noted.0) < CURRENT))
}

/// Keeps an outage that has begun, goes on or is over; answers what is to be remembered of it once the write is
/// kept, where that has changed.
pub(crate) async fn keep_outage(
    context: &Context,
    write: &Write,
) -> Result<Option<Noted>, AppError> {
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
    Ok(Some(Noted(next)))
}

/// Remembers what was kept.
pub(crate) fn remember_outage(context: &Context, noted: Option<Noted>) {
    if let Some(Noted(outage)) = noted {
        *context.stream.outage() = outage;
    }
}

/// While an outage lasts it is noted this often that it does.
pub(crate) const NOTED: i64 = HOUR;

/// Other processes believe it for as long: the one that notes it may have gone with its network.
pub(crate) const CURRENT: i64 = 3 * HOUR;

/// Since when the circuit breaker of this process is open; `None` while it is closed.
pub fn breaker_open_since(context: &Context) -> Option<Timestamp> {
    context.stream.breaker_open_since().map(Timestamp::from)
}
