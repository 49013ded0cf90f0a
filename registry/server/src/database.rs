//! Whether the database still answers, as far as this process has heard.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::context::Context;
use crate::error::AppError;
use crate::memory::database::microseconds;

/// Notes that the database has just answered.
pub fn heard_database(context: &Context) {
    let now = microseconds(context.uptime());
    context.heard.0.store(now, Ordering::Release);
}

/// Refuses to answer from memory once the database has been silent for longer than `stale_limit`.
///
/// # Errors
/// `Unavailable`.
pub(crate) fn demand_database(context: &Context) -> Result<(), AppError> {
    let heard = Duration::from_micros(context.heard.0.load(Ordering::Acquire));
    let silent = context.uptime().saturating_sub(heard);
    if silent > Duration::from_secs(context.config.store.stale_limit) {
        return Err(AppError::unavailable(
            "The registry has lost its database and no longer vouches for what it knows.",
            5,
        ));
    }
    Ok(())
}
