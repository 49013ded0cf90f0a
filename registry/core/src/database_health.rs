//! Tracks whether the database responds, and rejects cached responses after it has not responded for too long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::process_state::health_state::uptime_microseconds;

pub fn record_database_contact(context: &AppContext) {
    let now = uptime_microseconds(context.monotonic_time());
    context.database_contact.0.store(now, Ordering::Release);
}

/// Time since the database last responded.
pub fn database_silence(context: &AppContext) -> Duration {
    let last_contact = Duration::from_micros(context.database_contact.0.load(Ordering::Acquire));
    context.monotonic_time().saturating_sub(last_contact)
}

/// Rejects responses from caches if the database has not responded for longer than `stale_limit`.
pub fn require_recent_database_contact(context: &AppContext) -> Result<()> {
    let silence = database_silence(context);
    if silence > Duration::from_secs(context.config().store.stale_limit) {
        return Err(AppError::unavailable(
            "The registry's database does not respond, and its cached data is too old to be served.",
            5,
        ));
    }
    Ok(())
}
