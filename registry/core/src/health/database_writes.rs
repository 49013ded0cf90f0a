//! Whether the database accepts writes.

use std::time::Duration;

use a2a_registry_store::StoreErrorKind;

use crate::context::AppContext;

/// How long a result is reused: anyone may request a check, which on SQLite writes a row.
const RESULT_TTL: Duration = Duration::from_secs(1);

/// Checks that the database accepts writes. Concurrent callers wait for one check.
///
/// # Errors
/// The kind of the failure.
pub async fn check_database_writes(context: &AppContext) -> Result<(), StoreErrorKind> {
    let mut last_result = context.write_check.0.lock().await;
    let now = context.monotonic_time();
    if let Some((at, result)) = last_result.as_ref()
        && now.saturating_sub(*at) < RESULT_TTL
    {
        return result.clone();
    }
    let written = context.store.check_writable(context.now().0).await;
    let result = written.map_err(|error| {
        tracing::warn!(%error, "the database accepts no writes");
        error.kind().clone()
    });
    *last_result = Some((now, result.clone()));
    result
}
