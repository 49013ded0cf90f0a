//! Tracks whether the database responds, and refuses cached responses once it has not for too long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::context::Context;
use crate::error::{AppError, Result};
use crate::memory::database::microseconds;

pub fn heard_database(context: &Context) {
    let now = microseconds(context.uptime());
    context.heard.0.store(now, Ordering::Release);
}

/// Refuses to respond from caches once the database has not responded for longer than `stale_limit`.
pub fn demand_database(context: &Context) -> Result<()> {
    let heard = Duration::from_micros(context.heard.0.load(Ordering::Acquire));
    let silent = context.uptime().saturating_sub(heard);
    if silent > Duration::from_secs(context.config.store.stale_limit) {
        return Err(AppError::unavailable(
            "The registry's database does not respond, and its cached data is too old to be served.",
            5,
        ));
    }
    Ok(())
}
